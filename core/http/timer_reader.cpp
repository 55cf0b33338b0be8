#include "http/timer_reader.hpp"

#include "base/base64.hpp"
#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/request_names.hpp"
#include "model/names.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace queen::http {
namespace {

using metrics::TimerRefused;

/// What only the broker may say of a timer, beside every name that begins with '_'.
constexpr std::array<std::string_view, 15> kServerOwned{
    "producerSub",   "producer_sub", "messageId",  "message_id",  "tenant",
    "tenantId",      "tenant_id",    "deliverAt",  "deliver_at",  "delaySeconds",
    "delay_seconds", "attempts",     "claimToken", "claim_token", "claimedUntil"};
constexpr std::string_view kClaimedUntil = "claimed_until";

bool is_server_owned(std::string_view name) {
    return name.starts_with('_') || name == kClaimedUntil ||
           std::find(kServerOwned.begin(), kServerOwned.end(), name) != kServerOwned.end();
}

bool is_number(std::string_view bytes) {
    return !bytes.empty() &&
           (bytes.front() == '-' || (bytes.front() >= '0' && bytes.front() <= '9'));
}

/// Follows the body: its array, or the object that holds it.
class Reader final : public BodyEvents {
public:
    Reader(std::string_view tenant, std::string_view body, const settings::TimerSettings& limits)
        : BodyEvents(body), ops(tenant, limits) {}

    TimerOps ops;
    bool has_ops = false;

private:
    enum class Place { outside, root, ops, op };

    void member(std::string_view name) override {
        if (place_ == Place::root) {
            operations_ = name == "operations";
        } else {
            ops.member(name);
        }
    }
    bool enter_object(std::size_t begin) override {
        switch (place_) {
        case Place::outside:
            in_object_ = true;
            place_ = Place::root;
            return true;
        case Place::root:
            return operations_ ? stop("operations is not an array") : skip(begin);
        case Place::ops:
            place_ = Place::op;
            return ops.begin_op();
        case Place::op:
            return skip(begin);
        }
        return false;
    }
    bool leave_object() override {
        if (place_ == Place::op) {
            place_ = Place::ops;
            return ops.end_op();
        }
        place_ = Place::outside;
        return true;
    }
    bool enter_array(std::size_t begin) override {
        switch (place_) {
        case Place::root:
            if (!operations_) {
                return skip(begin);
            }
            [[fallthrough]];
        case Place::outside:
            ops.clear(); // of a repeated key the last counts
            has_ops = true;
            place_ = Place::ops;
            return true;
        case Place::ops:
            return ops.no_op();
        case Place::op:
            return skip(begin);
        }
        return false;
    }
    bool leave_array() override {
        place_ = in_object_ ? Place::root : Place::outside;
        return true;
    }
    bool value(std::string_view bytes, Scalar kind, std::string_view text) override {
        switch (place_) {
        case Place::outside:
            return true; // no array: the caller says so
        case Place::root:
            return !operations_ || stop("operations is not an array");
        case Place::ops:
            return ops.no_op();
        case Place::op:
            ops.value(bytes, kind, text);
            return true;
        }
        return false;
    }
    void skipped(std::string_view bytes) override {
        if (place_ == Place::op) {
            ops.value(bytes, Scalar::other, {});
        }
    }

    Place place_ = Place::outside;
    bool in_object_ = false;
    bool operations_ = false; ///< the member of the root that a value is for
};

TimerRefusal bad_body(std::string detail) {
    return {.reason = "timers_bad_body", .detail = std::move(detail)};
}

/// What keeps the store from answering now.
TimerRefusal unavailable(std::string reason, std::string detail) {
    return {.status = 503,
            .error = "timers_unavailable",
            .reason = std::move(reason),
            .detail = std::move(detail),
            .why = TimerRefused::unavailable,
            .retry = true};
}

} // namespace

Reply timer_refusal_reply(const TimerRefusal& refusal) {
    Reply reply;
    reply.status = refusal.status;
    json::Writer writer(reply.body);
    writer.begin_object().key("error").string(refusal.error);
    writer.key("code").string(refusal.error);
    if (!refusal.reason.empty()) {
        writer.key("reason").string(refusal.reason);
    }
    if (!refusal.detail.empty()) {
        writer.key("detail").string(refusal.detail);
    }
    writer.end_object();
    if (refusal.retry) {
        reply.headers.emplace_back("Retry-After", "1");
    }
    return reply;
}

