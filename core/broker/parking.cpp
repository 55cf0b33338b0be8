#include "broker/parking.hpp"

#include "base/assert.hpp"
#include "model/names.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <set>

namespace queen::broker {
namespace {

constexpr std::size_t kShards = 16;
/// Long intervals end on this grid, early rather than late, so that thousands of quiet scopes are
/// looked at in a few bursts: each look by itself costs two thread switches, several times its work
/// (60 % of the CPU of 3,000 parked pops, perf, 2026-11-29).
constexpr std::chrono::milliseconds kFloorGrid{50};
/// Looks of one burst that are one piece of work. More would hold up what is queued behind; a
/// guess.
constexpr std::size_t kLooksTogether = 64;

SteadyTime floor_after(SteadyTime now, Nanoseconds interval) {
    const auto due = now + interval;
    return interval < 10 * kFloorGrid ? due
                                      : due - due.time_since_epoch() % Nanoseconds(kFloorGrid);
}

/// A coalesced wake remembers this many partitions, then means all of them.
constexpr std::size_t kMaxPendingPartitions = 256;

} // namespace

std::string scope_member(std::string_view group, const std::optional<std::string>& partition,
                         const std::optional<std::pair<std::string, std::string>>& labels) {
    // Names hold no control characters, so the separator keeps the parts apart.
    std::string key(group);
    if (partition) {
        key.append(1, kKeySeparator).append("p").append(*partition);
    } else if (labels) {
        key.append(1, kKeySeparator).append("d").append(labels->first);
        key.append(1, kKeySeparator).append(labels->second);
    }
    return key;
}

std::string discovery_gate(std::string_view tenant) {
    // No queue has an empty name, so this key is nobody else's.
    return queue_key(tenant, {});
}

Nanoseconds Backoff::interval(std::int64_t attempt) const noexcept {
    using FloatMillis = std::chrono::duration<double, std::milli>;
    if (attempt <= threshold) {
        return std::min<Nanoseconds>(initial, max);
    }
    const FloatMillis grown{static_cast<double>(initial.count()) * static_cast<double>(attempt) *
                            multiplier};
    const auto bounded = std::min(grown, FloatMillis(max));
    return std::max(std::chrono::duration_cast<Nanoseconds>(bounded),
                    Nanoseconds{std::chrono::milliseconds{1}});
}

struct Parking::Scope {
    std::string member;
    std::string group;
    std::optional<std::string> partition;
    std::size_t places = 0;
    std::uint64_t version = 0;                                ///< moved by each wake
    std::map<std::uint64_t, std::shared_ptr<Waiter>> waiters; ///< by seat
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<Waiter>>
        held; ///< by need and seat
    std::int64_t attempt = 1;
    Ticker::Id timer = 0; ///< 0: none
    SteadyTime due{};
};

struct Parking::Gate {
    std::string key;
    std::size_t parked = 0;                                         ///< waiters of all scopes
    std::unordered_map<std::string, std::unique_ptr<Scope>> scopes; ///< by member
    std::set<Scope*> wide;                                          ///< wildcard and discovery
    std::unordered_map<std::string, std::set<Scope*>> pinned;       ///< by partition
    std::optional<SteadyTime> last_wake;
    bool pending = false; ///< a coalesced wake is due
    std::uint64_t pending_count = 0;
    bool pending_all = false;
    std::set<std::string> pending_partitions;

    /// Every wildcard and discovery scope of the group (empty: any).
    template <class Visit>
    void each_wide(std::string_view group, Visit visit) {
        each_of(wide, group, visit);
    }
    /// Every scope of the group (empty: any) that an event in `partitions` concerns.
    template <class Visit>
    void each(std::string_view group, std::span<const std::string_view> partitions, Visit visit) {
        each_wide(group, visit);
        if (partitions.empty()) {
            for (auto& [name, scopes_of] : pinned) {
                each_of(scopes_of, group, visit);
            }
            return;
        }
        for (const auto partition : partitions) {
            if (const auto found = pinned.find(std::string(partition)); found != pinned.end()) {
                each_of(found->second, group, visit);
            }
        }
    }

private:
    template <class Visit>
    static void each_of(const std::set<Scope*>& scopes, std::string_view group, Visit visit) {
        for (Scope* scope : scopes) {
            if (group.empty() || scope->group == group) {
                visit(*scope);
            }
        }
    }
};

struct Parking::Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<Gate>> gates;
    std::uint64_t next_seat = 1;

    Gate* find(std::string_view key) {
        const auto found = gates.find(std::string(key));
        return found == gates.end() ? nullptr : found->second.get();
    }
};

