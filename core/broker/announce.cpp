#include "broker/announce.hpp"

#include "model/names.hpp"

#include <algorithm>

namespace queen::broker {

void Announcer::arrived(std::string_view tenant, std::string_view queue, plugin::Origin origin,
                        std::span<const Arrival> arrivals) {
    const auto key = queue_key(tenant, queue);
    const plugin::Queue named{key, tenant, queue};
    std::vector<plugin::Mark> marks;
    std::vector<std::string_view> partitions;
    for (const auto& arrival : arrivals) {
        marks.push_back({arrival.partition, arrival.partition_id, arrival.frames});
        partitions.push_back(arrival.partition);
    }
    for (const auto& entry : sources_.all()) {
        entry.source->mark(named, {}, origin, marks);
    }
    // Marks come first: whoever the wake resumes must find them.
    const auto urgency = origin == plugin::Origin::push || origin == plugin::Origin::timer
                             ? Parking::Urgency::coalesced
                             : Parking::Urgency::at_once;
    parking_.wake(key, {}, partitions, partitions.size(), urgency);
    parking_.wake(discovery_gate(tenant), {}, {}, partitions.size(), urgency);
    if (origin == plugin::Origin::peer || meshes_ == nullptr || !meshes_->listened()) {
        return;
    }
    std::vector<plugin::Hint> hints;
    hints.reserve(partitions.size());
    for (const auto partition : partitions) {
        hints.push_back({.kind = plugin::HintKind::stored,
                         .tenant = tenant,
                         .queue = queue,
                         .partition = partition});
    }
    meshes_->publish(hints);
}

void Announcer::released(std::string_view tenant, std::string_view queue,
                         std::string_view partition, const Uuid& partition_id,
                         std::string_view group, bool covered) {
    const auto key = queue_key(tenant, queue);
    const plugin::Queue named{key, tenant, queue};
    for (const auto& entry : sources_.all()) {
        entry.source->released(named, group, partition_id, covered);
    }
    parking_.wake(key, group, {&partition, 1}, 1, Parking::Urgency::at_once);
    parking_.wake(discovery_gate(tenant), group, {}, 1, Parking::Urgency::at_once);
}

void Announcer::configured(std::string_view tenant, std::string_view queue,
                           const plugin::QueueConfig& config) {
    const auto key = queue_key(tenant, queue);
    for (const auto& entry : sources_.all()) {
        entry.source->configured({key, tenant, queue}, config);
    }
    // What was withheld may not be any more, and new labels may be what a discovery waits for.
    parking_.wake(key, {}, {}, 1, Parking::Urgency::at_once);
    parking_.wake(discovery_gate(tenant), {}, {}, 1, Parking::Urgency::at_once);
}

void Announcer::forget(std::string_view tenant, std::string_view queue, std::string_view group) {
    for (const auto& entry : sources_.all()) {
        entry.source->forget(tenant, queue, group);
    }
    const auto key = queue_key(tenant, queue);
    parking_.wake(key, group, {}, 1, Parking::Urgency::at_once);
    parking_.wake(discovery_gate(tenant), group, {}, 1, Parking::Urgency::at_once);
}

void Announcer::wake(std::string_view tenant, std::string_view queue, std::string_view group,
                     std::string_view partition) {
    const std::span partitions(&partition, partition.empty() ? 0 : 1);
    parking_.wake(queue_key(tenant, queue), group, partitions, 1, Parking::Urgency::at_once);
    parking_.wake(discovery_gate(tenant), group, {}, 1, Parking::Urgency::at_once);
}

void Announcer::tell_peers(const plugin::Hint& hint) {
    if (meshes_ != nullptr && meshes_->listened()) {
        meshes_->publish({&hint, 1});
    }
}

void Announcer::moved(std::string_view tenant, std::string_view queue, std::string_view group,
                      std::string_view partition, const Uuid& partition_id) {
    const auto key = queue_key(tenant, queue);
    const plugin::Queue named{key, tenant, queue};
    const plugin::Mark mark{partition, partition_id, 1};
    for (const auto& entry : sources_.all()) {
        entry.source->mark(named, group, plugin::Origin::transaction, {&mark, 1});
        // Whoever waits for the end of the lease that was there would wait in vain.
        entry.source->released(named, group, partition_id, false);
    }
    parking_.wake(key, group, {&partition, 1}, 1, Parking::Urgency::at_once);
    parking_.wake(discovery_gate(tenant), group, {}, 1, Parking::Urgency::at_once);
}

} // namespace queen::broker
