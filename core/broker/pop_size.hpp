// broker/pop_size.hpp - how much a pop takes at most.
#pragma once
#include <queen/plugin/candidates.hpp>

#include <cstdint>
#include <optional>

namespace queen::broker {

/// Most messages of a pop, and most partitions they come from.
struct PopSize {
    std::int32_t batch = 1;
    std::int32_t partitions = 1;
    friend bool operator==(const PopSize&, const PopSize&) = default;
};

/// What a pop leaves to the broker (PF-2).
struct Autopilot {
    bool batch = false;
    bool partitions = false;
};

/// Most partitions of a pop that does not say how many itself.
inline constexpr std::int32_t kMostChosenPartitions = 64;

/// The batch that is chosen: large enough that a claim's cost is shared by many messages, small
/// enough that a lease is over in time (a guess; Queen MQ's own).
inline constexpr std::int32_t kChosenBatch = 100;

/// Partitions when the source cannot tell what is ready (a guess).
inline constexpr std::int32_t kBlindPartitions = 8;

/// `asked`, with what is left to the broker filled in. Partitions: as many as it takes to fill the
/// batch from what is ready, half of those that are ready at most, so that whoever pops beside this
/// one finds some, too; with conflation one for each message of the batch. The same for the same
/// estimate.
/// @param ready what the source sees; nullopt when nobody was asked
/// @source PF-2
PopSize choose_size(PopSize asked, Autopilot left, const std::optional<plugin::Readiness>& ready,
                    bool conflates);

} // namespace queen::broker
