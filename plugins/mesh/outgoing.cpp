#include "outgoing.hpp"

#include "proof.hpp"
#include "shared/hint_json.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace queen::mesh {
namespace {

constexpr std::size_t kBatch = 64;          // frames in one write
constexpr int kWritesInARow = 16;           // then other connections have a turn
constexpr std::size_t kFramesFromPeer = 64; // in a heartbeat's time, of a peer that sends one

} // namespace

Outgoing::Outgoing(Context& context, Resolver& resolver, std::size_t index, std::uint64_t seed)
    : context_(context), resolver_(resolver), index_(index), address_(context.options.peers[index]),
      random_(seed), retry_(context.options.first_retry), ticket_(std::uint64_t{index} << 32),
      reader_(kMaxUnproven) {}

SteadyTime Outgoing::due() const noexcept {
    if (state_ == State::ready && !writing_.empty()) {
        return std::min(due_, progress_ + context_.options.dead_threshold);
    }
    return due_;
}

void Outgoing::tick(SteadyTime now) {
    if (now < due()) {
        return;
    }
    switch (state_) {
    case State::idle:
    case State::ourselves:
        dial(now);
        return;
    case State::resolving:
        return; // the resolver answers each question
    case State::connecting:
        last_error_ = "no answer in time";
        connect_next(now);
        return;
    case State::greeting:
        if (context_.options.require_challenge) {
            context_.figures.failed_late.add();
            lose("no challenge came; is it an older broker, or has it no secret?", now);
        } else {
            become_ready(now);
        }
        return;
    case State::ready:
        if (!writing_.empty() && now - progress_ >= context_.options.dead_threshold) {
            context_.figures.stalled.add();
            lose("it reads nothing", now);
            return;
        }
        if (now >= due_) {
            due_ = now + context_.options.heartbeat;
            if (writing_.empty()) { // else it is heard from anyway, once it reads
                say(heartbeat_frame(context_.options.server_id));
                write(now);
            }
        }
        return;
    }
}

void Outgoing::dial(SteadyTime now) {
    context_.figures.dials.add();
    endpoints_.clear();
    last_error_.clear();
    Resolved numeric = resolve(address_, true);
    if (!numeric.endpoints.empty()) {
        endpoints_ = std::move(numeric.endpoints);
        next_endpoint_ = 0;
        connect_next(now);
        return;
    }
    state_ = State::resolving;
    due_ = SteadyTime::max();
    resolver_.ask(++ticket_, address_);
}

void Outgoing::resolved(std::uint64_t ticket, Resolved found, SteadyTime now) {
    if (state_ != State::resolving || ticket != ticket_) {
        return;
    }
    last_error_ = found.error;
    endpoints_ = std::move(found.endpoints);
    next_endpoint_ = 0;
    connect_next(now);
}

void Outgoing::connect_next(SteadyTime now) {
    close();
    while (next_endpoint_ < endpoints_.size()) {
        const Endpoint& endpoint = endpoints_[next_endpoint_++];
        socket_ = connect_to(endpoint, context_.options.dead_threshold, last_error_);
        if (socket_) {
            key_ = context_.poller.add(socket_, Poller::kWrite);
            state_ = State::connecting;
            due_ = now + context_.options.dead_threshold;
            return;
        }
    }
    context_.figures.dials_failed.add();
    lose(last_error_, now);
}

void Outgoing::event(std::uint32_t events, SteadyTime now) {
    if (state_ == State::connecting) {
        const int error = connect_error(socket_);
        if (error != 0) {
            last_error_ = error_text(error);
            connect_next(now);
        } else {
            greet(now);
        }
        return;
    }
    if ((events & Poller::kWrite) != 0) {
        blocked_ = false;
        context_.poller.change(socket_, key_, Poller::kRead);
        write(now);
    }
    if (socket_ && (events & ~Poller::kWrite) != 0) {
        read(now);
    }
}