namespace {

/// Takes up to `count` waiters in order. Requires the shard's mutex.
template <class Waiters, class Resumes>
std::size_t take_waiters(Waiters& waiters, std::uint64_t count, Resumes& out) {
    std::size_t taken = 0;
    while (taken < count && !waiters.empty()) {
        const auto first = waiters.begin();
        out.push_back(std::move(first->second));
        waiters.erase(first);
        ++taken;
    }
    return taken;
}

/// An event concerns the scope: whoever took a ticket before looks again, and up to `count` of
/// those who are parked, then of those who are held, are resumed. Requires the shard's mutex.
/// @return how many are
template <class Scope, class Resumes>
std::size_t touch(Scope& scope, std::uint64_t count, Resumes& out) {
    ++scope.version;
    scope.attempt = 1;
    const auto parked = take_waiters(scope.waiters, count, out);
    return parked + take_waiters(scope.held, count - parked, out);
}

template <class Resumes>
void resume_all(const Resumes& waiters) {
    for (const auto& waiter : waiters) {
        waiter->resume();
    }
}

} // namespace

Parking::Parking(Ticker& ticker, const Clock& clock, Backoff backoff)
    : ticker_(ticker), clock_(clock), backoff_(backoff) {
    for (std::size_t i = 0; i < kShards; ++i) {
        shards_.push_back(std::make_unique<Shard>());
    }
}

Parking::~Parking() {
    for (const auto& shard : shards_) {
        QUEEN_ASSERT(shard->gates.empty(), "a pop outlived the parking it entered");
    }
}

Parking::Place::~Place() {
    parking_.exit(*this);
}

Parking::Shard& Parking::shard_of(std::string_view gate) noexcept {
    return *shards_[std::hash<std::string_view>{}(gate) % kShards];
}

std::unique_ptr<Parking::Place> Parking::enter(const WaitScope& wanted) {
    auto& shard = shard_of(wanted.gate);
    const std::lock_guard lock(shard.mutex);
    auto& gate = shard.gates[wanted.gate];
    if (!gate) {
        gate = std::make_unique<Gate>();
        gate->key = wanted.gate;
    }
    auto member = scope_member(wanted.group, wanted.partition, wanted.labels);
    auto& scope = gate->scopes[member];
    if (!scope) {
        scope = std::make_unique<Scope>();
        scope->member = std::move(member);
        scope->group = wanted.group;
        scope->partition = wanted.partition;
        if (wanted.partition) {
            gate->pinned[*wanted.partition].insert(scope.get());
        } else {
            gate->wide.insert(scope.get());
        }
    }
    ++scope->places;
    return std::unique_ptr<Place>(new Place(*this, shard, *gate, *scope, shard.next_seat++));
}

void Parking::exit(Place& place) {
    auto& shard = place.shard_;
    auto& gate = place.gate_;
    auto& scope = place.scope_;
    Ticker::Id timer = 0;
    std::shared_ptr<Waiter> left; // destroyed after the lock: it may own the last reference
    {
        const std::lock_guard lock(shard.mutex);
        left = remove(place);
        if (--scope.places > 0) {
            return;
        }
        timer = scope.timer;
        if (scope.partition) {
            const auto at = gate.pinned.find(*scope.partition);
            at->second.erase(&scope);
            if (at->second.empty()) {
                gate.pinned.erase(at);
            }
        } else {
            gate.wide.erase(&scope);
        }
        gate.scopes.erase(gate.scopes.find(scope.member));
        if (gate.scopes.empty()) {
            shard.gates.erase(shard.gates.find(gate.key));
        }
    }
    if (timer != 0) {
        ticker_.cancel(timer);
    }
}

void Parking::ticket(Place& place) {
    const std::lock_guard lock(place.shard_.mutex);
    place.ticket_ = place.scope_.version;
}

bool Parking::park(Place& place, std::shared_ptr<Waiter> waiter, SteadyTime next_due) {
    auto& scope = place.scope_;
    const auto now = clock_.now();
    SteadyTime due;
    Ticker::Id replaced = 0;
    {
        const std::lock_guard lock(place.shard_.mutex);
        if (closed() || scope.version != place.ticket_) {
            park_refused_.add();
            return false;
        }
        scope.waiters.emplace(place.seat_, std::move(waiter));
        parked_.fetch_add(1, std::memory_order_relaxed);
        ++place.gate_.parked;
        due = std::min(floor_after(now, backoff_.interval(scope.attempt)), std::max(next_due, now));
        if (scope.timer != 0 && scope.due <= due) {
            return true;
        }
        replaced = scope.timer;
        scope.due = due;
        // The ticker never runs a task inside at(), so arming under the lock cannot re-enter.
        scope.timer = ticker_.at(due, [this, &shard = place.shard_, gate = place.gate_.key,
                                       member = scope.member] { floor_due(shard, gate, member); });
    }
    if (replaced != 0) {
        ticker_.cancel(replaced);
    }
    return true;
}

