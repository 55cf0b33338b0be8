#include "channel.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace queen::meshpg {
namespace {

using namespace std::chrono_literals;
using plugin::HintKind;

std::string head_of(std::string_view server_id, std::string_view instance) {
    std::string out = "{\"server_id\":";
    hint_json::append_text(out, server_id);
    out += ",\"instance\":";
    hint_json::append_text(out, instance);
    return out;
}

} // namespace

Channel::Channel(const Options& options, const Clock& clock, plugin::MeshHost& host, const Log& log,
                 std::string instance, Session::Connect connect)
    : options_(options), clock_(clock), host_(host), log_(log),
      head_(head_of(options.server_id, instance) + ",\"items\":["), instance_(std::move(instance)),
      outbox_(options.pending, [this] { wake(); }),
      session_([this] { wake(); }, std::move(connect)), retry_(options.first_retry) {}

void Channel::publish(std::span<const plugin::Hint> hints) {
    figures_.dropped_full.add(outbox_.publish(hints));
}

void Channel::turn(Nanoseconds most) {
    SteadyTime now = clock_.now();
    if (session_.state() == Session::State::closed && now >= retry_at_) {
        connect(now);
    }
    look_after(now);
    const SteadyTime next = due();
    wait(next <= now ? 0ns : std::min(most, next - now));
    now = clock_.now();
    serve(now);
    look_after(now);
    send(now);
}

bool Channel::wait(Nanoseconds most) {
    std::array<pollfd, 2> sets{};
    sets[0] = {wakeup_.descriptor().get(), POLLIN, 0};
    nfds_t count = 1;
    if (session_.socket() >= 0) {
        const bool writes = session_.wants_write();
        const auto events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
        sets[count++] = {session_.socket(), events, 0};
    }
    constexpr std::chrono::milliseconds kLongest = 1h;
    static_cast<void>(::poll(
        sets.data(), count,
        static_cast<int>(
            std::min(kLongest, std::chrono::ceil<std::chrono::milliseconds>(most)).count())));
    wakeup_.reset();
    return count > 1 && sets[1].revents != 0;
}

SteadyTime Channel::due() const {
    switch (session_.state()) {
    case Session::State::closed:
        return retry_at_;
    case Session::State::connecting:
    case Session::State::busy:
        return patience_until_;
    case Session::State::idle:
        break;
    }
    return outbox_.size() > 0 ? std::min(heartbeat_at_, flush_at_) : heartbeat_at_;
}

void Channel::connect(SteadyTime now) {
    figures_.connects.add();
    patience_until_ = now + options_.patience;
    if (!session_.open(options_.conninfo, options_.channel)) {
        lose(session_.error(), now);
    }
}

void Channel::lose(const std::string& why, SteadyTime now) {
    session_.close();
    if (listening_) {
        listening_ = false;
        lost_ = true;
        figures_.connected.store(false, std::memory_order_relaxed);
        if (now - connected_at_ >= options_.last_retry) {
            retry_ = options_.first_retry;
        }
        told_error_.clear();
    } else {
        figures_.connects_failed.add();
    }
    figures_.dropped_stale.add(outbox_.set_listened(false));
    if (told_error_ != why) { // a database that stays away costs one line
        told_error_ = why;
        log_(plugin::LogLevel::warning, "hints neither go out nor come in: " + why);
    }
    retry_at_ = now + retry_;
    retry_ = std::min(2 * retry_, options_.last_retry);
}

void Channel::serve(SteadyTime now) {
    if (session_.state() == Session::State::closed) {
        return;
    }
    if (!session_.advance(
            [&](std::string_view payload, int sender) { hear(payload, sender, now); })) {
        lose(session_.error(), now);
        return;
    }
    if (session_.state() != Session::State::idle) {
        if (now >= patience_until_) {
            lose("the database does not answer", now);
        }
        return;
    }
    patience_until_ = SteadyTime::max();
    if (!listening_) {
        listening_ = true;
        connected_at_ = now;
        heartbeat_at_ = now; // whoever is there hears of us at once
        figures_.connected.store(true, std::memory_order_relaxed);
        figures_.reconnects.add(was_connected_ ? 1 : 0);
        was_connected_ = true;
        told_error_.clear();
        log_(plugin::LogLevel::info, "listening to channel " + options_.channel);
        host_.missed(); // what others said before it is not told to this session
    }
}

