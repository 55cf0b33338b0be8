#include "broker/segment_packer.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"

#include <unordered_map>
#include <utility>

namespace queen::broker {

PushLayout lay_out(std::vector<PushItem>& items, Uuid7& ids) {
    PushLayout layout;
    layout.slots.reserve(items.size());
    std::unordered_map<std::string, std::size_t> leaders;
    std::unordered_map<std::string, std::size_t> group_of;
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto& item = items[i];
        const auto message_id = ids.next();
        if (item.transaction_id.empty()) {
            item.transaction_id = to_string(message_id);
        }
        auto key = item.queue;
        key.append(1, kKeySeparator).append(item.partition);
        const auto [group, fresh] = group_of.try_emplace(key, layout.groups.size());
        if (fresh) {
            layout.groups.push_back({item.queue, item.partition, {}});
        }
        key.append(1, kKeySeparator).append(item.transaction_id);
        const auto [leader, first] = leaders.try_emplace(std::move(key), i);
        layout.slots.push_back(
            {message_id, leader->second, hash_transaction_id(item.transaction_id)});
        if (first) {
            layout.groups[group->second].items.push_back(i);
        }
    }
    return layout;
}

PushSegment SegmentPacker::pack(const std::string& tenant, const PushLayout::Group& group,
                                const std::vector<PushItem>& items, const PushLayout& layout,
                                bool encrypted) const {
    QUEEN_ASSERT(!encrypted || cipher_ != nullptr, "nothing is encrypted without a key");
    PushSegment segment;
    segment.tenant = tenant;
    segment.queue = group.queue;
    segment.partition = group.partition;
    segment.count = static_cast<std::uint32_t>(group.items.size());
    segment.encrypted = encrypted;
    std::string frames;
    std::string sealed;
    for (const auto i : group.items) {
        const auto& item = items[i];
        if (encrypted) {
            sealed = cipher_->seal(item.payload);
        }
        // The lengths of id and subject were checked with the request, so a frame cannot be refused
        // here.
        (void)append_frame(frames, {.message_id = layout.slots[i].message_id,
                                    .trace_id = item.trace_id,
                                    .transaction_id = item.transaction_id,
                                    .producer_sub = item.producer_sub,
                                    .payload = encrypted ? sealed : item.payload,
                                    .encrypted = encrypted});
        segment.hashes.append(layout.slots[i].hash.view());
    }
    segment.blob = compress_segment(frames, zstd_level_);
    return segment;
}

std::string dedup_key(std::string_view tenant, std::string_view queue, std::string_view partition) {
    std::string key(tenant);
    key.append(1, kKeySeparator).append(queue);
    key.append(1, kKeySeparator).append(partition);
    return key;
}

} // namespace queen::broker
