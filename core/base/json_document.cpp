#include "base/json.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <memory_resource>
#include <utility>

namespace queen::json {

/// One value. Nodes and what they point at live in the document's arena and have no destructors, so
/// that freeing a document never recurses.
struct Node {
    Kind kind = Kind::missing;
    bool flag = false;
    std::string_view key;  ///< inside an object
    std::string_view text; ///< decoded string, or the number as written
    const Node* children = nullptr;
    std::size_t count = 0;
};

struct Document::Impl {
    explicit Impl(std::string_view source) : text(source) {}
    const std::string text; ///< numbers and strings without escapes are slices of it
    std::pmr::monotonic_buffer_resource arena;
    Node root;
};

namespace {

/// Builds the tree from events: values wait in `pending_` until their container ends, which then
/// takes its children over in one contiguous run.
class Builder final : public Events {
public:
    Builder(std::string_view text, std::pmr::memory_resource& arena) : text_(text), arena_(arena) {}

    bool null(std::size_t, std::size_t) override { return add({.kind = Kind::null}); }
    bool boolean(bool value, std::size_t, std::size_t) override {
        return add({.kind = Kind::boolean, .flag = value});
    }
    bool number(std::string_view text, std::size_t, std::size_t) override {
        return add({.kind = Kind::number, .text = text});
    }
    bool string(std::string_view value, std::size_t begin, std::size_t end) override {
        const bool escaped = value.size() != end - begin - 2;
        return add({.kind = Kind::string,
                    .text = escaped ? keep(value) : text_.substr(begin + 1, value.size())});
    }
    bool key(std::string_view name) override {
        key_ = keep(name);
        return true;
    }
    bool begin_object(std::size_t) override { return open(Kind::object); }
    bool end_object(std::size_t) override { return close(); }
    bool begin_array(std::size_t) override { return open(Kind::array); }
    bool end_array(std::size_t) override { return close(); }

    const Node& root() const { return pending_.front(); }

private:
    bool add(Node node) {
        node.key = std::exchange(key_, {});
        pending_.push_back(node);
        return true;
    }
    bool open(Kind kind) {
        add({.kind = kind});
        open_.push_back(pending_.size());
        return true;
    }
    bool close() {
        const std::size_t first = open_.back();
        open_.pop_back();
        const std::size_t count = pending_.size() - first;
        if (count > 0) {
            auto* children =
                static_cast<Node*>(arena_.allocate(count * sizeof(Node), alignof(Node)));
            std::uninitialized_copy_n(pending_.begin() + static_cast<std::ptrdiff_t>(first), count,
                                      children);
            pending_.resize(first);
            pending_.back().children = children;
            pending_.back().count = count;
        }
        return true;
    }
    std::string_view keep(std::string_view text) {
        if (text.empty()) {
            return {};
        }
        auto* copy = static_cast<char*>(arena_.allocate(text.size(), 1));
        std::copy(text.begin(), text.end(), copy);
        return {copy, text.size()};
    }

    std::string_view text_;
    std::pmr::memory_resource& arena_;
    std::vector<Node> pending_;
    std::vector<std::size_t> open_; ///< where in pending_ the children of each open container begin
    std::string_view key_;
};

/// The exponent of a JSON number; one beyond any that matters is cut, as only zero survives it.
std::int64_t exponent_of(std::string_view digits) {
    constexpr std::int64_t kHuge = std::int64_t{1} << 40; // more than a text has digits
    const bool negative = digits.front() == '-';
    digits.remove_prefix(digits.front() == '+' ? 1 : 0);
    return std::clamp(parse_int(digits).value_or(negative ? -kHuge : kHuge), -kHuge, kHuge);
}

/// The value of a JSON number if it is whole and fits, however it is written: 5, 5.0, 5e3, 50e-1.
std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
    const std::size_t mark = text.find_first_of("eE");
    const std::size_t point = text.find('.');
    if (mark == text.npos && point == text.npos) {
        return parse_int(text);
    }
    const std::string_view mantissa = text.substr(0, mark);
    const std::size_t first = mantissa.find_first_of("123456789");
    if (first == mantissa.npos) {
        return 0;
    }
    // The number is the digits first..last times a power of ten.
    const std::size_t last = mantissa.find_last_of("123456789");
    std::int64_t power = mark != text.npos ? exponent_of(text.substr(mark + 1)) : 0;
    const std::size_t units = (point != mantissa.npos ? point : mantissa.size()) - 1;
    power += static_cast<std::int64_t>(units) - static_cast<std::int64_t>(last);
    power += point != mantissa.npos && last > point ? 1 : 0; // the point itself is not a place
    std::array<char, 20> digits; // a sign and 19 digits, what an int64 can have
    std::size_t size = 0;
    if (mantissa.front() == '-') {
        digits[size++] = '-';
    }
    const std::size_t most = size + 19;
    for (std::size_t i = first; i <= last; ++i) {
        if (mantissa[i] == '.') {
            continue;
        }
        if (size == most) {
            return std::nullopt;
        }
        digits[size++] = mantissa[i];
    }
    if (power < 0 || power > static_cast<std::int64_t>(most - size)) {
        return std::nullopt;
    }
    std::fill_n(digits.begin() + static_cast<std::ptrdiff_t>(size), power, '0');
    return parse_int({digits.data(), size + static_cast<std::size_t>(power)});
}

} // namespace

Kind Value::kind() const noexcept {
    return node_ != nullptr ? node_->kind : Kind::missing;
}

Value Value::operator[](std::string_view key) const noexcept {
    if (!is(Kind::object)) {
        return {};
    }
    for (std::size_t i = node_->count; i > 0; --i) {
        if (node_->children[i - 1].key == key) {
            return Value(&node_->children[i - 1]);
        }
    }
    return {};
}

Value Value::at(std::size_t index) const noexcept {
    return is(Kind::array) ? value_at(index) : Value{};
}

std::size_t Value::size() const noexcept {
    return node_ != nullptr ? node_->count : 0;
}

std::string_view Value::key_at(std::size_t index) const noexcept {
    return index < size() ? node_->children[index].key : std::string_view{};
}

Value Value::value_at(std::size_t index) const noexcept {
    return index < size() ? Value(&node_->children[index]) : Value{};
}

std::string_view Value::string() const noexcept {
    return is(Kind::string) ? node_->text : std::string_view{};
}

std::string_view Value::raw_number() const noexcept {
    return is(Kind::number) ? node_->text : std::string_view{};
}

std::optional<std::int64_t> Value::integer() const noexcept {
    return is(Kind::number) ? whole_number(node_->text) : std::nullopt;
}

std::optional<bool> Value::boolean() const noexcept {
    return is(Kind::boolean) ? std::optional(node_->flag) : std::nullopt;
}

Document::Document(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::parse(std::string_view text) {
    auto impl = std::make_unique<Impl>(text);
    Builder builder(impl->text, impl->arena);
    if (auto parsed = json::parse(impl->text, builder); !parsed) {
        return fail(std::move(parsed.error()));
    }
    impl->root = builder.root();
    return Document(std::move(impl));
}

Value Document::root() const noexcept {
    return impl_ != nullptr ? Value(&impl_->root) : Value{};
}

} // namespace queen::json
