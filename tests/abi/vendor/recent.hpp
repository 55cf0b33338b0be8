// recent.hpp - the partitions pushed to last, newest first.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace acme::recent {

struct Options {
    std::size_t capacity;             ///< partitions remembered per queue
    std::chrono::nanoseconds max_age; ///< an entry older than this is not offered
};

/// Offers the partitions pushed to last, and lets SQL scan when it knows none.
/// Hints only: the store alone decides who gets a lease, so a stale entry costs one claim.
///
/// Invariant: no queue holds more than `capacity` entries, newest last; at most kMostQueues queues.
/// Locks: `mutex_` is a leaf.
class Recent final : public queen::plugin::CandidateSource {
public:
    static constexpr std::size_t kMostQueues = 1000;

    Recent(Options options, const queen::Clock& clock) : options_(options), clock_(clock) {}
    queen::plugin::Readiness peek(const queen::plugin::Scope& scope) override;
    queen::plugin::Selection take(const queen::plugin::Take& take,
                                  queen::plugin::Names& out) override;
    void settle(const queen::plugin::Scope&, std::unique_ptr<queen::plugin::Cookie>,
                std::span<const queen::plugin::Verdict>) override {}
    void mark(const queen::plugin::Queue& queue, std::string_view group, queen::plugin::Origin,
              std::span<const queen::plugin::Mark> marks) override;

private:
    struct Entry {
        std::string partition;
        queen::SteadyTime marked;
    };
    bool fresh(const Entry& entry) const { return clock_.now() - entry.marked <= options_.max_age; }

    const Options options_;
    const queen::Clock& clock_;
    std::mutex mutex_;
    std::map<std::string, std::deque<Entry>, std::less<>> queues_;
};

} // namespace acme::recent