void Outgoing::greet(SteadyTime now) {
    nonce_ = make_nonce();
    std::string json = "{\"server_id\":";
    hint_json::append_text(json, context_.options.server_id);
    json += ",\"nonce\":\"" + nonce_ + "\",\"mac\":\"" +
            hello_mac(context_.options.secret, nonce_) + "\",\"challenge\":1";
    hint_json::append_instance(json, context_.options.instance);
    json += '}';
    reader_ = FrameReader(kMaxUnproven);
    blocked_ = false;
    answered_ = false;
    state_ = State::greeting;
    due_ = now + (context_.options.require_challenge ? context_.options.dead_threshold
                                                     : context_.options.heartbeat);
    context_.poller.change(socket_, key_, Poller::kRead);
    say(make_frame(FrameType::hello, json));
    if (write(now) && context_.options.secret.empty()) {
        become_ready(now);
    }
}

void Outgoing::read(SteadyTime now) {
    std::size_t size = 0;
    const Flow flow = receive(socket_, reader_.room(), size);
    if (flow == Flow::closed) {
        lose("it closed the connection", now);
        return;
    }
    reader_.take(size);
    context_.figures.bytes_received.add(size);
    if (now - window_ >= context_.options.heartbeat) {
        window_ = now;
        frames_in_window_ = 0;
    }
    FrameReader::Frame frame;
    FrameReader::State state = reader_.next(frame);
    for (; state == FrameReader::State::frame; state = reader_.next(frame)) {
        context_.figures.frames_received.add();
        if (++frames_in_window_ > kFramesFromPeer) {
            break;
        }
        if (frame.type != static_cast<std::uint8_t>(FrameType::challenge) || answered_) {
            continue;
        }
        answered_ = true;
        if (!challenged(frame.json, now)) {
            return;
        }
    }
    if (state != FrameReader::State::more) {
        context_.figures.frames_bad.add();
        lose("it sends what no peer sends", now);
    }
}

bool Outgoing::challenged(std::string_view json, SteadyTime now) {
    const Options& options = context_.options;
    hint_json::Reading reading;
    if (!reading.read(json) || !hint_json::is_name(reading.server_id()) ||
        reading.nonce().size() > hint_json::kMaxName) {
        context_.figures.frames_bad.add();
        lose("its challenge cannot be read", now);
        return false;
    }
    const Exchange exchange{options.server_id, reading.server_id(), nonce_,
                            reading.nonce(),   options.instance,    reading.instance()};
    if (!options.secret.empty() &&
        (!hint_json::is_name(reading.nonce()) ||
         !same_mac(reading.mac(), challenge_mac(options.secret, exchange)))) {
        context_.figures.failed_mac.add();
        lose("its challenge was made with another secret", now);
        return false;
    }
    switch (kin_of(reading, options)) {
    case Kin::ourselves:
        leave_alone(reading.instance().empty(), now);
        return false;
    case Kin::namesake:
        if (!context_.namesakes.told(reading.instance())) {
            context_.namesakes.add(reading.instance());
            context_.log(plugin::LogLevel::warning,
                         "peer " + address_.text() + " has our own server id " + options.server_id +
                             ", and we are another broker, at " + options.listen.text() +
                             ": each broker needs one of its own; it is told hints all the same");
        }
        break;
    case Kin::other:
        break;
    }
    context_.roster.learnt(index_, reading.server_id());
    if (!options.secret.empty()) {
        say(make_frame(FrameType::answer,
                       "{\"mac\":\"" + answer_mac(options.secret, exchange) + "\"}"));
    }
    if (state_ == State::greeting) {
        become_ready(now);
    } else {
        write(now);
    }
    return static_cast<bool>(socket_);
}

/// @param by_id whether it is known by nothing else
void Outgoing::leave_alone(bool by_id, SteadyTime now) {
    if (told_error_ != "ourselves") {
        told_error_ = "ourselves";
        context_.log(plugin::LogLevel::info,
                     "peer " + address_.text() + " has our own server id " +
                         context_.options.server_id +
                         (by_id ? ": it is this broker, or one with a copy of its data directory"
                                : ": it is this broker") +
                         "; it is left alone");
    }
    close();
    state_ = State::ourselves;
    due_ = now + context_.options.ourselves_again;
}