void Channel::hear(std::string_view payload, int sender, SteadyTime now) {
    if (!reading_.read(payload) || !hint_json::is_name(reading_.server_id())) {
        figures_.bad.add();
        return;
    }
    if (reading_.instance() == instance_) {
        return; // PostgreSQL tells the sender too
    }
    figures_.notifications_received.add();
    bool missed = meet(reading_.server_id(), reading_.instance(), sender, now);
    hints_.clear();
    std::size_t skipped = reading_.skipped();
    for (const hint_json::Item& item : reading_.items()) {
        bool taken = false;
        if (item.kind.empty()) {
            taken = hints_.add(HintKind::stored, item);
        } else if (item.kind == "moved") {
            taken = hints_.add(HintKind::moved, item);
        } else if (item.kind == "configured") {
            taken = hints_.add(HintKind::configured, item);
        } else if (item.kind == "deleted") {
            taken = hints_.add(HintKind::deleted, item);
        } else if (item.kind == "switched") {
            taken = hints_.add_switch(item.subject, item.enabled);
        } else if (item.kind == "missed") {
            taken = missed = true;
        }
        skipped += taken ? 0 : 1;
    }
    figures_.items_skipped.add(skipped);
    const auto& hints = hints_.hints();
    if (!hints.empty()) {
        if (allowed(sender, hints.size(), now)) {
            figures_.hints_received.add(hints.size());
            host_.heard(hints);
        } else {
            figures_.dropped_flood.add(hints.size());
            missed = true;
        }
    }
    if (missed) {
        host_.missed();
    }
}

void Channel::tell_of_namesake(const std::string& who, std::string_view instance, int sender) {
    if (!namesakes_.told(instance)) {
        namesakes_.add(instance);
        log_(plugin::LogLevel::warning,
             who + " by the session of process " + std::to_string(sender) +
                 " of the database: each broker needs a server id of its own");
    }
}

bool Channel::meet(std::string_view server_id, std::string_view instance, int sender,
                   SteadyTime now) {
    if (server_id == options_.server_id && !instance.empty()) {
        tell_of_namesake("another broker says our own server id " + options_.server_id, instance,
                         sender);
    }
    const std::lock_guard lock(servers_mutex_);
    const auto [row, added] = servers_.heard(server_id);
    auto& [id, server] = row;
    const bool news = added || now - server.last >= options_.dead_threshold;
    server.last = now;
    ++server.received;
    // It sends hints only while it knows of others. What it said first may have been said to
    // nobody in particular; the second thing answers our heartbeat, or comes after it.
    const bool missed = news || server.new_here;
    server.new_here = news;
    if (server.instance != instance) { // a new process of it, or one of two that take turns
        if (!server.former.empty() && server.former == instance) {
            tell_of_namesake("two brokers have the server id " + id + ", one of them is heard",
                             instance, sender);
        }
        server.former = std::exchange(server.instance, instance);
    }
    if (news) {
        heartbeat_at_ = now; // it may not know of us
        log_(plugin::LogLevel::info, "broker " + id + " is heard from");
    }
    return missed;
}

/// Notifications cannot be made to wait: what one session does not read fills a queue that all of
/// the database shares. So what is too much is dropped. A payload says what it likes, so the sender
/// is known by what PostgreSQL says, its session. Who makes a new one begins with a quarter.
bool Channel::allowed(int sender, std::size_t hints, SteadyTime now) {
    constexpr std::size_t kMostSenders = 1024;
    const auto rate = static_cast<double>(options_.hints_per_second);
    if (allowances_.size() >= kMostSenders && !allowances_.contains(sender)) {
        allowances_.erase(std::min_element(
            allowances_.begin(), allowances_.end(),
            [](const auto& a, const auto& b) { return a.second.filled < b.second.filled; }));
    }
    auto& [left, filled] = allowances_.try_emplace(sender, Allowance{rate / 4, now}).first->second;
    const double seconds = std::chrono::duration<double>(now - filled).count();
    filled = now;
    left = std::min(rate, left + seconds * rate);
    if (left < static_cast<double>(hints)) {
        return false;
    }
    left -= static_cast<double>(hints);
    return true;
}

std::size_t Channel::alive() const {
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(servers_mutex_);
    return servers_.alive(now, options_.dead_threshold);
}

void Channel::look_after(SteadyTime now) {
    {
        const std::lock_guard lock(servers_mutex_);
        servers_.forget(now);
    }
    const bool listened = listening_ && alive() > 0;
    if (listened != outbox_.listened()) {
        // Whoever we did not hear may have heard us: when he is back he is told that there was
        // more.
        lost_ = lost_ || !listened;
        figures_.dropped_stale.add(outbox_.set_listened(listened));
    }
}

