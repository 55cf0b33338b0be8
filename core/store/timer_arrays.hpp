#pragma once
#include "ports/timer_store.hpp"
#include "store/parameters.hpp"

#include <string_view>
#include <vector>

namespace queen::store {

/// Wishes about timers as the parallel arrays that procedures take them in. Keeps views into the
/// operations, which outlive the statement.
class TimerArrays {
public:
    explicit TimerArrays(const std::vector<TimerOp>& ops);
    /// kinds, queues, keys, transaction ids, partitions, delays, ids, payloads, compressed,
    /// encrypted
    void add_to(Parameters& parameters) const;

private:
    std::vector<std::string_view> kinds_, queues_, keys_, txns_, partitions_, payloads_;
    std::vector<std::int64_t> delays_;
    std::vector<Uuid> ids_;
    std::vector<bool> zstd_, encrypted_;
};

/// Rows in hand, likewise.
class TimerKeyArrays {
public:
    /// @errors invalid_argument: a tenant is no uuid
    static Result<TimerKeyArrays> of(const std::vector<TimerClaimKey>& rows);
    /// tenants, queues, keys
    void add_keys(Parameters& parameters) const;
    void add_tokens(Parameters& parameters) const;

private:
    std::vector<Uuid> tenants_, tokens_;
    std::vector<std::string_view> queues_, keys_;
};

/// What became of a wish, from the words of log_timers_apply_v1. @errors internal
Result<TimerVerdict::Kind> timer_verdict(std::string_view word);

} // namespace queen::store
