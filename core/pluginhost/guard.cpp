#include "pluginhost/guard.hpp"

#include <algorithm>
#include <bit>

namespace queen::pluginhost {
namespace {

/// Scopes remembered after a pause. Beyond it the memory starts anew: some scopes are then called
/// stale a second time, which costs each a reseed. A guess, not measured.
constexpr std::size_t kMostRefreshed = 100'000;

} // namespace

std::string_view to_string(Fault fault) noexcept {
    switch (fault) {
    case Fault::error_return:
        return "error_return";
    case Fault::exception:
        return "exception";
    case Fault::bad_answer:
        return "bad_answer";
    case Fault::bad_name:
        return "bad_name";
    case Fault::repeated_name:
        return "repeated_name";
    case Fault::too_many_names:
        return "too_many_names";
    case Fault::no_names:
        return "no_names";
    case Fault::unknown_name:
        return "unknown_name";
    case Fault::slow_call:
        return "slow_call";
    case Fault::paused:
        return "paused";
    case Fault::unsettled:
        return "unsettled";
    case Fault::bad_hint:
        return "bad_hint";
    case Fault::dropped_hint:
        return "dropped_hint";
    case Fault::bad_request:
        return "bad_request";
    case Fault::out_of_turn:
        return "out_of_turn";
    }
    return "";
}

std::string_view to_string(Call call) noexcept {
    switch (call) {
    case Call::peek:
        return "peek";
    case Call::take:
        return "take";
    case Call::settle:
        return "settle";
    case Call::mark:
        return "mark";
    case Call::released:
        return "released";
    case Call::learn:
        return "learn";
    case Call::forget:
        return "forget";
    case Call::configured:
        return "configured";
    case Call::reseed_page:
        return "reseed_page";
    case Call::reseed_done:
        return "reseed_done";
    case Call::tick:
        return "tick";
    case Call::stats:
        return "stats";
    case Call::listened:
        return "listened";
    case Call::publish:
        return "publish";
    case Call::peers:
        return "peers";
    case Call::scheduled:
        return "scheduled";
    case Call::answered:
        return "answered";
    case Call::missed:
        return "missed";
    }
    return "";
}

std::uint64_t FaultCounts::total() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : by_kind) {
        sum += count;
    }
    return sum;
}

thread_local Nanoseconds Guard::host_time_{0};

Guard::Guard(std::string plugin, GuardLimits limits, const HostServices& services)
    : plugin_(std::move(plugin)), limits_(limits), services_(services) {}

bool Guard::paused() const noexcept {
    // Never paused is the rule: then no clock is read.
    if (pauses_.load(std::memory_order_relaxed) == 0) {
        return false;
    }
    return services_.clock->now() < paused_until();
}

SteadyTime Guard::paused_until() const noexcept {
    return SteadyTime(Nanoseconds(paused_until_.load(std::memory_order_relaxed)));
}

bool Guard::stale(std::string_view queue_key, std::string_view group) {
    const std::uint64_t outdated = outdated_.load(std::memory_order_acquire);
    if (outdated == 0) {
        return false;
    }
    std::string scope;
    scope.reserve(queue_key.size() + 1 + group.size());
    scope.append(queue_key).append(1, '\x1f').append(group);
    const std::lock_guard lock(mutex_);
    if (refreshed_for_ != outdated || refreshed_.size() >= kMostRefreshed) {
        refreshed_.clear();
        refreshed_for_ = outdated;
    }
    return refreshed_.insert(std::move(scope)).second;
}

void Guard::measured(Call call, Nanoseconds spent, std::optional<Nanoseconds> used,
                     std::size_t things) noexcept {
    auto& streak = slow_in_a_row_[static_cast<std::size_t>(call)];
    const auto thousands =
        static_cast<std::int64_t>((std::max<std::size_t>(things, 1) + 999) / 1000);
    const bool waited = spent > limits_.wait_budget * thousands;
    if (spent <= limits_.budget * thousands ||
        (used && *used <= limits_.budget * thousands && !waited)) {
        if (streak.load(std::memory_order_relaxed) != 0) {
            streak.store(0, std::memory_order_relaxed);
        }
        return;
    }
    count(Fault::slow_call, to_string(call));
    if (call == Call::stats || call == Call::peers) {
        return; // who looks at figures must not change how pops find their messages
    }
    if (services_.thread_time == nullptr || used || waited) {
        slow(call, streak.fetch_add(1, std::memory_order_relaxed) + 1);
        return;
    }
    // Slow by the clock alone, as all calls that a busy machine held up at once: a suspicion.
    std::uint32_t none = 0;
    streak.compare_exchange_strong(none, 1, std::memory_order_relaxed);
}

void Guard::slow(Call call, std::uint32_t in_a_row) noexcept {
    if (in_a_row < limits_.slow_calls) {
        return;
    }
    slow_in_a_row_[static_cast<std::size_t>(call)].store(0, std::memory_order_relaxed);
    const SteadyTime now = services_.clock->now();
    auto until = paused_until_.load(std::memory_order_relaxed);
    if (now.time_since_epoch().count() < until ||
        !paused_until_.compare_exchange_strong(until,
                                               (now + limits_.pause).time_since_epoch().count())) {
        return; // a call that began before the pause, or one that lost the race to open it
    }
    pauses_.fetch_add(1, std::memory_order_release);
    outdate();
    count(Fault::paused, to_string(call));
}

void Guard::failed(Call call, const char* what) noexcept {
    try {
        count(Fault::exception, std::string(to_string(call)) + ": " + what);
    } catch (const std::bad_alloc&) {
        count(Fault::exception, to_string(call));
    }
}

void Guard::count(Fault fault, std::string_view detail, std::uint64_t times) noexcept {
    const std::uint64_t before =
        faults_[static_cast<std::size_t>(fault)].fetch_add(times, std::memory_order_relaxed);
    const std::uint64_t nth = before + times;
    // A plugin that fails in every call must not fill the disk: the 1st, 2nd, 4th, 8th ... is told.
    if (!services_.log || std::bit_floor(nth) <= before) {
        return;
    }
    try {
        services_.log(plugin_, QUEEN_LOG_WARNING,
                      "fault=" + std::string(to_string(fault)) + " count=" + std::to_string(nth) +
                          " in=\"" + std::string(detail) + "\"");
    } catch (const std::exception&) {
        // Out of memory for a log line: the counter has the fault all the same.
        return;
    }
}

FaultCounts Guard::counts() const noexcept {
    FaultCounts counts;
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        counts.by_kind[i] = faults_[i].load(std::memory_order_relaxed);
    }
    return counts;
}

} // namespace queen::pluginhost