void Channel::send(SteadyTime now) {
    if (session_.state() != Session::State::idle) {
        return;
    }
    std::vector<std::string> payloads;
    if (now >= heartbeat_at_) {
        heartbeat_at_ = now + options_.heartbeat;
        payloads.push_back(head_of(options_.server_id, instance_) + "}");
    }
    std::size_t hints = 0;
    if (now >= flush_at_ && outbox_.size() > 0) {
        // The first hint after a rest goes at once, those of the next moments together.
        flush_at_ = now + options_.flush;
        hints = outbox_.take(head_, options_.payload, options_.payloads, payloads);
    }
    const std::uint64_t full = figures_.dropped_full.value();
    lost_ = lost_ || std::exchange(told_full_, full) != full;
    const bool tells = lost_ && outbox_.listened() && outbox_.size() == 0;
    if (tells) {
        payloads.push_back(head_ + "{\"kind\":\"missed\"}]}");
    }
    if (payloads.empty()) {
        return;
    }
    lost_ = lost_ && !tells;
    patience_until_ = now + options_.patience;
    if (!session_.notify(options_.channel, payloads)) {
        figures_.dropped_stale.add(hints);
        lose(session_.error(), now);
        return;
    }
    figures_.notifications_sent.add(payloads.size());
    figures_.hints_sent.add(hints);
}

void Channel::drain(Nanoseconds most) {
    const SteadyTime end = clock_.now() + most;
    heartbeat_at_ = SteadyTime::max();
    bool waited = false;
    for (SteadyTime now = clock_.now(); now < end && listening_; now = clock_.now()) {
        flush_at_ = now;
        send(now);
        // A statement that is not answered may not be done when the session ends.
        if (session_.state() != Session::State::busy && outbox_.size() == 0) {
            return;
        }
        if (!wait(end - now) && std::exchange(waited, true)) {
            return; // the first time it may have been a wake
        }
        serve(clock_.now());
    }
}

void Channel::close() {
    session_.close();
    listening_ = false;
    figures_.connected.store(false, std::memory_order_relaxed);
    figures_.dropped_stale.add(outbox_.set_listened(false));
}

void Channel::fault(const std::string& why) {
    figures_.faults.add();
    lose(why, clock_.now());
}

void Channel::stats(plugin::Stats& out) const {
    const auto add = [&](const char* name, std::uint64_t value) {
        out.add(name, static_cast<double>(value));
    };
    std::size_t living = 0;
    std::size_t known = 0;
    {
        const SteadyTime now = clock_.now();
        const std::lock_guard lock(servers_mutex_);
        living = servers_.alive(now, options_.dead_threshold);
        known = servers_.rows().size();
    }
    add("connected", figures_.connected.load() ? 1 : 0);
    add("servers_alive", living);
    add("servers_dead", known - living);
    add("pending", outbox_.size());
    add("notifications_sent_total", figures_.notifications_sent.value());
    add("notifications_received_total", figures_.notifications_received.value());
    add("notifications_bad_total", figures_.bad.value());
    add("hints_sent_total", figures_.hints_sent.value());
    add("hints_received_total", figures_.hints_received.value());
    add("hints_dropped_full_total", figures_.dropped_full.value());
    add("hints_dropped_stale_total", figures_.dropped_stale.value());
    add("hints_dropped_flood_total", figures_.dropped_flood.value());
    add("items_skipped_total", figures_.items_skipped.value());
    add("connects_total", figures_.connects.value());
    add("connects_failed_total", figures_.connects_failed.value());
    add("reconnects_total", figures_.reconnects.value());
    add("faults_total", figures_.faults.value());
}

void Channel::peers(plugin::Peers& out) const {
    const SteadyTime now = clock_.now();
    const bool connected = figures_.connected.load(std::memory_order_relaxed);
    const std::lock_guard lock(servers_mutex_);
    for (const auto& [id, server] : servers_.rows()) {
        plugin::Peer peer;
        peer.address = options_.channel;
        peer.server_id = id;
        peer.silent = now - server.last;
        peer.alive = peer.silent < options_.dead_threshold;
        peer.connected = connected && peer.alive;
        peer.received = server.received;
        out.add(peer);
    }
}

} // namespace queen::meshpg
