#pragma once
#include "broker/parking.hpp"
#include "broker/sources.hpp"

#include <queen/plugin/candidates.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

struct Arrival {
    std::string partition;
    Uuid partition_id;
    std::uint64_t frames = 1;
};

/// The one place that tells the rest of this broker that something may be popped, before the answer
/// of whoever caused it goes out (POST-3). Marks go to every loaded source; then the wake gate
/// opens.
/// @thread worker
class Announcer {
public:
    Announcer(const Sources& sources, Parking& parking) : sources_(sources), parking_(parking) {}
    /// Messages were stored. Pushes wake coalesced (5 ms), transactions at once.
    void arrived(std::string_view tenant, std::string_view queue, plugin::Origin origin,
                 std::span<const Arrival> arrivals);
    /// A lease ended before its time was up.
    void released(std::string_view tenant, std::string_view queue, std::string_view partition,
                  const Uuid& partition_id, std::string_view group, bool covered);
    /// The queue has these settings now (RES-5). One waiter of each scope there, and of each
    /// discovery, looks again.
    void configured(std::string_view tenant, std::string_view queue,
                    const plugin::QueueConfig& config);
    /// What sources know of a queue or group is void; one waiter of each scope there, and of each
    /// discovery, looks again.
    void forget(std::string_view tenant, std::string_view queue, std::string_view group);
    /// The cursor of a group in one partition was moved, and no lease is left there.
    void moved(std::string_view tenant, std::string_view queue, std::string_view group,
               std::string_view partition, const Uuid& partition_id);

private:
    const Sources& sources_;
    Parking& parking_;
};

} // namespace queen::broker
