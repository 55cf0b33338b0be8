#pragma once
#include "metrics/activity.hpp"
#include "ports/store.hpp"

#include <queen/plugin/types.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace queen::broker {

struct PopRequest;

/// Whether there is anything for this pop: what a probe asks.
PendingQuery pending_query(const PopRequest& request);

/// Asks the store whether a scope has anything pending, once for all who ask at the same time. A
/// probe that already runs is not shared: it may have begun before the caller's ticket, and its
/// "no" would be a lost wake. Those who come meanwhile share the next one.
///
/// Invariant: at most one probe per scope runs.
/// Locks: `mutex_` is a leaf.
class PendingProbe {
public:
    using Answer = std::function<void(const Result<bool>&)>;
    /// `counters` outlive the probe.
    PendingProbe(Store& store, const Clock& clock, std::chrono::milliseconds wait,
                 metrics::PopCounters& counters);
    /// @thread worker; `answer` runs once, on a worker.
    void ask(const PendingQuery& query, Answer answer);
    /// Whether a probe of this scope may be asked again: at most one per `interval`. Remembers yes.
    bool due(const PendingQuery& query, std::chrono::milliseconds interval);

    /// What a probe led to was found: there may be more, so the next may be asked at once.
    void found(const PendingQuery& query);

private:
    struct Running {
        std::vector<Answer> now;
        std::vector<Answer> next;
    };
    void run(const std::string& key, const PendingQuery& query);

    Store& store_;
    const Clock& clock_;
    const std::chrono::milliseconds wait_;
    metrics::PopCounters& counters_;
    std::mutex mutex_;
    std::unordered_map<std::string, Running> running_;
    std::unordered_map<std::string, SteadyTime> asked_;
};

} // namespace queen::broker
