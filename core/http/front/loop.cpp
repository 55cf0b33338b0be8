#include "http/front/loop.hpp"

#include "base/assert.hpp"
#include "http/front/codec.hpp"

#include <Poco/Logger.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

namespace queen::http {
namespace {

// Event data: slot in the low half, generation in the high one. Two slots mean something else.
constexpr std::uint32_t kListenerSlot = 0xffff'ffff;
constexpr std::uint32_t kMailSlot = 0xffff'fffe;

std::uint64_t pack(ConnectionId id) noexcept {
    return static_cast<std::uint64_t>(id.generation) << 32 | id.slot;
}
ConnectionId unpack(std::uint64_t data) noexcept {
    return {static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32)};
}

Poco::Logger& logger() {
    return Poco::Logger::get("http");
}

} // namespace

std::size_t Loop::connections_for(std::size_t configured, std::size_t descriptor_limit) noexcept {
    const std::size_t others = std::max(kOtherDescriptors, descriptor_limit / 8) + kRefusedAtOnce;
    const std::size_t possible =
        descriptor_limit > others + 16 ? descriptor_limit - others : std::size_t{16};
    return configured == 0 ? possible : std::min(configured, possible);
}

Loop::Loop(Limits limits, Listeners listeners, std::size_t descriptor_limit, Handler& handler,
           const Clock& clock)
    : limits_(limits), head_limits_{limits.head_bytes, limits.uri_bytes, limits.fields},
      connection_limit_(connections_for(limits.connections, descriptor_limit)),
      listeners_(std::move(listeners)), handler_(handler), clock_(clock), now_(clock.now()),
      deadlines_({limits.idle_time, limits.head_time, limits.body_progress_time, limits.write_time,
                  kLingerSilence}),
      budget_(limits.bodies_in_flight_bytes), mailbox_(std::make_shared<Mailbox>(clock)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)), reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Loop::~Loop() {
    finish();
}

Result<void> Loop::prepare() {
    if (!epoll_ || mailbox_->descriptor() < 0) {
        return fail(Errc::unavailable, "no descriptors left for the network thread: " +
                                           std::generic_category().message(errno));
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = pack({kMailSlot, 0});
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mailbox_->descriptor(), &event) != 0) {
        return fail(Errc::unavailable,
                    "epoll does not work here: " + std::generic_category().message(errno));
    }
    arm_listeners(EPOLLIN, EPOLL_CTL_ADD);
    return {};
}

void Loop::run() {
    mailbox_->adopt_thread(std::this_thread::get_id());
    while (!stop_is_done()) {
        turn();
    }
    finish();
}

void Loop::turn() {
    std::array<epoll_event, 256> events;
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_time());
    now_ = clock_.now();
    for (int i = 0; i < count; ++i) {
        const ConnectionId id = unpack(events[i].data.u64);
        if (id.slot == kListenerSlot) {
            if (id.generation < listeners_.sockets.size()) {
                on_accept(listeners_.sockets[id.generation].get());
            }
        } else if (id.slot != kMailSlot) {
            // Closed earlier in this turn: the generation moved on.
            if (Connection* connection = find(id)) {
                on_event(*connection, events[i].events);
            }
        }
    }
    // What handlers answer at once while this mail is delivered waits for the next turn, so that a
    // client with many requests in its pipe does not keep the others waiting.
    if (const auto waited = mailbox_->take(mail_)) {
        counters_.lag.observe(*waited);
    }
    for (Message& message : mail_) {
        deliver(message);
    }
    mail_.clear();
    while (DeadlineEntry* entry = deadlines_.expired(now_)) {
        expire(static_cast<Connection&>(*entry));
    }
    if (accept_paused_until_ && *accept_paused_until_ <= now_) {
        resume_accepting();
    }
    if (stop_requested_.load(std::memory_order_acquire) && !stop_deadline_) {
        begin_stop();
    }
    closed_.clear();
    counters_.body_bytes.store(budget_.used(), std::memory_order_relaxed);
}

