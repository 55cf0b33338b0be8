#include "http/timer_writer.hpp"

#include "base/base64.hpp"
#include "base/text.hpp"

#include <string_view>

namespace queen::http {
namespace {

struct Word {
    std::string_view text;
    bool ok;
};

Word word_of(TimerVerdict::Kind kind) noexcept {
    switch (kind) {
    case TimerVerdict::Kind::scheduled:
        return {"scheduled", true};
    case TimerVerdict::Kind::rescheduled:
        return {"rescheduled", true};
    case TimerVerdict::Kind::cancelled:
        return {"cancelled", true};
    case TimerVerdict::Kind::absent:
        return {"absent", false};
    case TimerVerdict::Kind::too_late:
        return {"too_late", false};
    }
    return {"absent", false}; // a number outside the enum
}

/// Null for what there is not.
void write_text(json::Writer& writer, std::string_view key, std::string_view text) {
    writer.key(key);
    if (text.empty()) {
        writer.null();
    } else {
        writer.string(text);
    }
}

} // namespace

std::vector<TimerName> names_of(const std::vector<TimerOp>& ops) {
    std::vector<TimerName> names;
    names.reserve(ops.size());
    for (const auto& op : ops) {
        names.push_back({op.queue, op.key});
    }
    return names;
}

void write_timer_result(json::Writer& writer, const TimerName& name, const TimerVerdict& verdict) {
    const auto word = word_of(verdict.kind);
    writer.key("ok").boolean(word.ok).key("status").string(word.text);
    writer.key("queue").string(name.queue).key("timerKey").string(name.key);
    write_text(writer, "txn", verdict.transaction_id);
    if (verdict.set()) {
        writer.key("messageId").string(to_string(verdict.message_id));
        writer.key("deliverAt").string(format_micros(verdict.deliver_at));
    }
}

void write_waiting_timer(json::Writer& writer, const std::string& queue, const WaitingTimer& timer,
                         bool payload) {
    writer.key("queue").string(queue).key("timerKey").string(timer.key);
    writer.key("partition").string(timer.partition);
    writer.key("deliverAt").string(format_micros(timer.deliver_at));
    write_text(writer, "txn", timer.transaction_id);
    writer.key("messageId").string(to_string(timer.message_id));
    if (payload) {
        writer.key("payload").string(to_base64(timer.payload));
    }
    writer.key("payloadZstd").boolean(timer.payload_zstd);
    writer.key("encrypted").boolean(timer.encrypted);
    write_text(writer, "producerSub", timer.producer_sub);
    writer.key("attempts").integer(timer.attempts);
    write_text(writer, "lastError", timer.last_error.value_or(std::string()));
    writer.key("claimed").boolean(timer.claimed);
    writer.key("createdAt").string(format_micros(timer.created_at));
    writer.key("updatedAt").string(format_micros(timer.updated_at));
}

} // namespace queen::http
