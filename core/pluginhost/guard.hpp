// pluginhost/guard.hpp - watches every call into a plugin. A plugin is trusted code, so this is no
// fence: a call that never returns costs its worker, a crash is a crash. What it does: a fault is
// counted by kind and logged with the plugin's name, and a plugin that is slow three times in a row
// is left alone for a while, during which the broker goes on without it.
//
// Slow is what costs the processor's time: on a busy machine any call may take long by the clock,
// and so may one that waits for a lock of another that was interrupted. The clock is cheap to read,
// the thread's time is not. So the clock speaks first: one call that is slow by it makes a suspect
// of its function, and of a suspect the thread's time is read as well, which confirms it or clears
// it:
//
//   fine --slow by the clock--> suspect --slow by its thread's time, twice in a row--> paused
//     ^--------------------------'  not slow by that
//
// A call that takes far longer by the clock, as one that waits for a network, is slow in any case.
#pragma once
#include "pluginhost/host_services.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace queen::pluginhost {

/// What a plugin did wrong. Numbers index the counters.
enum class Fault {
    error_return = 0, ///< a call answered non-zero
    exception,        ///< a C++ exception came out of a call
    bad_answer,       ///< a value outside of its enumeration
    bad_name,         ///< no bytes, more than 255, or with a NUL
    repeated_name,    ///< offered twice in one take
    too_many_names,   ///< beyond the limit of the take
    no_names,         ///< said "names" and gave none
    unknown_name,     ///< the store knows no such partition; reported by the core
    slow_call,        ///< longer than the budget
    paused,           ///< three slow calls in a row: left alone for a while
    unsettled,        ///< the core lost a selection; given back with no verdicts
    bad_hint,         ///< a mesh heard what is no hint: its kind or a name
    dropped_hint,     ///< news that a paused plugin was not told
    bad_request,      ///< asked the host for what makes no sense, as a batch it does not have
    out_of_turn,      ///< called the host before its start or after its stop
};
inline constexpr std::size_t kFaultKinds = 15;
std::string_view to_string(Fault fault) noexcept;

struct FaultCounts {
    std::array<std::uint64_t, kFaultKinds> by_kind{};
    std::uint64_t operator[](Fault fault) const noexcept {
        return by_kind[static_cast<std::size_t>(fault)];
    }
    std::uint64_t total() const noexcept;
};

/// The functions of all tables that are measured, for counting slow streaks apart.
enum class Call {
    peek = 0,
    take,
    settle,
    mark,
    released,
    learn,
    forget,
    configured,
    reseed_page,
    reseed_done,
    tick,
    stats,
    listened,
    publish,
    peers,
    scheduled,
    answered,
    missed,
};
inline constexpr std::size_t kCalls = 18;
std::string_view to_string(Call call) noexcept;

struct GuardLimits {
    Nanoseconds budget =
        std::chrono::milliseconds(1); ///< of one call, per thousand things it is given
    std::uint32_t slow_calls = 3;     ///< in a row, of one function
    Nanoseconds pause = std::chrono::seconds(10);
    Nanoseconds wait_budget = std::chrono::milliseconds(100); ///< by the clock, else as `budget`
};

/// @thread any
/// Locks: `mutex_` is a leaf.
/// @source PLG-6
class Guard {
public:
    Guard(std::string plugin, GuardLimits limits, const HostServices& services);

    /// While one lives on a thread, time is the host's: what a plugin asks for inside of a call is
    /// not held against it. May be nested.
    class HostTime {
    public:
        explicit HostTime(const Clock& clock) noexcept
            : clock_(clock), before_(host_time_), begin_(clock.now()) {}
        HostTime(const HostTime&) = delete;
        HostTime& operator=(const HostTime&) = delete;
        ~HostTime() { host_time_ = before_ + (clock_.now() - begin_); }

    private:
        const Clock& clock_;
        const Nanoseconds before_;
        const SteadyTime begin_;
    };

    /// Runs one call: measured, exceptions caught and counted. @return what the call answered, or
    /// kThrew. `Body` returns int32_t; non-zero is counted as a fault unless it equals `fine`.
    /// @param things marks or rows the call is given: one page of a walk has 10,000
    template <class Body>
    std::int32_t run(Call call, Body&& body, std::int32_t fine = 0,
                     std::size_t things = 1) noexcept;
    static constexpr std::int32_t kThrew = INT32_MIN;

    /// True while the plugin is to be left alone.
    bool paused() const noexcept;
    SteadyTime paused_until() const noexcept;
    /// True exactly once per scope after each pause or outdate(): what the source knew of it is
    /// stale.
    bool stale(std::string_view queue_key, std::string_view group);
    /// What the source knows is stale, of every scope.
    void outdate() noexcept { outdated_.fetch_add(1, std::memory_order_release); }

    void count(Fault fault, std::string_view detail, std::uint64_t times = 1) noexcept;
    FaultCounts counts() const noexcept;

private:
    /// @param used of the processor; nothing when that was not read
    void measured(Call call, Nanoseconds spent, std::optional<Nanoseconds> used,
                  std::size_t things) noexcept;
    void slow(Call call, std::uint32_t in_a_row) noexcept;
    bool suspect(Call call) const noexcept {
        return services_.thread_time != nullptr &&
               slow_in_a_row_[static_cast<std::size_t>(call)].load(std::memory_order_relaxed) != 0;
    }
    void failed(Call call, const char* what) noexcept;

    static thread_local Nanoseconds host_time_; ///< of calls into the host, on this thread

    const std::string plugin_;
    const GuardLimits limits_;
    const HostServices& services_;
    std::array<std::atomic<std::uint64_t>, kFaultKinds> faults_{};
    std::array<std::atomic<std::uint32_t>, kCalls> slow_in_a_row_{};
    std::atomic<std::int64_t> paused_until_{INT64_MIN};
    std::atomic<std::uint64_t> pauses_{0};
    std::atomic<std::uint64_t> outdated_{0}; ///< times: by pauses and otherwise

    std::mutex mutex_;
    std::uint64_t refreshed_for_ = 0;           ///< that time of outdated_ refreshed_ belongs to
    std::unordered_set<std::string> refreshed_; ///< scopes looked at since
};

template <class Body>
std::int32_t Guard::run(Call call, Body&& body, std::int32_t fine, std::size_t things) noexcept {
    const Nanoseconds aside = host_time_;
    const bool suspected = suspect(call);
    const Nanoseconds used = suspected ? services_.thread_time() : Nanoseconds(0);
    const SteadyTime begin = services_.clock->now();
    std::int32_t answer = kThrew;
    // The plugin boundary is one of the places where exceptions end.
    try {
        answer = body();
    } catch (const std::exception& e) {
        failed(call, e.what());
    } catch (...) {
        failed(call, "an exception of unknown type");
    }
    const Nanoseconds hosts = host_time_ - aside;
    const Nanoseconds spent = services_.clock->now() - begin - hosts;
    measured(call, spent,
             suspected ? std::optional(services_.thread_time() - used - hosts) : std::nullopt,
             things);
    if (answer != 0 && answer != kThrew && answer != fine) {
        count(Fault::error_return, to_string(call));
    }
    return answer;
}

} // namespace queen::pluginhost