int Loop::wait_time() {
    if (!mailbox_->empty()) {
        return 0;
    }
    std::optional<SteadyTime> soonest = deadlines_.next();
    for (const std::optional<SteadyTime>& other : {accept_paused_until_, stop_deadline_}) {
        if (other && (!soonest || *other < *soonest)) {
            soonest = other;
        }
    }
    if (!soonest) {
        return -1;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*soonest - clock_.now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

void Loop::arm_listeners(std::uint32_t events, int operation) {
    for (std::uint32_t i = 0; i < listeners_.sockets.size(); ++i) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = pack({kListenerSlot, i});
        static_cast<void>(
            ::epoll_ctl(epoll_.get(), operation, listeners_.sockets[i].get(), &event));
    }
}

void Loop::on_accept(int listener) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
        Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            admit(std::move(socket));
            continue;
        }
        switch (errno) {
        case EMFILE:
        case ENFILE:
            refuse_without_descriptor(listener);
            return;
        case ENOBUFS:
        case ENOMEM:
            pause_accepting();
            return;
        case EAGAIN:
            return;
        default:
            break; // that client is gone already; the next one is not
        }
    }
}

/// With no descriptor left a pending client could not be accepted, and a level-triggered listener
/// would report it for ever. The reserve makes room to tell one that it cannot be served.
void Loop::refuse_without_descriptor(int listener) {
    reserve_.reset();
    {
        const Descriptor socket(
            ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            const Reply reply = refusal_reply({503, "the broker is out of descriptors", true});
            const std::string text = build_head(reply, {.close = true}) + reply.body;
            static_cast<void>(
                ::send(socket.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
            ::shutdown(socket.get(), SHUT_WR);
            static_cast<void>(::recv(socket.get(), scratch_.data(), scratch_.size(), MSG_DONTWAIT));
            counters_.refused.fetch_add(1, std::memory_order_relaxed);
            counters_.response(503);
        }
    }
    reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    pause_accepting();
}

void Loop::pause_accepting() {
    if (!accept_paused_until_) {
        arm_listeners(0, EPOLL_CTL_MOD);
    }
    accept_paused_until_ = now_ + kAcceptPause;
}

void Loop::resume_accepting() {
    accept_paused_until_.reset();
    arm_listeners(EPOLLIN, EPOLL_CTL_MOD);
    // Told after the pause: a log that has to open a file would have failed in it.
    if (now_ >= next_shortage_line_) {
        next_shortage_line_ = now_ + kShortageLines;
        logger().warning("accepting paused: descriptors or memory had run out open=" +
                         std::to_string(open_));
    }
}

void Loop::admit(Descriptor socket) {
    const bool over = open_ >= connection_limit_;
    if (over && refused_open_ >= kRefusedAtOnce) {
        counters_.refused.fetch_add(1, std::memory_order_relaxed);
        return; // closed unheard: telling them is bounded as well
    }
    const int on = 1;
    static_cast<void>(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    ConnectionId id;
    if (free_slots_.empty()) {
        id.slot = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        id.slot = free_slots_.back();
        free_slots_.pop_back();
    }
    id.generation = slots_[id.slot].generation;
    auto owned =
        std::make_unique<Connection>(std::move(socket), id, limits_, head_limits_, budget_);
    Connection& connection = *owned;
    epoll_event event{};
    event.events = connection.armed = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = pack(id);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.socket.get(), &event) != 0) {
        free_slots_.push_back(id.slot);
        return;
    }
    slots_[id.slot].connection = std::move(owned);
    counters_.by_state[static_cast<std::size_t>(connection.state)].fetch_add(
        1, std::memory_order_relaxed);
    if (over) {
        ++refused_open_;
        connection.refused = true;
        counters_.refused.fetch_add(1, std::memory_order_relaxed);
        refuse(connection,
               {503,
                "the broker has its limit of " + std::to_string(connection_limit_) + " connections",
                true});
        return;
    }
    ++open_;
    counters_.accepted.fetch_add(1, std::memory_order_relaxed);
    counters_.open.store(open_, std::memory_order_relaxed);
    start_wait(connection, Wait::idle);
}

Connection* Loop::find(ConnectionId id) noexcept {
    if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) {
        return nullptr;
    }
    return slots_[id.slot].connection.get();
}

/// Changes the state, and the levels that are read from outside.
void Loop::enter(Connection& connection, Connection::State state) noexcept {
    const auto level = [this](Connection::State of) -> std::atomic<std::uint64_t>& {
        return counters_.by_state[static_cast<std::size_t>(of)];
    };
    level(connection.state).fetch_sub(1, std::memory_order_relaxed);
    level(state).fetch_add(1, std::memory_order_relaxed);
    connection.state = state;
}

