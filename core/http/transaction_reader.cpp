#include "http/transaction_reader.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "http/ack_fields.hpp"
#include "http/ack_reader.hpp"
#include "http/body_events.hpp"
#include "http/request_names.hpp"
#include "model/names.hpp"

#include <array>
#include <optional>
#include <utility>

namespace queen::http {
namespace {

constexpr std::string_view kDefaultPayload = "{}";

using Field = BodyField;

/// What a push says, on its operation or as one of its items.
struct PushFields {
    Field queue, partition, payload, data, transaction_id, trace_id;
};

struct Operation {
    Field type, items;
    PushFields push; ///< transaction_id is an ack's as well
    Field partition_id, status, group, lease_id, error;
    std::optional<std::vector<PushFields>> pushes; ///< the array `items`

    Field* find(std::string_view name) noexcept;
};

Field* find(PushFields& fields, std::string_view name) noexcept {
    const std::array<std::pair<std::string_view, Field*>, 6> known{{
        {"queue", &fields.queue},
        {"partition", &fields.partition},
        {"payload", &fields.payload},
        {"data", &fields.data},
        {"transactionId", &fields.transaction_id},
        {"traceId", &fields.trace_id},
    }};
    for (const auto& [key, field] : known) {
        if (key == name) {
            return field;
        }
    }
    return nullptr;
}

Field* Operation::find(std::string_view name) noexcept {
    const std::array<std::pair<std::string_view, Field*>, 7> known{{
        {"type", &type},
        {"items", &items},
        {"partitionId", &partition_id},
        {"status", &status},
        {"consumerGroup", &group},
        {"leaseId", &lease_id},
        {"error", &error},
    }};
    for (const auto& [key, field] : known) {
        if (key == name) {
            return field;
        }
    }
    return http::find(push, name);
}

/// An array beside the operations that is known and not served.
struct Rider {
    bool given = false;
    std::size_t elements = 0;
};

// Follows the document: root object, its arrays, an operation, an item.
class Reader final : public BodyEvents {
public:
    Reader(std::string_view tenant, std::string_view body, const settings::TimerSettings& timers)
        : BodyEvents(body), timers(tenant, timers), tenant_(tenant) {}

    TimerOps timers;

    /// After the whole document was read.
    Result<TransactionBody> take() {
        if (!has_operations_ && !kv_.given && !has_timers_) {
            return fail(Errc::invalid_argument, "transaction requires an operations array (or a "
                                                "top-level kv/timers array)");
        }
        if (kv_.elements > 0) {
            return fail(Errc::invalid_argument,
                        "kv: the key-value store is not part of this version; leave kv out");
        }
        body_of_.request.timers = timers.take();
        body_of_.request.required_leases = std::move(leases_);
        return std::move(body_of_);
    }

private:
    enum class Place {
        outside,
        root,
        operations,
        leases,
        kv,
        timers,
        timer,
        operation,
        items,
        item
    };
    enum class Root { ignored, operations, leases, kv, timers };

    std::string_view root_name() const noexcept {
        switch (root_) {
        case Root::operations:
            return "operations";
        case Root::leases:
            return "requiredLeases";
        case Root::kv:
            return "kv";
        case Root::timers:
            return "timers";
        case Root::ignored:
            break;
        }
        return "";
    }

    /// About the operation at hand, and when it is given its item.
    bool stop_at(std::optional<std::size_t> item, const std::string& text,
                 Errc code = Errc::invalid_argument) {
        return stop("operation " + std::to_string(operations_) +
                        (item ? ", item " + std::to_string(*item) : "") + ": " + text,
                    code);
    }

    void member(std::string_view name) override {
        switch (place_) {
        case Place::root:
            root_ = name == "operations"       ? Root::operations
                    : name == "requiredLeases" ? Root::leases
                    : name == "kv"             ? Root::kv
                    : name == "timers"         ? Root::timers
                                               : Root::ignored;
            break;
        case Place::operation:
            field_ = operation_.find(name);
            break;
        case Place::item:
            field_ = find(operation_.pushes->back(), name);
            break;
        case Place::timer:
            timers.member(name);
            break;
        case Place::outside:
        case Place::operations:
        case Place::leases:
        case Place::kv:
        case Place::timers:
        case Place::items:
            break;
        }
    }

    bool enter_object(std::size_t begin) override {
        switch (place_) {
        case Place::outside:
            place_ = Place::root;
            return true;
        case Place::operations:
            operation_ = {};
            place_ = Place::operation;
            return true;
        case Place::items:
            if (!room()) {
                return false;
            }
            operation_.pushes->emplace_back();
            place_ = Place::item;
            return true;
        case Place::timers:
            place_ = Place::timer;
            return timers.begin_op();
        case Place::root:
        case Place::leases:
        case Place::kv:
        case Place::timer:
        case Place::operation:
        case Place::item:
            return begin_value(begin);
        }
        return false;
    }

