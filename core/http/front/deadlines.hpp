// http/front/deadlines.hpp - the time limits of all connections, at constant cost.
//
// Every limit of one kind lasts equally long, so connections of a kind expire in the order in which
// they were started: one linked list a kind, new ones at its end. Starting, restarting and ending a
// limit touch two neighbours; looking for the next expiry looks at the heads.
#pragma once
#include <queen/plugin/types.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace queen::http {

/// What a connection is waited for.
enum class Wait : std::uint8_t { idle, head, body, write, linger, none };
inline constexpr std::size_t kWaits = 5;

/// One connection's place; a base of the connection.
struct DeadlineEntry {
    DeadlineEntry* previous = nullptr;
    DeadlineEntry* next = nullptr;
    SteadyTime due{};
    Wait wait = Wait::none;
};

/// Invariant: an entry is in the list of its `wait`, or in none when that is `none`; it must be
/// ended before it is destroyed. @thread the front's
class Deadlines {
public:
    using Durations = std::array<std::chrono::milliseconds, kWaits>; ///< by Wait

    explicit Deadlines(const Durations& durations) noexcept : durations_(durations) {}

    /// Starts (or starts again) the limit of `wait`, whatever ran before.
    void start(DeadlineEntry& entry, Wait wait, SteadyTime now) noexcept {
        end(entry);
        if (wait == Wait::none) {
            return;
        }
        List& list = lists_[static_cast<std::size_t>(wait)];
        entry.wait = wait;
        entry.due = now + durations_[static_cast<std::size_t>(wait)];
        entry.previous = list.last;
        (list.last == nullptr ? list.first : list.last->next) = &entry;
        list.last = &entry;
    }

    void end(DeadlineEntry& entry) noexcept {
        if (entry.wait == Wait::none) {
            return;
        }
        List& list = lists_[static_cast<std::size_t>(entry.wait)];
        (entry.previous == nullptr ? list.first : entry.previous->next) = entry.next;
        (entry.next == nullptr ? list.last : entry.next->previous) = entry.previous;
        entry.previous = entry.next = nullptr;
        entry.wait = Wait::none;
    }

    /// When the next limit ends.
    std::optional<SteadyTime> next() const noexcept {
        std::optional<SteadyTime> soonest;
        for (const List& list : lists_) {
            if (list.first != nullptr && (!soonest || list.first->due < *soonest)) {
                soonest = list.first->due;
            }
        }
        return soonest;
    }

    /// An entry whose limit is over, still in its list; nullptr when there is none.
    DeadlineEntry* expired(SteadyTime now) noexcept {
        for (const List& list : lists_) {
            if (list.first != nullptr && list.first->due <= now) {
                return list.first;
            }
        }
        return nullptr;
    }

private:
    struct List {
        DeadlineEntry* first = nullptr;
        DeadlineEntry* last = nullptr;
    };
    Durations durations_;
    std::array<List, kWaits> lists_{};
};

} // namespace queen::http
