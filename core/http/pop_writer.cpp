#include "http/pop_writer.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

#include <algorithm>

namespace queen::http {
namespace {

// What every message of one partition repeats, as JSON strings.
struct Common {
    std::string partition_id, partition, lease, group;
    const Cipher* cipher;
    std::string scratch; ///< a payload that was decrypted
};

void write_message(json::Writer& writer, Common& common, const Frame& frame,
                   std::string_view created_at, std::int32_t attempt, std::int64_t offset) {
    writer.begin_object();
    writer.key("id").string(to_string(frame.message_id));
    writer.key("transactionId").string(frame.transaction_id);
    writer.key("traceId");
    if (frame.trace_id.known()) {
        writer.string(to_string(frame.trace_id));
    } else {
        writer.null();
    }
    writer.key("data").raw(
        render_payload(frame.payload, frame.encrypted, common.cipher, common.scratch).json);
    writer.key("producerSub");
    if (frame.producer_sub.empty()) {
        writer.null();
    } else {
        writer.string(frame.producer_sub);
    }
    writer.key("createdAt").string(created_at);
    writer.key("partitionId").raw(common.partition_id);
    writer.key("partition").raw(common.partition);
    writer.key("leaseId").raw(common.lease);
    writer.key("consumerGroup").raw(common.group);
    writer.key("deliveryAttempt").integer(attempt);
    writer.key("offset").integer(offset);
    writer.end_object();
}

Result<void> write_segment(json::Writer& writer, Common& common, const PoppedSegment& segment,
                           std::int32_t attempt, std::vector<TxnHash>* hashes) {
    const auto bytes = decompress_segment(segment.blob);
    if (!bytes) {
        return fail(bytes.error());
    }
    const auto frames = parse_frames(*bytes);
    if (!frames) {
        return fail(frames.error());
    }
    const std::size_t end = std::size_t{segment.start} + segment.take;
    if (end > frames->size()) {
        return fail(Errc::corrupt, "the segment at offset " + std::to_string(segment.base.value()) +
                                       " has " + std::to_string(frames->size()) +
                                       " frames, the claim covers " + std::to_string(end));
    }
    const std::string created_at = format_micros(segment.created_at);
    for (std::size_t i = segment.start; i < end; ++i) {
        write_message(writer, common, (*frames)[i], created_at, attempt,
                      segment.base.value() + static_cast<std::int64_t>(i));
        if (hashes != nullptr) {
            hashes->push_back(hash_transaction_id((*frames)[i].transaction_id));
        }
    }
    return {};
}

Result<void> write_partition(json::Writer& writer, Common& common, const PoppedPartition& partition,
                             std::vector<TxnHash>* hashes) {
    common.partition_id = json::quoted(to_string(partition.partition_id));
    common.partition = json::quoted(partition.partition);
    for (const PoppedSegment& segment : partition.segments) {
        if (auto ok = write_segment(writer, common, segment, partition.attempt, hashes); !ok) {
            return fail(ok.error().code, "partition " + partition.partition + " (" +
                                             to_string(partition.partition_id) +
                                             "): " + ok.error().message);
        }
    }
    return {};
}

std::size_t message_count(const PoppedPartition& partition) noexcept {
    std::size_t count = 0;
    for (const PoppedSegment& segment : partition.segments) {
        count += segment.take;
    }
    return count;
}

// How the answer of any pop begins: `first` is null when nothing was claimed.
void write_head(json::Writer& writer, const broker::PopRequest& request,
                const broker::PopBatch& batch, const PoppedPartition* first) {
    writer.key("success").boolean(true);
    writer.key("queue").string(request.queue); // empty on discovery
    writer.key("partition").string(first ? first->partition : std::string());
    writer.key("partitionId").string(first ? to_string(first->partition_id) : std::string());
    writer.key("leaseId").string(batch.lease_id);
    writer.key("consumerGroup").string(request.group);
    writer.key("messages").begin_array();
}

void write_tail(json::Writer& writer, const broker::PopBatch& batch, std::size_t partitions) {
    writer.end_array();
    writer.key("partitionsClaimed").integer(static_cast<std::int64_t>(partitions));
    if (batch.conflates) {
        writer.key("conflation").boolean(true);
    }
    if (batch.conflict) {
        writer.key("conflationConflict").boolean(true);
    }
    if (batch.chosen) {
        writer.key("autopilot").begin_object();
        writer.key("partitions").integer(batch.chosen->partitions);
        writer.key("batch").integer(batch.chosen->batch);
        writer.end_object();
    }
}

} // namespace

std::string render_empty_pop(const broker::PopRequest& request, const broker::PopBatch& batch) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    write_head(writer, request, {}, nullptr);
    write_tail(writer, batch, 0);
    writer.end_object();
    return body;
}

Result<PopAnswer> render_pop(const broker::PopRequest& request, const broker::PopBatch& batch,
                             std::size_t limit, const Cipher* cipher) {
    constexpr std::size_t kBytesPerMessage = 512; // a guess: about 380 without the payload
    std::size_t messages = 0;
    for (const PoppedPartition& partition : batch.partitions) {
        messages += message_count(partition);
    }
    PopAnswer answer;
    if (messages == 0) {
        return answer;
    }
    answer.body.reserve(std::min(messages * kBytesPerMessage, limit));
    json::Writer writer(answer.body);
    writer.begin_object();
    write_head(writer, request, batch, &batch.partitions.front());
    Common common;
    common.cipher = cipher;
    common.lease = json::quoted(batch.lease_id);
    common.group = json::quoted(request.group);
    const bool leased = !batch.lease_id.empty();
    std::size_t written = 0;
    for (const PoppedPartition& partition : batch.partitions) {
        const std::size_t before = answer.body.size();
        std::vector<TxnHash> hashes;
        if (auto ok = write_partition(writer, common, partition, leased ? &hashes : nullptr); !ok) {
            return fail(ok.error());
        }
        if (leased && written > 0 && answer.body.size() > limit) {
            answer.body.resize(before); // ends after a message, so the writer's commas still fit
            break;
        }
        written += message_count(partition);
        ++answer.partitions;
        answer.hashes.push_back(std::move(hashes));
    }
    write_tail(writer, batch, answer.partitions);
    writer.end_object();
    return answer;
}

} // namespace queen::http