    bool leave_object() override {
        switch (place_) {
        case Place::item:
            place_ = Place::items;
            return true;
        case Place::operation:
            place_ = Place::operations;
            return end_operation();
        case Place::timer:
            place_ = Place::timers;
            return timers.end_op();
        case Place::outside:
        case Place::root:
        case Place::operations:
        case Place::leases:
        case Place::kv:
        case Place::timers:
        case Place::items:
            break;
        }
        place_ = Place::outside;
        return true;
    }

    bool enter_array(std::size_t begin) override {
        if (place_ == Place::root) { // of a repeated key the last counts
            switch (root_) {
            case Root::operations:
                body_of_ = {};
                operations_ = 0;
                has_operations_ = true;
                place_ = Place::operations;
                return true;
            case Root::leases:
                leases_.clear();
                place_ = Place::leases;
                return true;
            case Root::kv:
                kv_ = {.given = true};
                place_ = Place::kv;
                return true;
            case Root::timers:
                timers.clear();
                has_timers_ = true;
                place_ = Place::timers;
                return true;
            case Root::ignored:
                break;
            }
        }
        if (place_ == Place::operation && field_ == &operation_.items) {
            operation_.pushes.emplace();
            field_->given = true;
            place_ = Place::items;
            return true;
        }
        return begin_value(begin);
    }

    bool leave_array() override {
        place_ = place_ == Place::items ? Place::operation : Place::root;
        return true;
    }

    bool room() {
        const auto held =
            body_of_.order.size() + (operation_.pushes ? operation_.pushes->size() : 0);
        return held < kMaxTransactionItems ||
               stop("more than " + std::to_string(kMaxTransactionItems) +
                        " messages and acks in one transaction",
                    Errc::too_large);
    }

    bool value(std::string_view bytes, Scalar kind, std::string_view text) override {
        switch (place_) {
        case Place::outside:
            return stop("the body is not an object");
        case Place::root:
            return root_value(kind);
        case Place::operations:
            return stop_at({}, "is not an object");
        case Place::items:
            return stop_at(operation_.pushes->size(), "is not an object");
        case Place::leases:
            if (kind == Scalar::other) {
                return stop("requiredLeases holds something that is not a string");
            }
            if (kind == Scalar::string && !text.empty()) {
                leases_.push_back(read_lease_id(text));
            }
            return true;
        case Place::kv:
            ++kv_.elements;
            return true;
        case Place::timers:
            return timers.no_op();
        case Place::timer:
            timers.value(bytes, kind, text);
            return true;
        case Place::operation:
        case Place::item:
            if (field_ != nullptr) {
                field_->put(bytes, kind, text);
                if (field_ == &operation_.items) {
                    operation_.pushes.reset();
                }
            }
            return true;
        }
        return false;
    }

    bool root_value(Scalar kind) {
        if (root_ == Root::ignored) {
            return true;
        }
        if (kind != Scalar::null) {
            return stop(std::string(root_name()) + " is not an array");
        }
        switch (root_) { // null is absent
        case Root::operations:
            body_of_ = {};
            has_operations_ = false;
            break;
        case Root::leases:
            leases_.clear();
            break;
        case Root::kv:
            kv_ = {};
            break;
        case Root::timers:
            timers.clear();
            has_timers_ = false;
            break;
        case Root::ignored:
            break;
        }
        return true;
    }

    // An array or object begins where a value may stand.
    bool begin_value(std::size_t begin) {
        switch (place_) {
        case Place::outside:
            return stop("the body is not an object");
        case Place::root:
            if (root_ != Root::ignored) {
                return stop(std::string(root_name()) + " is not an array");
            }
            break;
        case Place::operations:
            return stop_at({}, "is not an object");
        case Place::items:
            return stop_at(operation_.pushes->size(), "is not an object");
        case Place::leases:
            return stop("requiredLeases holds something that is not a string");
        case Place::kv:
            ++kv_.elements;
            break;
        case Place::timers:
            return timers.no_op();
        case Place::timer:
        case Place::operation:
        case Place::item:
            break;
        }
        return skip(begin);
    }
    void skipped(std::string_view bytes) override {
        if (place_ == Place::timer) {
            timers.value(bytes, Scalar::other, {});
        }
        if ((place_ == Place::operation || place_ == Place::item) && field_ != nullptr) {
            field_->put(bytes, Scalar::other, {});
        }
    }

    bool end_operation() {
        if (!operation_.type.is_string) {
            return stop("every transaction operation needs a type of push or ack");
        }
        const auto& type = operation_.type.text;
        const bool done = type == "push" ? end_push() : type == "ack" ? end_ack() : end_other(type);
        ++operations_;
        return done;
    }

    bool end_other(const std::string& type) {
        std::string text =
            "segments transaction supports only push and ack operations, got `" + type + "`";
        if (type == "kv" || type == "timer" || type == "timers") {
            text += "; kv and timers are arrays of their own beside operations";
        }
        return stop(std::move(text));
    }