bool Parking::hold(Place& place, std::shared_ptr<Waiter> waiter, std::uint64_t need) {
    const std::lock_guard lock(place.shard_.mutex);
    if (closed() || place.scope_.version != place.ticket_) {
        park_refused_.add();
        return false;
    }
    place.need_ = need;
    place.scope_.held.emplace(std::pair(place.need_, place.seat_), std::move(waiter));
    parked_.fetch_add(1, std::memory_order_relaxed);
    ++place.gate_.parked;
    return true;
}

std::shared_ptr<Waiter> Parking::remove(Place& place) {
    const auto take = [&](auto& waiters, const auto& key) -> std::shared_ptr<Waiter> {
        const auto found = waiters.find(key);
        if (found == waiters.end()) {
            return nullptr;
        }
        auto waiter = std::move(found->second);
        waiters.erase(found);
        left(place.gate_, 1);
        return waiter;
    };
    auto waiter = take(place.scope_.waiters, place.seat_);
    return waiter ? std::move(waiter)
                  : take(place.scope_.held, std::pair(place.need_, place.seat_));
}

bool Parking::leave(Place& place) {
    std::shared_ptr<Waiter> left; // released after the lock
    const std::lock_guard lock(place.shard_.mutex);
    left = remove(place);
    return left != nullptr;
}

void Parking::pass_on(Place& place) {
    Resumes resumes;
    {
        const std::lock_guard lock(place.shard_.mutex);
        const bool current = place.ticket_ == place.scope_.version;
        left(place.gate_, touch(place.scope_, 1, resumes));
        if (current) {
            place.ticket_ = place.scope_.version;
        }
    }
    passed_on_.add(resumes.size());
    resume_all(resumes);
}

void Parking::wake(std::string_view key, std::string_view group,
                   std::span<const std::string_view> partitions, std::uint64_t count,
                   Urgency urgency) {
    auto& shard = shard_of(key);
    Resumes resumes;
    {
        const std::lock_guard lock(shard.mutex);
        auto* gate = shard.find(key);
        if (gate == nullptr) {
            return; // nobody has a ticket: whoever comes later looks after the event
        }
        const auto now = clock_.now();
        if (urgency == Urgency::coalesced) {
            if (gate->last_wake && now - *gate->last_wake < kCoalesce) {
                gate->pending_count += count;
                for (const auto partition : partitions) {
                    gate->pending_partitions.emplace(partition);
                }
                gate->pending_all |=
                    partitions.empty() || gate->pending_partitions.size() > kMaxPendingPartitions;
                if (!gate->pending) {
                    gate->pending = true;
                    ticker_.at(*gate->last_wake + kCoalesce,
                               [this, &shard, name = gate->key] { coalesced_due(shard, name); });
                }
                return;
            }
            gate->last_wake = now;
        }
        gate->each(group, partitions, [&](Scope& scope) {
            left(*gate, touch(scope, scope.partition ? 1 : count, resumes));
        });
    }
    woken_.add(resumes.size());
    resume_all(resumes);
}

void Parking::wake_wildcards(std::string_view key, std::string_view group, std::uint64_t count) {
    auto& shard = shard_of(key);
    Resumes resumes;
    {
        const std::lock_guard lock(shard.mutex);
        auto* gate = shard.find(key);
        if (gate == nullptr) {
            return;
        }
        gate->each_wide(group, [&](Scope& scope) { left(*gate, touch(scope, count, resumes)); });
    }
    woken_.add(resumes.size());
    resume_all(resumes);
}

void Parking::coalesced_due(Shard& shard, const std::string& key) {
    std::uint64_t count = 0;
    std::set<std::string> names;
    {
        const std::lock_guard lock(shard.mutex);
        auto* gate = shard.find(key);
        if (gate == nullptr || !gate->pending) {
            return;
        }
        gate->pending = false;
        gate->last_wake.reset(); // the quiet time is over: the wake below is the next one
        count = std::exchange(gate->pending_count, 0);
        names = std::exchange(gate->pending_partitions, {});
        if (std::exchange(gate->pending_all, false)) {
            names.clear();
        }
    }
    const std::vector<std::string_view> partitions(names.begin(), names.end());
    wake(key, {}, partitions, count, Urgency::coalesced);
}

