#pragma once
#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace queen::broker {

/// Where the pages of lists ended, for clients that page by an offset. A list that grows at its
/// front would show them the same rows again; a page that is asked for by the offset at which an
/// earlier one ended goes on behind that one's last row instead (K41), which also spares the store
/// counting the rows before it.
///
/// A mark is a hint that ages: after kKeep, beyond kMost marks, or on another broker, the offset is
/// counted from the newest row.
/// Locks: `mutex_` is a leaf.
/// @thread any
/// @source K41
template <class Key>
class PageMarks {
public:
    static constexpr std::size_t kMost = 4096;      ///< 4 MiB with names at their longest
    static constexpr std::chrono::minutes kKeep{5}; ///< a guess: a person reads one page

    explicit PageMarks(const Clock& clock) : clock_(clock) {}

    /// A page of `question` ended with the row `last`; the next begins at `offset`.
    void ended(const std::string& question, std::int64_t offset, const Key& last) {
        const std::lock_guard lock(mutex_);
        const SteadyTime now = clock_.now();
        std::string name = name_of(question, offset);
        marks_[name] = {last, now + kKeep, ++turn_};
        order_.emplace_back(std::move(name), turn_);
        while (order_.size() > kMost || (!order_.empty() && stale(order_.front(), now))) {
            const auto found = marks_.find(order_.front().first);
            if (found != marks_.end() && found->second.turn == order_.front().second) {
                marks_.erase(found);
            }
            order_.pop_front();
        }
    }
    /// The row behind which the page at this offset begins; nullopt: count.
    std::optional<Key> begin(const std::string& question, std::int64_t offset) const {
        const std::lock_guard lock(mutex_);
        const auto found = marks_.find(name_of(question, offset));
        if (found == marks_.end() || found->second.until < clock_.now()) {
            return std::nullopt;
        }
        return found->second.last;
    }

private:
    struct Mark {
        Key last;
        SteadyTime until;
        std::uint64_t turn = 0; ///< which of several of the same name
    };
    using Named = std::pair<std::string, std::uint64_t>;

    static std::string name_of(const std::string& question, std::int64_t offset) {
        return std::to_string(offset) + " " + question;
    }
    // Requires mutex_. A mark that was overwritten, or is too old.
    bool stale(const Named& named, SteadyTime now) const {
        const auto found = marks_.find(named.first);
        return found == marks_.end() || found->second.turn != named.second ||
               found->second.until < now;
    }

    const Clock& clock_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, Mark> marks_;
    std::deque<Named> order_; ///< oldest first
    std::uint64_t turn_ = 0;
};

} // namespace queen::broker
