#pragma once
#include "model/encryption.hpp"
#include "model/hash.hpp"
#include "model/uuid7.hpp"
#include "ports/store.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

/// One message to store. Names and ids were checked by the caller.
struct PushItem {
    std::string queue;
    std::string partition;
    std::string transaction_id; ///< empty: the minted message id
    std::string_view payload;   ///< exact bytes of the request, which outlives the item
    Uuid trace_id{};            ///< unknown: none; carried by transactions only (PUSH-6)
    /// The subject of the token that the request came with, nobody else's word; empty: none
    /// (PUSH-6).
    std::string_view producer_sub{};
};

/// The messages of one request, put in order for storing: each with its id, and those of one
/// (queue, partition) together, since they become one segment.
struct PushLayout {
    struct Slot {
        Uuid message_id;
        std::size_t leader; ///< first item of the request with the same queue, partition and id
        TxnHash hash;
    };
    /// The items of one (queue, partition), in request order, without repeats (PUSH-3).
    struct Group {
        std::string queue;
        std::string partition;
        std::vector<std::size_t> items;
    };
    std::vector<Slot> slots;   ///< by item
    std::vector<Group> groups; ///< in the order in which the request names them
};

/// Mints message ids, gives items without a transaction id theirs (PUSH-2), and groups.
PushLayout lay_out(std::vector<PushItem>& items, Uuid7& ids);

/// Makes segments of messages: the one place where a frame is put together, for pushes and
/// transactions alike.
/// @thread any
class SegmentPacker {
public:
    /// @param cipher null: the broker has no key; outlives the packer
    explicit SegmentPacker(int zstd_level, const Cipher* cipher = nullptr)
        : zstd_level_(zstd_level), cipher_(cipher) {}
    /// @param group of `layout`, which is of `items`
    /// @param encrypted seal each payload and mark its frame; needs a key (ENC-5)
    PushSegment pack(const std::string& tenant, const PushLayout::Group& group,
                     const std::vector<PushItem>& items, const PushLayout& layout,
                     bool encrypted = false) const;

private:
    int zstd_level_;
    const Cipher* cipher_;
};

/// What the dedup cache calls a partition.
std::string dedup_key(std::string_view tenant, std::string_view queue, std::string_view partition);

} // namespace queen::broker