void Parking::floor_due(Shard& shard, const std::string& key, const std::string& member) {
    Resumes resumes;
    {
        const std::lock_guard lock(shard.mutex);
        auto* gate = shard.find(key);
        if (gate == nullptr) {
            return;
        }
        const auto found = gate->scopes.find(member);
        if (found == gate->scopes.end()) {
            return;
        }
        auto& scope = *found->second;
        const auto now = clock_.now();
        if (scope.timer == 0 || scope.due > now) {
            return; // replaced by a later timer of its own
        }
        scope.timer = 0;
        if (scope.waiters.empty()) {
            return; // everyone was woken meanwhile; the next to park arms a new one
        }
        ++scope.attempt;
        left(*gate, take_waiters(scope.waiters, 1, resumes));
        if (!scope.waiters.empty()) {
            scope.due = floor_after(now, backoff_.interval(scope.attempt));
            scope.timer = ticker_.at(
                scope.due, [this, &shard, key, member] { floor_due(shard, key, member); });
        }
    }
    floor_looks_.add(resumes.size());
    look_soon(std::move(resumes));
}

/// Scopes whose floors fall on one instant look together: what they have in common is a thread that
/// has to wake. The ticker runs what is due now before what is added now, so the burst is complete
/// when look_together() runs.
void Parking::look_soon(Resumes resumes) {
    if (resumes.empty()) {
        return;
    }
    {
        const std::lock_guard lock(floor_mutex_);
        if (!closed()) {
            if (floor_waiters_.empty()) {
                ticker_.at(clock_.now(), [this] { look_together(); });
            }
            std::move(resumes.begin(), resumes.end(), std::back_inserter(floor_waiters_));
            return;
        }
    }
    resume_all(resumes);
}

void Parking::look_together() {
    Resumes waiters;
    {
        const std::lock_guard lock(floor_mutex_);
        waiters.swap(floor_waiters_);
    }
    for (std::size_t begin = 0; begin < waiters.size(); begin += kLooksTogether) {
        const auto end = std::min(begin + kLooksTogether, waiters.size());
        waiters[begin]->resume_together({waiters.begin() + static_cast<std::ptrdiff_t>(begin),
                                         waiters.begin() + static_cast<std::ptrdiff_t>(end)});
    }
}

void Parking::wake_each_scope() {
    Resumes resumes;
    for (const auto& shard : shards_) {
        const std::lock_guard lock(shard->mutex);
        for (auto& [key, gate] : shard->gates) {
            for (auto& [member, scope] : gate->scopes) {
                left(*gate, touch(*scope, 1, resumes));
            }
        }
    }
    floor_looks_.add(resumes.size());
    look_soon(std::move(resumes));
}

Parking::Resumes Parking::take_everyone() {
    Resumes resumes;
    {
        const std::lock_guard lock(floor_mutex_);
        resumes.swap(floor_waiters_);
    }
    for (const auto& shard : shards_) {
        const std::lock_guard lock(shard->mutex);
        for (auto& [key, gate] : shard->gates) {
            for (auto& [member, scope] : gate->scopes) {
                ++scope->version;
                left(*gate, take_waiters(scope->waiters, scope->waiters.size(), resumes));
                left(*gate, take_waiters(scope->held, scope->held.size(), resumes));
            }
        }
    }
    return resumes;
}

void Parking::wake_everyone() {
    const Resumes resumes = take_everyone();
    woken_.add(resumes.size());
    resume_all(resumes);
}

void Parking::close() {
    closed_.store(true);
    resume_all(take_everyone());
}

bool Parking::closed() const noexcept {
    return closed_.load();
}

std::size_t Parking::parked() const noexcept {
    return parked_.load(std::memory_order_relaxed);
}

void Parking::left(Gate& gate, std::size_t waiters) noexcept {
    gate.parked -= waiters;
    parked_.fetch_sub(waiters, std::memory_order_relaxed);
}

Parking::Statistics Parking::statistics() const noexcept {
    return {.woken = woken_.value(),
            .passed_on = passed_on_.value(),
            .floor_looks = floor_looks_.value(),
            .park_refused = park_refused_.value()};
}

std::vector<std::pair<std::string, std::uint64_t>> Parking::parked_by_queue() const {
    std::vector<std::pair<std::string, std::uint64_t>> out;
    for (const auto& shard : shards_) {
        const auto before = out.size();
        const auto visit = [&out](const auto& entry) {
            const std::string_view key = entry.first;
            const auto queue = key.substr(key.find(kKeySeparator) + 1);
            if (entry.second->parked > 0 && !queue.empty()) {
                out.emplace_back(queue, entry.second->parked);
            }
        };
        visit_in_slices(
            shard->mutex, shard->gates, [&] { out.resize(before); }, visit);
    }
    return out;
}

void Parking::add_holders(QueueHolders& holders) const {
    for (const auto& shard : shards_) {
        visit_in_slices(
            shard->mutex, shard->gates, [] {}, // who was added twice is there once
            [&holders](const auto& entry) { add_holder(holders, entry.first); });
    }
}

} // namespace queen::broker
