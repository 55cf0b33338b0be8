#include "http/push_reader.hpp"

#include "http/body_events.hpp"
#include "http/request_names.hpp"
#include "model/names.hpp"

#include <algorithm>
#include <optional>

namespace queen::http {
namespace {

bool has_control(std::string_view text) noexcept {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

// Follows the document: root object, its `items`, one item.
class Reader final : public BodyEvents {
public:
    Reader(std::string_view tenant, std::string_view body) : BodyEvents(body), tenant_(tenant) {}

    bool has_items() const noexcept { return has_items_; }
    std::vector<broker::PushItem> take_items() { return std::move(items_); }

private:
    enum class Place { outside, root, items, item };
    enum class Field { ignored, items, queue, partition, payload, transaction_id };

    std::string item_text() const { return "item " + std::to_string(items_.size()); }

    void member(std::string_view name) override {
        if (place_ == Place::root) {
            field_ = name == "items" ? Field::items : Field::ignored;
        } else {
            field_ = name == "queue"           ? Field::queue
                     : name == "partition"     ? Field::partition
                     : name == "payload"       ? Field::payload
                     : name == "transactionId" ? Field::transaction_id
                                               : Field::ignored;
        }
    }

    bool enter_object(std::size_t begin) override {
        switch (place_) {
        case Place::outside:
            place_ = Place::root;
            return true;
        case Place::items:
            place_ = Place::item;
            return begin_item();
        case Place::root:
        case Place::item:
            return begin_value(begin);
        }
        return false;
    }
    bool leave_object() override {
        if (place_ == Place::item) {
            place_ = Place::items;
            return end_item();
        }
        place_ = Place::outside;
        return true;
    }
    bool enter_array(std::size_t begin) override {
        switch (place_) {
        case Place::outside:
            return stop("the body is not an object");
        case Place::items:
            return stop(item_text() + " is not an object");
        case Place::root:
            if (field_ == Field::items) {
                place_ = Place::items;
                items_.clear(); // of a repeated key the last counts
                has_items_ = true;
                return true;
            }
            return begin_value(begin);
        case Place::item:
            return begin_value(begin);
        }
        return false;
    }
    bool leave_array() override {
        place_ = Place::root;
        return true;
    }

    bool value(std::string_view bytes, Scalar kind, std::string_view text) override {
        switch (place_) {
        case Place::outside:
            return stop("the body is not an object");
        case Place::root:
            if (field_ != Field::items) {
                return true;
            }
            return kind == Scalar::null ? stop("items is required") : stop("items is not an array");
        case Place::items:
            return stop(item_text() + " is not an object");
        case Place::item:
            return field_value(bytes, kind, text);
        }
        return false;
    }

    bool field_value(std::string_view bytes, Scalar kind, std::string_view text) {
        switch (field_) {
        case Field::items:
        case Field::ignored:
            return true;
        case Field::payload:
            payload_ = bytes;
            return true;
        case Field::queue:
            return string_field(queue_, "queue", kind, text);
        case Field::partition:
            return string_field(partition_, "partition", kind, text);
        case Field::transaction_id:
            return string_field(transaction_id_, "transactionId", kind, text);
        }
        return false;
    }

    bool string_field(std::optional<std::string>& field, std::string_view name, Scalar kind,
                      std::string_view text) {
        if (kind == Scalar::null) {
            field.reset();
            return true;
        }
        if (kind == Scalar::string) {
            field.emplace(text);
            return true;
        }
        return stop(std::string(name) + " of " + item_text() + " is not a string");
    }

    // An array or object begins where a value may stand.
    bool begin_value(std::size_t begin) {
        if (place_ == Place::root && field_ == Field::items) {
            return stop("items is not an array");
        }
        if (place_ == Place::item && field_ != Field::ignored && field_ != Field::payload) {
            return field_value({}, Scalar::other, {});
        }
        return skip(begin);
    }
    void skipped(std::string_view bytes) override {
        if (place_ == Place::item && field_ == Field::payload) {
            payload_ = bytes;
        }
    }

    bool begin_item() {
        if (items_.size() == kMaxPushItems) {
            return stop("more than " + std::to_string(kMaxPushItems) + " items in one request",
                        Errc::too_large);
        }
        queue_.reset();
        partition_.reset();
        transaction_id_.reset();
        payload_.reset();
        return true;
    }

    bool end_item() {
        if (!queue_) {
            return stop("queue of " + item_text() + " is missing");
        }
        if (!payload_) {
            return stop("payload of " + item_text() + " is missing");
        }
        auto queue = read_queue(*queue_);
        if (!queue) {
            return stop_name(queue.error());
        }
        auto partition = read_partition(partition_.value_or(std::string()));
        if (!partition) {
            return stop_name(partition.error());
        }
        if (auto fit = check_fit(tenant_, *queue, {}, *partition); !fit) {
            return stop_name(fit.error());
        }
        if (transaction_id_) {
            if (transaction_id_->size() > kMaxTransactionIdBytes) {
                return stop("transactionId of " + item_text() + " exceeds the " +
                            std::to_string(kMaxTransactionIdBytes) + "-byte limit");
            }
            if (auto ok = check_transaction_id("transactionId", *transaction_id_); !ok) {
                return stop_name(ok.error());
            }
        }
        items_.push_back({std::move(*queue), std::move(*partition),
                          std::move(transaction_id_).value_or(std::string()), *payload_});
        return true;
    }

    // One rule for names, the contract's words for what breaks it most.
    bool stop_name(const Error& why) {
        const bool control = has_control(*queue_) || has_control(partition_.value_or("")) ||
                             has_control(transaction_id_.value_or(""));
        if (control && why.code == Errc::invalid_argument) {
            return stop(
                "control characters are not allowed in queue, partition or transactionId (" +
                item_text() + ")");
        }
        return stop(item_text() + ": " + why.message, why.code);
    }

    const std::string_view tenant_;
    Place place_ = Place::outside;
    Field field_ = Field::ignored;
    bool has_items_ = false;
    std::optional<std::string> queue_, partition_, transaction_id_;
    std::optional<std::string_view> payload_;
    std::vector<broker::PushItem> items_;
};

} // namespace

Result<broker::PushRequest> read_push(std::string_view tenant,
                                      std::shared_ptr<const std::string> body) {
    Reader reader(tenant, *body);
    if (auto parsed = json::parse(*body, reader); !parsed) {
        return fail(reader.error ? *reader.error : parsed.error());
    }
    if (!reader.has_items()) {
        return fail(Errc::invalid_argument, "items is required");
    }
    broker::PushRequest request;
    request.tenant = tenant;
    request.items = reader.take_items();
    request.hold = std::move(body);
    return request;
}

} // namespace queen::http