void Outgoing::become_ready(SteadyTime now) {
    state_ = State::ready;
    ready_since_ = now;
    due_ = now + context_.options.heartbeat;
    if (was_ready_) {
        context_.figures.reconnects.add();
    }
    was_ready_ = true;
    told_error_.clear();
    context_.outbox.set_connected(index_, true);
    context_.roster.set_connected(index_, true);
    context_.log(plugin::LogLevel::info, "peer " + address_.text() + " is connected");
    say(heartbeat_frame(context_.options.server_id)); // it hears of us at once
    write(now);
}

void Outgoing::say(std::string frame) {
    writing_.push_back({std::make_shared<const std::string>(std::move(frame)), 0});
}

bool Outgoing::pump(SteadyTime now) {
    for (int turn = 0; turn < kWritesInARow; ++turn) {
        if (state_ != State::ready || blocked_) {
            return false;
        }
        if (writing_.size() < kBatch) {
            context_.outbox.take(index_, kBatch - writing_.size(), writing_);
        }
        if (writing_.empty()) {
            return false;
        }
        write(now);
    }
    return true;
}

bool Outgoing::write(SteadyTime now) {
    if (blocked_ || writing_.empty()) {
        return writing_.empty();
    }
    std::array<std::string_view, kBatch> pieces;
    const std::size_t count = std::min(writing_.size(), kBatch);
    for (std::size_t i = 0; i < count; ++i) {
        pieces[i] = *writing_[i].bytes;
    }
    pieces[0].remove_prefix(written_);
    std::size_t size = 0;
    const Flow flow = send(socket_, std::span(pieces).first(count), size);
    if (flow == Flow::closed) {
        lose("writing failed", now);
        return false;
    }
    progress_ = flow == Flow::done ? now : progress_;
    context_.figures.bytes_sent.add(size);
    std::size_t whole = 0;
    std::size_t hints = 0;
    written_ += size;
    while (whole < count && written_ >= writing_[whole].bytes->size()) {
        written_ -= writing_[whole].bytes->size();
        hints += writing_[whole].hints;
        ++whole;
    }
    writing_.erase(writing_.begin(), writing_.begin() + static_cast<std::ptrdiff_t>(whole));
    context_.figures.frames_sent.add(whole);
    context_.figures.hints_sent.add(hints);
    context_.roster.sent(index_, whole);
    if (whole < count) {
        blocked_ = true;
        context_.poller.change(socket_, key_, Poller::kRead | Poller::kWrite);
    }
    return writing_.empty();
}

void Outgoing::close() {
    socket_.reset();
    blocked_ = false;
    written_ = 0;
    context_.figures.dropped_stale.add(writing_.size());
    writing_.clear();
    if (state_ == State::ready) {
        context_.outbox.set_connected(index_, false);
        context_.roster.set_connected(index_, false);
    }
}

void Outgoing::lose(const std::string& why, SteadyTime now) {
    const bool was_ready = state_ == State::ready;
    if (was_ready && now - ready_since_ >= context_.options.last_retry) {
        retry_ = context_.options.first_retry;
    }
    close();
    if (was_ready || why != told_error_) {
        told_error_ = why;
        context_.log(plugin::LogLevel::warning,
                     "peer " + address_.text() + (was_ready ? " is lost: " : " is not reached: ") +
                         why + "; it is tried again for as long as it takes");
    }
    wait_longer(now);
}

void Outgoing::hurry(SteadyTime now) {
    if (state_ == State::idle && now >= hurry_again_) {
        hurry_again_ = now + context_.options.last_retry;
        due_ = now;
    }
}

bool Outgoing::is_at(std::string_view host) const {
    return std::any_of(endpoints_.begin(), endpoints_.end(),
                       [&](const Endpoint& endpoint) { return host_of(endpoint) == host; });
}

void Outgoing::wait_longer(SteadyTime now) {
    // Up to a quarter less, so that brokers that lost each other at once do not dial in step.
    std::uniform_real_distribution<double> part(0.75, 1.0);
    state_ = State::idle;
    due_ = now + std::chrono::duration_cast<Nanoseconds>(retry_ * part(random_));
    retry_ = std::min(2 * retry_, context_.options.last_retry);
}

} // namespace queen::mesh
