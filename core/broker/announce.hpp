#pragma once
#include "broker/meshes.hpp"
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

/// The one place that tells the rest of this broker, and other brokers, that something may be
/// popped, before the answer of whoever caused it goes out (POST-3). Marks go to every loaded
/// source; then the wake gate opens; then the meshes hear of it. Without a mesh, or with one that
/// nobody listens to, that last step is one look at a flag.
/// @thread worker
/// @source ME-10, ME-11, ME-12
class Announcer {
public:
    /// @param meshes null: none
    Announcer(const Sources& sources, Parking& parking, Meshes* meshes = nullptr)
        : sources_(sources), parking_(parking), meshes_(meshes) {}
    /// Messages were stored. Pushes wake coalesced (5 ms), all else at once. Other brokers hear of
    /// it unless it was one of them that said so.
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
    /// Waiters of a group (empty: of every group) look again, at one partition (empty: at all).
    void wake(std::string_view tenant, std::string_view queue, std::string_view group,
              std::string_view partition);
    /// Tells other brokers what was done here and is more than arrived(): after what this broker
    /// itself makes of it.
    void tell_peers(const plugin::Hint& hint);
    /// The cursor of a group in one partition was moved, and no lease is left there.
    void moved(std::string_view tenant, std::string_view queue, std::string_view group,
               std::string_view partition, const Uuid& partition_id);

private:
    const Sources& sources_;
    Parking& parking_;
    Meshes* meshes_;
};

} // namespace queen::broker
