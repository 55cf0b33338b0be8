#pragma once
#include "ports/store.hpp"
#include "store/parameters.hpp"

#include <string_view>
#include <vector>

namespace queen::store {

/// Segments as the parallel arrays that procedures take them in. Keeps views into the segments,
/// which outlive the statement.
class PushArrays {
public:
    /// @errors invalid_argument: a tenant is no uuid
    static Result<PushArrays> of(const std::vector<PushSegment>& segments);

    /// queues, partitions, counts, hashes, verified, blobs
    void add_segments(Parameters& parameters) const;
    void add_tenants(Parameters& parameters) const;
    /// whether each is encrypted
    void add_forms(Parameters& parameters) const;
    /// partitions, from, upto, at
    void add_vouches(Parameters& parameters) const;

private:
    std::vector<std::string_view> queues_, partitions_, hashes_, blobs_;
    std::vector<std::int32_t> counts_;
    std::vector<std::int64_t> verified_, vouch_from_, vouch_upto_;
    std::vector<Uuid> tenants_, vouch_ids_;
    std::vector<WallTime> vouch_at_;
    std::vector<bool> encrypted_;
};

/// Dead letters that an ack or a transaction brings, as parallel arrays. Keeps views into them.
class LetterArrays {
public:
    void add(const Letter& letter);
    /// offsets, ids, transaction ids, traces, producers, payloads, encrypted, times
    void add_to(Parameters& parameters) const;

private:
    std::vector<std::int64_t> offsets_;
    std::vector<Uuid> ids_, traces_;
    std::vector<std::string_view> txns_, producers_, payloads_;
    std::vector<bool> encrypted_;
    std::vector<WallTime> times_;
};

/// The word of a status, as procedures know it.
std::string_view status_text(AckStatus status);

} // namespace queen::store
