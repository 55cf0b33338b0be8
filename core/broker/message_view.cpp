#include "broker/message_view.hpp"

#include "base/text.hpp"
#include "model/hash.hpp"

namespace queen::broker {
namespace {

void write_id(json::Writer& writer, std::string_view name, const Uuid& id) {
    writer.key(name);
    if (id.known()) {
        writer.string(to_string(id));
    } else {
        writer.null();
    }
}

void write_text(json::Writer& writer, std::string_view name, std::string_view text) {
    writer.key(name);
    if (text.empty()) {
        writer.null();
    } else {
        writer.string(text);
    }
}

void write_time(json::Writer& writer, std::string_view name, const std::optional<WallTime>& at) {
    writer.key(name);
    if (at) {
        writer.string(format_millis(*at));
    } else {
        writer.null();
    }
}

void write_names(json::Writer& writer, const MessagePlace& place) {
    writer.key("queuePath").string(place.queue + "/" + place.partition);
    writer.key("queue").string(place.queue);
    writer.key("partition").string(place.partition);
    writer.key("namespace").string(place.name_space);
    writer.key("task").string(place.task);
}

void write_standing(json::Writer& writer, const Standing& standing) {
    writer.key("status").string(word_of(standing.status));
    writer.key("queueStatus");
    if (standing.queue_mode) {
        writer.string(word_of(*standing.queue_mode));
    } else {
        writer.null();
    }
    writer.key("busStatus").begin_object();
    writer.key("consumedBy").integer(static_cast<std::int64_t>(standing.consumed_by));
    writer.key("totalGroups").integer(static_cast<std::int64_t>(standing.named_groups));
    writer.end_object();
}

} // namespace

std::string format_millis(WallTime at) {
    std::string text = format_micros(at); // ends in six digits and Z
    text.erase(text.size() - 4, 3);
    return text;
}

void write_payload(json::Writer& writer, std::string_view stored, bool encrypted, bool available,
                   const Cipher* cipher) {
    std::string scratch;
    const std::string_view json =
        available ? render_payload(stored, encrypted, cipher, scratch).json : "null";
    writer.key("data").raw(json);
    writer.key("payload").raw(json);
    writer.key("payloadAvailable").boolean(available);
    writer.key("isEncrypted").boolean(encrypted);
}

void write_letter(json::Writer& writer, const DeadLetter& letter, const Cipher* cipher) {
    writer.begin_object();
    writer.key("id").string(to_string(letter.id));
    write_id(writer, "messageId", letter.message_id);
    writer.key("transactionId").string(letter.transaction_id);
    writer.key("partitionId").string(to_string(letter.partition_id));
    writer.key("queue").string(letter.queue);
    writer.key("partition").string(letter.partition);
    if (letter.timer_key) {
        writer.key("timerKey").string(*letter.timer_key);
    }
    writer.key("consumerGroup").string(letter.group);
    writer.key("offset").integer(letter.offset.value());
    writer.key("errorMessage");
    if (letter.error) {
        writer.string(*letter.error);
    } else {
        writer.null();
    }
    writer.key("retryCount").integer(letter.retries);
    write_id(writer, "traceId", letter.trace_id);
    write_text(writer, "producerSub", letter.producer_sub);
    // Both are the moment it was given up, as clients of this API know it.
    write_time(writer, "createdAt", letter.failed_at);
    write_time(writer, "failedAt", letter.failed_at);
    write_payload(writer, letter.payload, letter.encrypted, letter.available, cipher);
    writer.end_object();
}

void write_message(json::Writer& writer, const MessageRow& row, const Cipher* cipher) {
    const Frame* frame = row.frame;
    writer.begin_object();
    write_id(writer, "id", frame != nullptr ? frame->message_id : Uuid{});
    write_text(writer, "transactionId", frame != nullptr ? frame->transaction_id : "");
    write_text(writer, "txnHash",
               frame != nullptr ? to_hex(hash_transaction_id(frame->transaction_id).view()) : "");
    writer.key("partitionId").string(to_string(row.place.partition_id));
    write_names(writer, row.place);
    write_standing(writer, row.standing);
    write_id(writer, "traceId", frame != nullptr ? frame->trace_id : Uuid{});
    write_text(writer, "producerSub", frame != nullptr ? frame->producer_sub : "");
    writer.key("queuePriority").integer(row.place.priority);
    writer.key("offset").integer(row.offset.value());
    writer.key("segment").begin_object();
    writer.key("seq").integer(row.base.value());
    writer.key("frameIdx").integer(row.offset.value() - row.base.value());
    writer.end_object();
    writer.key("createdAt").string(format_millis(row.created_at));
    write_time(writer, "leaseExpiresAt", row.standing.lease_expires_at);
    write_payload(writer, frame != nullptr ? frame->payload : "",
                  frame != nullptr && frame->encrypted, frame != nullptr && row.available, cipher);
    writer.end_object();
}

void write_mode(json::Writer& writer, const ConsumerMode& mode) {
    writer.begin_object();
    writer.key("hasQueueMode").boolean(mode.queue_mode);
    writer.key("busGroupsCount").integer(static_cast<std::int64_t>(mode.groups.size()));
    writer.key("type").string(mode.type());
    writer.end_object();
}

std::string render_detail(const MessageDetail& detail, const Cipher* cipher) {
    // What only the letter knows: names of a partition that is gone, the message of a segment that
    // is.
    MessagePlace of_letter;
    if (detail.letter != nullptr) {
        of_letter.partition_id = detail.letter->partition_id;
        of_letter.queue = detail.letter->queue;
        of_letter.partition = detail.letter->partition;
    }
    const MessagePlace& place = detail.found != nullptr ? detail.found->place : of_letter;
    Frame frame;
    std::optional<WallTime> created_at;
    Offset offset{-1};
    if (detail.frame != nullptr) {
        frame = *detail.frame;
        created_at = detail.found->segment->created_at;
        offset = *detail.found->offset;
    } else {
        frame = {.message_id = detail.letter->message_id,
                 .trace_id = detail.letter->trace_id,
                 .transaction_id = detail.letter->transaction_id,
                 .producer_sub = detail.letter->producer_sub,
                 .payload = detail.letter->payload,
                 .encrypted = detail.letter->encrypted};
        created_at = detail.letter->created_at;
        offset = detail.letter->offset;
    }
    const Standing standing = standing_of(place, offset, detail.letter != nullptr);
    ConsumerMode mode;
    mode.add(place);

    std::string body;
    json::Writer writer(body);
    writer.begin_object();
    write_id(writer, "id", frame.message_id);
    writer.key("transactionId").string(frame.transaction_id);
    write_payload(writer, frame.payload, frame.encrypted, true, cipher);
    write_id(writer, "traceId", frame.trace_id);
    write_text(writer, "producerSub", frame.producer_sub);
    write_time(writer, "createdAt", created_at);
    writer.key("partitionId").string(to_string(place.partition_id));
    write_names(writer, place);
    writer.key("offset").integer(offset.value());
    write_standing(writer, standing);
    writer.key("errorMessage");
    if (detail.letter != nullptr && detail.letter->error) {
        writer.string(*detail.letter->error);
    } else {
        writer.null();
    }
    writer.key("retryCount").integer(detail.letter != nullptr ? detail.letter->retries : 0);
    write_time(writer, "leaseExpiresAt", standing.lease_expires_at);
    writer.key("queueConfig").raw(detail.found != nullptr ? detail.found->options : "{}");
    writer.key("mode");
    write_mode(writer, mode);
    writer.key("consumerGroups").begin_array();
    for (const GroupPosition& group : place.groups) {
        writer.begin_object();
        writer.key("name").string(group.name);
        writer.key("committed").integer(group.committed.value());
        writer.key("consumed").boolean(offset <= group.committed);
        write_time(writer, "leaseExpiresAt", group.lease_expires_at);
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return body;
}

} // namespace queen::broker