TimerRefusal timer_refusal(const Error& error) {
    switch (error.code) {
    case Errc::unavailable:
        return unavailable(error.message == "pool" ? "timers_pool_exhausted" : "connection",
                           error.message);
    case Errc::timeout:
        return unavailable("timers_timeout", error.message);
    case Errc::transient:
        return error.sqlstate.empty() ? unavailable("connection", error.message)
                                      : unavailable(error.message, {});
    case Errc::overloaded:
    case Errc::shutting_down:
        return unavailable(error.message, {});
    case Errc::conflict:
        if (error.sqlstate.empty()) { // of Timers itself
            return {.reason = "timers_encrypted_conflict", .detail = error.message};
        }
        break;
    case Errc::invalid_argument:
        return {.reason = error.message};
    case Errc::name_too_long:
    case Errc::not_found:
    case Errc::store_failed:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::internal:
    case Errc::too_large:
        break;
    }
    if (error.sqlstate == "22023") { // invalid_parameter_value: what the procedure calls a mistake
        return {.reason = error.message};
    }
    const bool schema = error.sqlstate.starts_with("42");
    return {.status = 500,
            .error = schema ? "timers_misconfigured" : "timers_error",
            .reason = error.message,
            .why = TimerRefused::unavailable};
}

TimerRefusal timer_name_refusal(const Error& error, const std::string& where) {
    if (error.code == Errc::name_too_long) {
        return {.status = 413,
                .error = "name_too_long",
                .reason = "timers_name_too_long",
                .detail = where + error.message};
    }
    return {.reason = "timers_bad_name", .detail = where + error.message};
}

Result<void> check_timer_key(std::string_view key) {
    return check_name("timerKey", key);
}

void TimerOps::clear() {
    ops_.clear();
    keys_.clear();
}

bool TimerOps::refuse(std::string_view reason, const std::string& text, int status) {
    TimerRefusal refusal{.status = status,
                         .reason = std::string(reason),
                         .detail = "operation " + std::to_string(ops_.size()) + ": " + text};
    if (status == 403) {
        refusal.error = "timer_horizon_exceeded";
        refusal.why = TimerRefused::horizon;
    } else if (status == 413) {
        refusal.error = "payload_too_large";
        refusal.why = TimerRefused::payload_too_large;
    }
    refusal_ = std::move(refusal);
    return false;
}

bool TimerOps::refuse_name(const Error& error) {
    refusal_ = timer_name_refusal(error, "operation " + std::to_string(ops_.size()) + ": ");
    return false;
}

bool TimerOps::no_op() {
    return refuse("timers_bad_op", "is not an object");
}

bool TimerOps::begin_op() {
    const auto most = static_cast<std::size_t>(limits_.max_ops);
    if (ops_.size() >= most) {
        refusal_ = TimerRefusal{.reason = "timers_too_many_ops",
                                .detail = "more than " + std::to_string(most) +
                                          " operations in one request"};
        return false;
    }
    fields_ = {};
    field_ = nullptr;
    return true;
}

void TimerOps::member(std::string_view name) {
    const std::array<std::pair<std::string_view, Field*>, 9> known{{
        {"op", &fields_.op},
        {"queue", &fields_.queue},
        {"timerKey", &fields_.key},
        {"partition", &fields_.partition},
        {"delayMs", &fields_.delay},
        {"txn", &fields_.txn},
        {"payload", &fields_.payload},
        {"payloadZstd", &fields_.zstd},
        {"encrypted", &fields_.encrypted},
    }};
    const auto* const found = std::find_if(known.begin(), known.end(),
                                           [&](const auto& entry) { return entry.first == name; });
    field_ = found == known.end() ? nullptr : found->second;
    if (field_ == nullptr && fields_.server_owned.empty() && is_server_owned(name)) {
        fields_.server_owned = name;
    }
}

void TimerOps::value(std::string_view bytes, BodyEvents::Scalar kind, std::string_view text) {
    if (field_ != nullptr) {
        field_->put(bytes, kind, text);
    }
}

bool TimerOps::end_op() {
    TimerOp op;
    const auto& word = fields_.op.text;
    if (word == "schedule") {
        op.kind = TimerOp::Kind::schedule;
    } else if (word == "reschedule") {
        op.kind = TimerOp::Kind::reschedule;
    } else if (word == "cancel") {
        op.kind = TimerOp::Kind::cancel;
    } else {
        return refuse("timers_bad_op", "op must be schedule, reschedule or cancel");
    }
    if (!fields_.server_owned.empty()) {
        return refuse("timers_server_owned_field",
                      "'" + fields_.server_owned + "' is not the client's to give");
    }
    if (!read_identity(op)) {
        return false;
    }
    if (op.kind != TimerOp::Kind::cancel && !read_new(op)) {
        return false;
    }
    if (!keys_.emplace(op.queue, op.key).second) {
        return refuse("timers_duplicate_key",
                      "queue and timerKey are those of another operation of this request");
    }
    ops_.push_back(std::move(op));
    return true;
}

