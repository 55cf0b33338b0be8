#include "http/pop_writer.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

namespace queen::http {
namespace {

// What every message of one partition repeats, as JSON strings.
struct Common {
    std::string partition_id, partition, lease, group;
};

void write_message(json::Writer& writer, const Common& common, const Frame& frame,
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
    writer.key("data").raw(frame.payload.empty() ? std::string_view("null") : frame.payload);
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

Result<void> write_segment(json::Writer& writer, const Common& common, const PoppedSegment& segment,
                           std::int32_t attempt) {
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
    }
    return {};
}

std::size_t message_count(const broker::PopBatch& batch) noexcept {
    std::size_t count = 0;
    for (const PoppedPartition& partition : batch.partitions) {
        for (const PoppedSegment& segment : partition.segments) {
            count += segment.take;
        }
    }
    return count;
}

} // namespace

Result<std::string> render_pop(const broker::PopRequest& request, const broker::PopBatch& batch) {
    const std::size_t messages = message_count(batch);
    if (messages == 0) {
        return std::string();
    }
    constexpr std::size_t kBytesPerMessage = 512; // a guess: about 380 without the payload
    std::string body;
    body.reserve(messages * kBytesPerMessage);
    const PoppedPartition& first = batch.partitions.front();
    json::Writer writer(body);
    writer.begin_object();
    writer.key("success").boolean(true);
    writer.key("queue").string(request.queue); // empty on discovery
    writer.key("partition").string(first.partition);
    writer.key("partitionId").string(to_string(first.partition_id));
    writer.key("leaseId").string(batch.lease_id);
    writer.key("consumerGroup").string(request.group);
    writer.key("messages").begin_array();
    Common common;
    common.lease = json::quoted(batch.lease_id);
    common.group = json::quoted(request.group);
    for (const PoppedPartition& partition : batch.partitions) {
        common.partition_id = json::quoted(to_string(partition.partition_id));
        common.partition = json::quoted(partition.partition);
        for (const PoppedSegment& segment : partition.segments) {
            if (auto ok = write_segment(writer, common, segment, partition.attempt); !ok) {
                return fail(ok.error().code, "partition " + partition.partition + " (" +
                                                 to_string(partition.partition_id) +
                                                 "): " + ok.error().message);
            }
        }
    }
    writer.end_array();
    writer.key("partitionsClaimed").integer(static_cast<std::int64_t>(batch.partitions.size()));
    writer.end_object();
    return body;
}

} // namespace queen::http