    bool end_push() {
        if (!operation_.items.given) {
            return room() && add_push(operation_.push, {});
        }
        if (!operation_.pushes) {
            return stop_at({}, "items is not an array");
        }
        auto pushes = std::move(*operation_.pushes);
        operation_.pushes.reset();
        for (std::size_t i = 0; i < pushes.size(); ++i) {
            if (!add_push(pushes[i], i)) {
                return false;
            }
        }
        return true;
    }

    bool add_push(PushFields& fields, std::optional<std::size_t> item) {
        for (const auto& [name, field] : {std::pair{"queue", &fields.queue},
                                          {"partition", &fields.partition},
                                          {"transactionId", &fields.transaction_id}}) {
            if (field->given && !field->is_string) {
                return stop_at(item, std::string(name) + " is not a string");
            }
        }
        if (!fields.queue.given) {
            return stop_at(item, "queue is missing");
        }
        auto queue = read_queue(fields.queue.text);
        if (!queue) {
            return stop_at(item, queue.error().message, queue.error().code);
        }
        auto partition = read_partition(fields.partition.text);
        if (!partition) {
            return stop_at(item, partition.error().message, partition.error().code);
        }
        if (auto fit = check_fit(tenant_, *queue, {}, *partition); !fit) {
            return stop_at(item, fit.error().message, fit.error().code);
        }
        if (fields.transaction_id.given) {
            if (auto ok = check_transaction_id("transactionId", fields.transaction_id.text); !ok) {
                return stop_at(item, ok.error().message, ok.error().code);
            }
        }
        const auto payload = !fields.payload.bytes.empty() ? fields.payload.bytes
                             : !fields.data.bytes.empty()  ? fields.data.bytes
                                                           : kDefaultPayload;
        body_of_.request.pushes.push_back(
            {.queue = std::move(*queue),
             .partition = std::move(*partition),
             .transaction_id = std::move(fields.transaction_id.text),
             .payload = payload,
             .trace_id = parse_uuid(fields.trace_id.text).value_or(Uuid{})});
        body_of_.order.push_back(TransactionBody::Kind::push);
        return true;
    }

    bool end_ack() {
        if (!room()) {
            return false;
        }
        auto& fields = operation_;
        for (const auto& [name, field] : {std::pair{"transactionId", &fields.push.transaction_id},
                                          {"partitionId", &fields.partition_id},
                                          {"consumerGroup", &fields.group},
                                          {"leaseId", &fields.lease_id}}) {
            if (field->given && !field->is_string) {
                return stop_at({}, std::string(name) + " is not a string");
            }
        }
        if (fields.push.transaction_id.text.empty()) {
            return stop_at({}, "transactionId is missing");
        }
        if (fields.partition_id.text.empty()) {
            return stop_at({}, "partitionId is missing");
        }
        auto group = read_group(fields.group.text);
        if (!group) {
            return stop_at({}, group.error().message, group.error().code);
        }
        broker::AckItem item;
        item.transaction_id = std::move(fields.push.transaction_id.text);
        item.partition_id = std::move(fields.partition_id.text);
        if (!fields.lease_id.text.empty()) {
            item.lease_id = read_lease_id(fields.lease_id.text);
        }
        if (fields.status.given) {
            if (!fields.status.is_string) {
                return stop_at({}, bad_ack_status().message);
            }
            if (auto ok = read_ack_status(fields.status.text, item); !ok) {
                return stop_at({}, ok.error().message);
            }
        }
        if (fields.error.given) {
            const auto reason = json::Document::parse(fields.error.bytes);
            item.error = reason ? read_reason(reason->root()) : std::string();
        }
        body_of_.request.acks.push_back({std::move(item), std::move(*group)});
        body_of_.order.push_back(TransactionBody::Kind::ack);
        return true;
    }

    const std::string_view tenant_;
    Place place_ = Place::outside;
    Root root_ = Root::ignored;
    Field* field_ = nullptr;     ///< what a value is for; null: nothing known
    std::size_t operations_ = 0; ///< read so far
    bool has_operations_ = false;
    Operation operation_;
    Rider kv_;
    bool has_timers_ = false;
    std::vector<std::string> leases_;
    TransactionBody body_of_;
};

} // namespace

tl::expected<TransactionBody, TransactionRefusal>
read_transaction(std::string_view tenant, std::shared_ptr<const std::string> body,
                 const settings::TimerSettings& timers) {
    Reader reader(tenant, *body, timers);
    if (auto parsed = json::parse(*body, reader); !parsed) {
        return tl::unexpected(TransactionRefusal{reader.error ? *reader.error : parsed.error(),
                                                 reader.timers.refusal()});
    }
    auto read = reader.take();
    if (!read) {
        return tl::unexpected(TransactionRefusal{std::move(read.error())});
    }
    read->request.tenant = tenant;
    read->request.hold = std::move(body);
    return std::move(*read);
}

} // namespace queen::http
