#include "http/replay_writer.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "http/error_map.hpp"

namespace queen::http {
namespace {

using Result = broker::Replay::Result;

void write_destination(json::Writer& writer, const broker::Replay& replay) {
    writer.key("queue").string(replay.queue);
    writer.key("partition").string(replay.partition);
    writer.key("consumerGroup").string(replay.group);
    writer.key("dlqId").string(to_string(replay.letter_id));
    writer.key("originalTransactionId").string(replay.original_transaction_id);
}

void write_stored(json::Writer& writer, const broker::Replay& replay) {
    const bool moved = replay.result == Result::moved;
    writer.key("success").boolean(true);
    writer.key("result").string(moved ? "moved" : "duplicate");
    write_destination(writer, replay);
    writer.key("replayedAs").begin_object();
    writer.key("index").integer(0);
    writer.key("message_id").string(to_string(replay.message_id));
    writer.key("transaction_id").string(replay.transaction_id);
    writer.key("queueName").string(replay.queue);
    writer.key("status").string(moved ? "queued" : "duplicate");
    writer.key("offset").integer(replay.offset.value());
    writer.end_object();
    writer.key("dlqRowRemoved").boolean(moved);
}

} // namespace

Reply render_replay(const broker::Replay& replay, LetterAddress address) {
    Reply reply;
    json::Writer writer(reply.body);
    writer.begin_object();
    if (replay.result == Result::moved || replay.result == Result::duplicate) {
        write_stored(writer, replay);
        writer.end_object();
        return reply;
    }
    const bool gone = replay.result == Result::gone;
    const ErrorRule rule = rule_for(gone ? Errc::not_found : replay.error.code);
    reply.status = rule.status;
    if (rule.retry_after.count() > 0) {
        reply.headers.emplace_back("Retry-After", std::to_string(rule.retry_after.count()));
    }
    writer.key("success").boolean(false);
    if (gone) {
        writer.key("result").string("gone");
    }
    const std::string_view text =
        gone ? "Message not found" : std::string_view(replay.error.message);
    writer.key("error").string(text);
    writer.key("code").string(rule.code);
    if (replay.result == Result::refused) {
        writer.key("reason").string("not_replayable");
    }
    for (const auto& [name, value] : address) {
        writer.key(name).string(value);
    }
    writer.key("dlqRowRemoved");
    if (replay.unknown) {
        writer.null();
    } else {
        writer.boolean(false);
    }
    writer.end_object();
    return reply;
}

} // namespace queen::http
