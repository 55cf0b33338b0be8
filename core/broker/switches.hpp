// broker/switches.hpp - the switches of all brokers, as this one knows them.
//
// The database holds them. This broker reads them when it starts, 5 s later and then each interval,
// so a switch that is set on another broker holds here after one interval at the latest; one that
// is set here holds here when the answer goes out.
//
//   set   -> waits for the sets before it -> database -> known here -> answer
//   poll  -> database -> known here, unless a set began or ended meanwhile: its read may be older,
//            and one is read again when the sets are over
//
// What another broker says through a mesh is never believed: it only makes this one read.
#pragma once
#include "base/workers.hpp"
#include "broker/parking.hpp"
#include "ports/system_store.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::broker {

/// A switch as hints name it (plugin::Hint::subject).
constexpr std::string_view subject_of(SwitchKey key) noexcept {
    switch (key) {
    case SwitchKey::maintenance:
        return "maintenance";
    case SwitchKey::pop_maintenance:
        return "pop_maintenance";
    case SwitchKey::timers_schedule:
        return "timers_schedule";
    case SwitchKey::timers_fire:
        return "timers_fire";
    }
    return {}; // a number outside the enum
}

/// Pops ask whether they are paused, timers whether they are taken and fired; administrators set
/// it. When pops become paused everyone who waits looks once more, and so hears it.
///
/// Invariant: with nothing under way and no other broker that sets, what is known here is what the
/// database holds.
/// Locks: `mutex_` is a leaf; nothing is called while it is held.
/// @thread any
/// @source SWI-1, SWI-2, SWI-3
class Switches {
public:
    struct Options {
        std::chrono::milliseconds wait{30'000};        ///< for a session
        std::chrono::milliseconds every{60'000};       ///< between two reads
        std::function<void(const std::string&)> log{}; ///< a line when something changed or failed
        /// A switch was set here and holds; before the answer goes out.
        std::function<void(SwitchKey, bool enabled)> was_set{};
    };
    /// The first read after the start comes sooner than `every`: a broker that started while the
    /// database was away hears of a pause early.
    static constexpr std::chrono::seconds kFirst{5};

    Switches(SystemStore& store, Parking& parking, Ticker& ticker, const Clock& clock,
             Options options);

    /// Reads the switches and begins to read them again and again. `done` after the first read.
    void start(Done<void> done);
    /// No read begins any more.
    void stop();

    /// Reads now, or once more after the refresh that is under way: another broker set a switch.
    void refresh();

    bool pops_paused() const noexcept { return pops_paused_.load(std::memory_order_relaxed); }
    bool timers_schedule() const noexcept {
        return timers_schedule_.load(std::memory_order_relaxed);
    }
    bool timers_fire() const noexcept { return timers_fire_.load(std::memory_order_relaxed); }
    SwitchStates known() const;

    /// @errors (to done) those of the store; what is known here then changes with the next read
    void set(SwitchKey key, bool enabled, Done<SwitchStates> done);
    void pause_pops(bool paused, Done<SwitchStates> done) {
        set(SwitchKey::pop_maintenance, paused, std::move(done));
    }

private:
    struct Wanted {
        SwitchKey key;
        bool enabled;
        Done<SwitchStates> done;
    };
    void arm(std::chrono::milliseconds after);
    void read(Done<void> done);
    void refreshed();
    /// What changed by know(), for those who have to hear it.
    struct News {
        bool paused = false;
        std::vector<std::string> lines;
    };
    // Requires mutex_. In the same breath as the judgement of what is known now: an older read must
    // not come between.
    News know(const SwitchStates& states);
    void tell(const News& news);
    void set_next();

    SystemStore& store_;
    Parking& parking_;
    Ticker& ticker_;
    const Clock& clock_;
    const Options options_;
    std::atomic<bool> pops_paused_{false};
    std::atomic<bool> timers_schedule_{true}, timers_fire_{true};
    mutable std::mutex mutex_;
    SwitchStates known_;
    std::uint64_t sets_ = 0; ///< ended; a read during which one ended or is under way is dropped
    std::uint64_t reads_ = 0, believed_ = 0; ///< begun; the latest of them that was believed
    std::deque<Wanted> wanted_;              ///< the first one is under way
    bool setting_ = false;                   ///< from the first one's call to its answer
    /// A set failed or a read met a set, and no read was believed since: one begins after the sets.
    bool owed_ = false;
    bool running_ = false;
    bool refreshing_ = false, refresh_again_ = false;
    bool failing_ = false; ///< the last read failed, and that was logged
    Ticker::Id timer_ = 0;
};

} // namespace queen::broker
