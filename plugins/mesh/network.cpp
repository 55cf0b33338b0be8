#include "network.hpp"

#include <algorithm>
#include <chrono>

namespace queen::mesh {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kComplainEvery{1};
constexpr std::chrono::seconds kWithoutDescriptors{1}; // until accepting is tried again
constexpr int kAcceptsInARow = 64;

} // namespace

bool Complaints::add(SteadyTime now, const std::string& line) {
    if (now < next_) {
        ++withheld_;
        return false;
    }
    next_ = now + kComplainEvery;
    log_(plugin::LogLevel::warning,
         withheld_ == 0 ? line
                        : line + " (" + std::to_string(withheld_) + " lines like it withheld)");
    withheld_ = 0;
    return true;
}

Network::Network(const Options& options, const Clock& clock, plugin::MeshHost& host, const Log& log,
                 Resolver& resolver, std::uint64_t seed)
    : options_(options), clock_(clock), log_(log), resolver_(resolver),
      outbox_(options, figures_, [this] { wake(); }), roster_(options, outbox_), complaints_(log),
      budgets_(options), context_{options, clock, host,        figures_,   outbox_, roster_,
                                  poller_, log,   complaints_, namesakes_, budgets_} {
    wakeup_key_ = poller_.add(wakeup_.descriptor(), Poller::kRead);
    for (std::size_t i = 0; i < options.peers.size(); ++i) {
        outgoing_.push_back(std::make_unique<Outgoing>(context_, resolver, i, seed + i));
    }
}

Network::~Network() {
    resolver_.stop(); // it calls back into the mail
}

void Network::open() {
    listen();
    resolver_.start([this](std::uint64_t ticket, Resolved found) {
        {
            const std::lock_guard lock(mail_mutex_);
            mail_.emplace_back(ticket, std::move(found));
        }
        wake();
    });
}

void Network::listen() {
    Resolved found = resolve(options_.listen, true);
    std::string error = found.error;
    if (!found.endpoints.empty()) {
        listener_ = listen_at(found.endpoints.front(), port_, error);
    }
    if (!listener_) {
        figures_.listen_failed.add();
        log_(plugin::LogLevel::warning, "cannot listen at " + options_.listen.text() + ": " +
                                            error + "; hints of other brokers are not heard");
        return;
    }
    listener_key_ = poller_.add(listener_, Poller::kRead);
    figures_.listening.store(1, std::memory_order_relaxed);
}

void Network::turn(Nanoseconds most) {
    SteadyTime now = clock_.now();
    tick(now);
    const Nanoseconds wait = busy_ ? 0ns : until_due(now, most);
    busy_ = false;
    constexpr std::chrono::milliseconds kLongest = 1h;
    const auto events = poller_.wait(static_cast<int>(
        std::min(kLongest, std::chrono::ceil<std::chrono::milliseconds>(wait)).count()));
    now = clock_.now();
    for (const epoll_event& event : events) {
        serve(event, now);
    }
    take_mail(now);
    flush(now);
    for (const auto& peer : outgoing_) {
        busy_ = peer->pump(now) || busy_;
    }
}

void Network::tick(SteadyTime now) {
    for (const auto& peer : outgoing_) {
        peer->tick(now);
    }
    std::vector<Poller::Key> gone;
    for (const auto& [key, connection] : incoming_) {
        if (!connection->tick(now)) {
            gone.push_back(key);
        }
    }
    std::for_each(gone.begin(), gone.end(), [&](Poller::Key key) { drop(key); });
    if (listener_paused_ && now >= listen_again_) {
        listener_paused_ = false;
        poller_.change(listener_, listener_key_, Poller::kRead);
    }
    if (now >= monitor_at_) {
        monitor_at_ = now + std::max<Nanoseconds>(options_.dead_threshold / 2, 250ms);
        for (const Roster::Change& change : roster_.monitor(now)) {
            log_(change.alive ? plugin::LogLevel::info : plugin::LogLevel::warning,
                 "broker " + change.server_id +
                     (change.alive ? " is heard from" : " is not heard from any more"));
        }
    }
}

Nanoseconds Network::until_due(SteadyTime now, Nanoseconds most) const {
    SteadyTime due = std::min(flush_at_, monitor_at_);
    if (listener_paused_) {
        due = std::min(due, listen_again_);
    }
    for (const auto& peer : outgoing_) {
        due = std::min(due, peer->due());
    }
    for (const auto& [key, connection] : incoming_) {
        due = std::min(due, connection->due());
    }
    return due <= now ? 0ns : std::min(most, due - now);
}

void Network::serve(const epoll_event& event, SteadyTime now) {
    const Poller::Key key = event.data.u64;
    if (key == wakeup_key_) {
        wakeup_.reset();
        outbox_.awake();
        return;
    }
    if (listener_ && key == listener_key_) {
        accept_all(now);
        return;
    }
    for (const auto& peer : outgoing_) {
        if (peer->owns(key)) {
            peer->event(event.events, now);
            return;
        }
    }
    const auto found = incoming_.find(key);
    if (found == incoming_.end()) {
        return;
    }
    Incoming& connection = *found->second;
    const std::size_t before = connection.memory();
    const bool known = connection.proven();
    const bool keep = connection.event(now);
    if (keep && !known && connection.proven()) {
        dial_back(connection, now);
        for (const auto& [other_key, other] : incoming_) {
            other->beware_of(connection);
        }
    }
    memory_ += connection.memory() - before;
    if (!keep) {
        drop(key);
    }
    while (memory_ > options_.receive_bytes && !incoming_.empty()) {
        drop_largest(now);
    }
}