/// Queue, key and txn.
bool TimerOps::read_identity(TimerOp& op) {
    if (fields_.queue.text.empty()) {
        return refuse("timers_queue_required", "queue must be a string that is not empty");
    }
    if (fields_.key.text.empty()) {
        return refuse("timers_key_required", "timerKey must be a string that is not empty");
    }
    auto queue = read_queue(fields_.queue.text);
    if (!queue) {
        return refuse_name(queue.error());
    }
    if (auto ok = check_timer_key(fields_.key.text); !ok) {
        return refuse_name(ok.error());
    }
    if (fields_.txn.given && !fields_.txn.is_string) {
        return refuse("timers_txn_required", "txn is not a string");
    }
    if (!fields_.txn.text.empty()) {
        if (auto ok = check_transaction_id("txn", fields_.txn.text); !ok) {
            return refuse("timers_bad_txn", ok.error().message);
        }
    }
    op.queue = std::move(*queue);
    op.key = std::move(fields_.key.text);
    op.transaction_id = std::move(fields_.txn.text);
    return true;
}

/// What a timer that is set has beside.
bool TimerOps::read_new(TimerOp& op) {
    if (fields_.partition.given && !fields_.partition.is_string) {
        return refuse("timers_bad_op", "partition is not a string");
    }
    auto partition = read_partition(fields_.partition.text);
    if (!partition) {
        return refuse_name(partition.error());
    }
    if (auto fit = check_fit(tenant_, op.queue, {}, *partition); !fit) {
        return refuse_name(fit.error());
    }
    op.partition = std::move(*partition);
    if (op.transaction_id.empty()) {
        return refuse("timers_txn_required", "txn must be a string that is not empty");
    }
    return read_delay(op) && read_flag(fields_.zstd, "payloadZstd", op.payload_zstd) &&
           read_flag(fields_.encrypted, "encrypted", op.encrypted) && read_payload(op);
}

/// Milliseconds, with a fraction if need be: never early, so what is below a microsecond counts as
/// one. A time that is past by more than the horizon is past by the horizon (TM-7).
bool TimerOps::read_delay(TimerOp& op) {
    if (!fields_.delay.given || !is_number(fields_.delay.bytes)) {
        return refuse("timers_delay_required",
                      "delayMs must be a number of milliseconds from now, and not a string");
    }
    const auto horizon = static_cast<double>(
        std::chrono::duration_cast<std::chrono::milliseconds>(limits_.max_horizon).count());
    // The text is a JSON number, so the program's locale, which is "C", can read all of it; what is
    // beyond a double becomes infinite.
    const double delay = std::strtod(std::string(fields_.delay.bytes).c_str(), nullptr);
    if (delay > horizon) {
        return refuse(
            "timers_horizon",
            "delayMs must not exceed " + std::to_string(static_cast<std::int64_t>(horizon)), 403);
    }
    op.delay = std::chrono::microseconds(
        static_cast<std::int64_t>(std::ceil(std::max(delay, -horizon) * 1000)));
    return true;
}

bool TimerOps::read_flag(const Field& field, std::string_view name, bool& flag) {
    if (!field.given) {
        return true;
    }
    if (field.bytes != "true" && field.bytes != "false") {
        return refuse("timers_bad_op", std::string(name) + " must be true or false");
    }
    flag = field.bytes == "true";
    return true;
}

/// The message is JSON: a pop splices it into its answer.
bool TimerOps::read_payload(TimerOp& op) {
    const auto most = static_cast<std::size_t>(limits_.max_payload);
    const std::string limit = std::to_string(most) + " bytes";
    auto& field = fields_.payload;
    if (!field.given || (field.is_string && field.text.empty())) {
        return refuse("timers_payload_required",
                      "payload is missing: the message's JSON in base64");
    }
    auto payload = field.is_string ? from_base64(field.text) : std::nullopt;
    if (!payload) {
        return refuse("timers_payload_not_base64",
                      "payload must be base64 with its padding, in a string");
    }
    field = {};
    if (payload->size() > most) {
        return refuse("timers_payload_too_large", "payload must not exceed " + limit, 413);
    }
    std::string unpacked;
    if (op.payload_zstd) {
        auto bytes = decompress_segment(*payload, most);
        if (!bytes) {
            return refuse("timers_payload_not_zstd",
                          "payloadZstd is true, and payload is not one zstd frame of at most " +
                              limit);
        }
        unpacked = std::move(*bytes);
    }
    if (auto ok = json::check(op.payload_zstd ? unpacked : *payload); !ok) {
        return refuse("timers_payload_not_json", "payload: " + ok.error().message);
    }
    op.payload = std::move(*payload);
    return true;
}

tl::expected<std::vector<TimerOp>, TimerRefusal>
read_timers(std::string_view tenant, std::string_view body, const settings::TimerSettings& limits) {
    Reader reader(tenant, body, limits);
    if (auto parsed = json::parse(body, reader); !parsed) {
        return tl::unexpected(reader.ops.refusal() ? *reader.ops.refusal()
                              : reader.error       ? bad_body(reader.error->message)
                                                   : bad_body(parsed.error().message));
    }
    if (!reader.has_ops) {
        return tl::unexpected(bad_body(
            "the body must be an array of operations or an object with one as operations"));
    }
    return reader.ops.take();
}

} // namespace queen::http
