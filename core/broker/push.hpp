#pragma once
#include "broker/announce.hpp"
#include "broker/encryption.hpp"
#include "broker/segment_packer.hpp"
#include "metrics/activity.hpp"
#include "ports/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace queen::broker {

class DedupCache;

struct PushRequest {
    std::string tenant;
    std::vector<PushItem> items;
    std::shared_ptr<const std::string> hold; ///< owns the bytes behind the payloads
    std::string producer_sub{};              ///< of the token it came with; empty: none (PUSH-6)
};

enum class PushStatus { queued, duplicate, buffered, failed, error };

struct PushItemResult {
    PushStatus status = PushStatus::error;
    Uuid message_id; ///< of a duplicate the first message's; all zero when its segment is gone
    std::string transaction_id;
    std::optional<Offset> offset; ///< queued and duplicate
    std::string error;            ///< why, for status error
};

/// Stores messages: one segment per (queue, partition) of the request, all in one transaction; a
/// group that the store refuses does not fail its neighbours (PUSH-4, FUS-9). Announces what was
/// stored before the answer goes out.
/// Payloads go out encrypted or not as the store wants them: what comes back for its form is packed
/// again and sent again; without a key a queue that wants encryption refuses the item (ENC-1,
/// ENC-5). Locks: none of its own.
class Push {
public:
    struct Options {
        int zstd_level = 3;
        std::chrono::milliseconds wait{30'000};        ///< for a session
        std::size_t call_segments = 256;               ///< most segments in one statement
        std::size_t call_bytes = 8u << 20;             ///< most blob bytes in one statement
        std::shared_ptr<metrics::Activity> activity{}; ///< what is counted into; null: its own
        std::shared_ptr<Encryption> encryption{};      ///< null: no key
    };
    /// Without a cache the store compares everything itself (DED-4).
    Push(Store& store, Announcer& announcer, const Clock& clock, Options options,
         DedupCache* dedup = nullptr);
    /// Results in item order. @thread worker; `done` runs once, on a worker.
    void push(PushRequest request, std::function<void(std::vector<PushItemResult>)> done);

private:
    struct Job;
    Store& store_;
    Announcer& announcer_;
    const Clock& clock_;
    Options options_;
    DedupCache* dedup_;
    Uuid7 ids_;
    const SegmentPacker packer_;
    const std::shared_ptr<metrics::Activity> activity_;
    const std::shared_ptr<Encryption> encryption_; ///< never null
};

} // namespace queen::broker
