#include "broker/pop_size.hpp"

#include <algorithm>

namespace queen::broker {
namespace {

std::int32_t choose_partitions(std::int32_t batch, const std::optional<plugin::Readiness>& ready,
                               bool conflates) {
    if (conflates) {
        return std::clamp(batch, 1, kMostChosenPartitions);
    }
    if (!ready || ready->partitions == 0) {
        return kBlindPartitions;
    }
    const std::uint64_t each = std::max<std::uint64_t>(ready->messages / ready->partitions, 1);
    const std::uint64_t wanted = (static_cast<std::uint64_t>(batch) + each - 1) / each;
    const std::uint64_t half = ready->partitions / 2 + ready->partitions % 2;
    return static_cast<std::int32_t>(
        std::min({wanted, half, static_cast<std::uint64_t>(kMostChosenPartitions)}));
}

} // namespace

PopSize choose_size(PopSize asked, Autopilot left, const std::optional<plugin::Readiness>& ready,
                    bool conflates) {
    if (left.batch) {
        asked.batch = kChosenBatch;
    }
    if (left.partitions) {
        asked.partitions = choose_partitions(asked.batch, ready, conflates);
    }
    return asked;
}

} // namespace queen::broker