/// The connection stays valid (and closed) to the end of the turn.
void Loop::close(Connection& connection) {
    if (connection.state == Connection::State::closed) {
        return;
    }
    std::function<void()> on_gone;
    if (connection.state == Connection::State::in_flight) {
        if (const auto exchange = connection.exchange.lock()) {
            exchange->set_gone();
        }
        on_gone = std::move(connection.on_gone);
    }
    const std::function<void()> undelivered = std::move(connection.undelivered);
    lingering_ -= connection.state == Connection::State::lingering ? 1 : 0;
    enter(connection, Connection::State::closed);
    deadlines_.end(connection);
    // A child process may share the socket between fork and exec; the set must forget it anyway.
    static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr));
    connection.socket.reset();
    if (connection.refused) {
        --refused_open_;
    } else {
        counters_.open.store(--open_, std::memory_order_relaxed);
    }
    Slot& slot = slots_[connection.id.slot];
    ++slot.generation;
    free_slots_.push_back(connection.id.slot);
    closed_.push_back(std::move(slot.connection));
    run_guarded(on_gone);
    run_guarded(undelivered);
}

void Loop::run_guarded(const std::function<void()>& callback) {
    if (!callback) {
        return;
    }
    try {
        callback();
    } catch (const std::exception& error) {
        logger().error(std::string("a callback of an exchange threw: ") + error.what());
    }
}

/// One of the limits on a client's time is over.
void Loop::expire(Connection& connection) {
    const Wait wait = connection.wait;
    if (wait != Wait::linger && wait != Wait::idle) {
        counters_.timed_out.fetch_add(1, std::memory_order_relaxed);
    }
    const auto seconds = [](std::chrono::milliseconds time) {
        return std::to_string(time.count()) + " ms";
    };
    switch (wait) {
    case Wait::idle:
        counters_.timed_out.fetch_add(1, std::memory_order_relaxed);
        linger(connection);
        return;
    case Wait::head:
        refuse(connection, {408, "the head of the request did not arrive within " +
                                     seconds(limits_.head_time)});
        return;
    case Wait::body:
        refuse(connection, {408, "no byte of the request's body arrived for " +
                                     seconds(limits_.body_progress_time)});
        return;
    case Wait::write:
    case Wait::linger:
        close(connection);
        return;
    case Wait::none:
        break;
    }
    QUEEN_ASSERT(false, "a connection without a time limit expired");
}

void Loop::request_stop(std::chrono::milliseconds grace) {
    stop_grace_.store(grace.count(), std::memory_order_relaxed);
    stop_requested_.store(true, std::memory_order_release);
    mailbox_->wake();
}

void Loop::begin_stop() {
    stop_deadline_ = now_ + std::chrono::milliseconds(stop_grace_.load(std::memory_order_relaxed));
    listeners_.sockets.clear();
    accept_paused_until_.reset();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        Connection* connection = slots_[i].connection.get();
        if (connection == nullptr || connection->state != Connection::State::reading) {
            continue;
        }
        if (connection->reader.idle()) {
            close(*connection);
        } else {
            refuse(*connection, {503, "the broker is shutting down", true, "shutting_down"});
        }
    }
}

bool Loop::stop_is_done() {
    if (!stop_deadline_) {
        return false;
    }
    const std::size_t all = open_ + refused_open_;
    if (all == lingering_ && !stop_lingers_) {
        // Only goodbyes are left: a client that never closes must not hold the exit up.
        stop_lingers_ = true;
        stop_deadline_ = std::min(*stop_deadline_, now_ + kLingerAtStop);
    }
    return all == 0 || *stop_deadline_ <= now_;
}

void Loop::finish() {
    listeners_.sockets.clear();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].connection) {
            close(*slots_[i].connection);
        }
    }
    closed_.clear();
    // Answers that were posted before the mailbox closed find no connection: given back here.
    mailbox_->close();
    static_cast<void>(mailbox_->take(mail_));
    for (Message& message : mail_) {
        deliver(message);
    }
    mail_.clear();
}

} // namespace queen::http
