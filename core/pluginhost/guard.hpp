// pluginhost/guard.hpp - watches every call into a plugin. A plugin is trusted code, so this is no
// fence: a call that never returns costs its worker, a crash is a crash. What it does: a fault is
// counted by kind and logged with the plugin's name, and a plugin that is slow three times in a row
// is left alone for a while, during which the broker lets the store scan.
#pragma once
#include "pluginhost/host_services.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
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
};
inline constexpr std::size_t kFaultKinds = 11;
std::string_view to_string(Fault fault) noexcept;

struct FaultCounts {
    std::array<std::uint64_t, kFaultKinds> by_kind{};
    std::uint64_t operator[](Fault fault) const noexcept {
        return by_kind[static_cast<std::size_t>(fault)];
    }
    std::uint64_t total() const noexcept;
};

/// The functions of a candidates table, for counting slow streaks apart.
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
};
inline constexpr std::size_t kCalls = 12;
std::string_view to_string(Call call) noexcept;

struct GuardLimits {
    Nanoseconds budget =
        std::chrono::milliseconds(1); ///< of one call, per thousand things it is given
    std::uint32_t slow_calls = 3;     ///< in a row, of one function
    Nanoseconds pause = std::chrono::seconds(10);
};

/// @thread any
/// Locks: `mutex_` is a leaf.
/// @source PLG-6
class Guard {
public:
    Guard(std::string plugin, GuardLimits limits, const HostServices& services);

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
    /// True exactly once per scope after each pause: what the source knew of it is stale.
    bool stale_after_pause(std::string_view queue_key, std::string_view group);

    void count(Fault fault, std::string_view detail) noexcept;
    FaultCounts counts() const noexcept;

private:
    void measured(Call call, Nanoseconds spent, std::size_t things) noexcept;
    void failed(Call call, const char* what) noexcept;

    const std::string plugin_;
    const GuardLimits limits_;
    const HostServices& services_;
    std::array<std::atomic<std::uint64_t>, kFaultKinds> faults_{};
    std::array<std::atomic<std::uint32_t>, kCalls> slow_in_a_row_{};
    std::atomic<std::int64_t> paused_until_{INT64_MIN};
    std::atomic<std::uint64_t> pauses_{0};

    std::mutex mutex_;
    std::uint64_t refreshed_for_ = 0;           ///< the pause that refreshed_ belongs to
    std::unordered_set<std::string> refreshed_; ///< scopes looked at since
};

template <class Body>
std::int32_t Guard::run(Call call, Body&& body, std::int32_t fine, std::size_t things) noexcept {
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
    measured(call, services_.clock->now() - begin, things);
    if (answer != 0 && answer != kThrew && answer != fine) {
        count(Fault::error_return, to_string(call));
    }
    return answer;
}

} // namespace queen::pluginhost