/// Who holds most goes, not who happens to come next: that may be anybody.
void Network::drop_largest(SteadyTime now) {
    const auto largest =
        std::max_element(incoming_.begin(), incoming_.end(), [](const auto& a, const auto& b) {
            return a.second->memory() < b.second->memory();
        });
    figures_.crowded.add();
    complaints_.add(now, "the connection from " + largest->second->from() +
                             " was ended because it holds most of the unread bytes, and all "
                             "together hold more than they may");
    drop(largest->first);
}

/// Who can dial us can be dialled, most likely: it restarted, or the line is back. It is one of our
/// peers by the id that answered there before, else by its address, which several may share.
void Network::dial_back(const Incoming& connection, SteadyTime now) {
    const auto peer = roster_.find(connection.server_id());
    for (std::size_t i = 0; i < outgoing_.size(); ++i) {
        if (peer ? *peer == i : outgoing_[i]->is_at(connection.host())) {
            outgoing_[i]->hurry(now);
        }
    }
}

void Network::accept_all(SteadyTime now) {
    for (int i = 0; i < kAcceptsInARow; ++i) {
        Accepted accepted = accept_from(listener_);
        if (accepted.exhausted) {
            listener_paused_ = true;
            listen_again_ = now + kWithoutDescriptors;
            poller_.change(listener_, listener_key_, 0);
            complaints_.add(now, "out of descriptors or memory; connections have to wait");
        }
        if (!accepted.socket) {
            return;
        }
        if (!make_room(now)) {
            continue; // closed by leaving the scope
        }
        auto made = std::make_unique<Incoming>(context_, std::move(accepted), now);
        memory_ += made->memory();
        const Poller::Key key = made->key();
        incoming_.emplace(key, std::move(made));
        figures_.accepted.store(incoming_.size(), std::memory_order_relaxed);
    }
}

/// Who has not shown that it is a peer makes room for who comes next, the oldest first: strangers
/// cannot keep peers out.
bool Network::make_room(SteadyTime now) {
    if (incoming_.size() < options_.connections) {
        return true;
    }
    figures_.refused.add();
    complaints_.add(now, std::to_string(options_.connections) +
                             " connections are open; one more is not kept");
    auto oldest = incoming_.end();
    for (auto at = incoming_.begin(); at != incoming_.end(); ++at) {
        if (!at->second->proven() &&
            (oldest == incoming_.end() || at->second->since() < oldest->second->since())) {
            oldest = at;
        }
    }
    if (oldest == incoming_.end()) {
        return false;
    }
    drop(oldest->first);
    return true;
}

void Network::drop(Poller::Key key) {
    const auto found = incoming_.find(key);
    if (found != incoming_.end()) {
        memory_ -= found->second->memory();
        incoming_.erase(found);
        figures_.accepted.store(incoming_.size(), std::memory_order_relaxed);
    }
}

void Network::take_mail(SteadyTime now) {
    std::vector<std::pair<std::uint64_t, Resolved>> mail;
    {
        const std::lock_guard lock(mail_mutex_);
        mail.swap(mail_);
    }
    for (auto& [ticket, found] : mail) {
        for (const auto& peer : outgoing_) {
            peer->resolved(ticket, found, now); // takes its own ticket alone
        }
    }
}

void Network::flush(SteadyTime now) {
    if (!outbox_.dirty()) {
        flush_at_ = SteadyTime::max();
        return;
    }
    if (flush_at_ == SteadyTime::max()) {
        flush_at_ = now + options_.flush;
    }
    if (now >= flush_at_) {
        flush_at_ = outbox_.flush_dirty() ? now + options_.flush : SteadyTime::max();
    }
}

void Network::drain(Nanoseconds most) {
    listener_.reset();
    figures_.listening.store(0, std::memory_order_relaxed);
    incoming_.clear();
    figures_.accepted.store(0, std::memory_order_relaxed);
    const SteadyTime end = clock_.now() + most;
    for (SteadyTime now = clock_.now(); now < end; now = clock_.now()) {
        if (outbox_.dirty()) {
            outbox_.flush_dirty();
        }
        bool busy = outbox_.dirty();
        bool waits = false;
        for (const auto& peer : outgoing_) {
            busy = peer->pump(now) || busy;
            waits = peer->unsent() || waits;
        }
        if (!busy && !waits) {
            return;
        }
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(end - now);
        const auto events = poller_.wait(busy ? 0 : static_cast<int>(wait.count()));
        if (events.empty() && !busy) {
            return; // that was all of the time
        }
        for (const epoll_event& event : events) {
            serve(event, clock_.now());
        }
    }
}

void Network::close() {
    resolver_.stop();
    listener_.reset();
    figures_.listening.store(0, std::memory_order_relaxed);
    incoming_.clear();
    figures_.accepted.store(0, std::memory_order_relaxed);
    for (const auto& peer : outgoing_) {
        peer->close();
    }
}

void Network::close_all() {
    const SteadyTime now = clock_.now();
    incoming_.clear();
    memory_ = 0;
    figures_.accepted.store(0, std::memory_order_relaxed);
    for (const auto& peer : outgoing_) {
        peer->lose("a fault of our own", now);
    }
}

} // namespace queen::mesh
