#include "shared/hint_json.hpp"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <utility>

namespace queen::hint_json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

constexpr bool is_control(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

} // namespace

void append_text(std::string& out, std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += "\\u00";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 0xf];
        } else {
            out += c;
        }
    }
    out += '"';
}

void append_instance(std::string& out, std::string_view instance) {
    if (!instance.empty()) {
        out += ",\"instance\":";
        append_text(out, instance);
    }
}

void append_names(std::string& out, const plugin::Hint& hint, bool partition) {
    out += "\"queue\":";
    append_text(out, hint.queue);
    if (partition) {
        out += ",\"partition\":";
        append_text(out, hint.partition);
    }
    if (!hint.tenant.empty()) {
        out += ",\"tenant\":";
        append_text(out, hint.tenant);
    }
    if (!hint.group.empty()) {
        out += ",\"group\":";
        append_text(out, hint.group);
    }
}

/// Takes the parser's events. Level 1 is the text's own object, level 3 an object of `items`.
class ReadingBuilder {
public:
    explicit ReadingBuilder(Reading& out) : out_(out) {}

    bool Null() { return scalar(); }
    bool Bool(bool value) {
        if (field_ == Field::enabled && here()) {
            target().enabled = value;
        }
        return scalar();
    }
    // Never called: numbers come as texts.
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(std::int64_t) { return false; }
    bool Uint64(std::uint64_t) { return false; }
    bool Double(double) { return false; }
    bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
        if (field_ == Field::challenge && level_ == 1) {
            out_.challenge_ = std::string_view(text, size) == "1";
        }
        return scalar();
    }
    bool String(const char* text, rapidjson::SizeType size, bool) {
        if (here()) {
            take({text, size});
        }
        return scalar();
    }
    bool Key(const char* text, rapidjson::SizeType size, bool) {
        field_ = here() ? field_of({text, size}) : Field::other;
        return true;
    }
    bool StartObject() {
        if (level_ == 2 && in_items_) {
            field_ = Field::other;
            keeping_ = out_.items_.size() < kMaxItems;
            if (keeping_) {
                out_.items_.emplace_back();
            } else {
                ++out_.skipped_;
            }
        }
        return enter();
    }
    bool EndObject(rapidjson::SizeType) { return leave(); }
    bool StartArray() {
        if (level_ == 0) {
            return false;
        }
        if (level_ == 1) {
            in_items_ = field_ == Field::items;
        }
        return enter();
    }
    bool EndArray(rapidjson::SizeType) { return leave(); }

private:
    enum class Field {
        other,
        queue,
        partition,
        tenant,
        group,
        kind,
        subject,
        enabled,
        server_id,
        nonce,
        mac,
        instance,
        challenge,
        items
    };

    static Field field_of(std::string_view name) noexcept {
        static constexpr std::array<std::pair<std::string_view, Field>, 13> kFields{{
            {"queue", Field::queue},
            {"partition", Field::partition},
            {"tenant", Field::tenant},
            {"group", Field::group},
            {"kind", Field::kind},
            {"subject", Field::subject},
            {"enabled", Field::enabled},
            {"server_id", Field::server_id},
            {"nonce", Field::nonce},
            {"mac", Field::mac},
            {"instance", Field::instance},
            {"challenge", Field::challenge},
            {"items", Field::items},
        }};
        const auto* const found = std::find_if(kFields.begin(), kFields.end(),
                                               [&](const auto& k) { return k.first == name; });
        return found == kFields.end() ? Field::other : found->second;
    }

    /// Whether a member that comes now belongs to the text itself, or to an item that is kept.
    bool here() const noexcept { return level_ == 1 || (level_ == 3 && in_items_ && keeping_); }
    Item& target() noexcept { return level_ == 1 ? out_.top_ : out_.items_.back(); }

    void take(std::string_view text) {
        std::string_view* to = place();
        if (to != nullptr) {
            // The capacity holds the whole text, so nothing that was stored before moves.
            const std::size_t at = out_.texts_.size();
            out_.texts_ += text;
            *to = std::string_view(out_.texts_).substr(at);
        }
    }
    std::string_view* place() noexcept {
        switch (field_) {
        case Field::queue:
            return &target().queue;
        case Field::partition:
            return &target().partition;
        case Field::tenant:
            return &target().tenant;
        case Field::group:
            return &target().group;
        case Field::kind:
            return &target().kind;
        case Field::subject:
            return &target().subject;
        case Field::server_id:
            return level_ == 1 ? &out_.server_id_ : nullptr;
        case Field::nonce:
            return level_ == 1 ? &out_.nonce_ : nullptr;
        case Field::mac:
            return level_ == 1 ? &out_.mac_ : nullptr;
        case Field::instance:
            return level_ == 1 ? &out_.instance_ : nullptr;
        case Field::other:
        case Field::enabled:
        case Field::challenge:
        case Field::items:
            break;
        }
        return nullptr;
    }
    bool scalar() noexcept { return level_ > 0; }
    bool enter() noexcept { return ++level_ <= kMaxDepth; }
    bool leave() noexcept {
        --level_;
        if (level_ == 1) {
            in_items_ = false;
        }
        field_ = Field::other;
        return true;
    }

    Reading& out_;
    std::size_t level_ = 0;
    Field field_ = Field::other;
    bool in_items_ = false;
    bool keeping_ = false;
};

void Reading::clear() {
    *this = Reading();
    std::string().swap(texts_); // a string that is moved from keeps its target's memory
}

bool Reading::read(std::string_view text) {
    clear();
    texts_.reserve(text.size()); // a decoded text is never longer than its escapes
    rapidjson::Reader reader;
    rapidjson::MemoryStream stream(text.data(), text.size());
    ReadingBuilder builder(*this);
    const bool sound = reader.Parse<kFlags>(stream, builder) && stream.Tell() == text.size();
    if (!sound) {
        clear();
    }
    return sound;
}

std::string_view Reading::instance() const noexcept {
    return is_name(instance_) ? instance_ : std::string_view{};
}

bool is_name(std::string_view text) noexcept {
    if (text.empty() || text.size() > kMaxName ||
        std::any_of(text.begin(), text.end(), is_control)) {
        return false;
    }
    // The parser lets a lone surrogate's escape through: three bytes that are no UTF-8. C1 controls
    // are 0xc2 and a byte below 0xa0.
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(text[i + 1]);
        if ((lead == 0xed && next >= 0xa0) || (lead == 0xc2 && next < 0xa0)) {
            return false;
        }
    }
    return true;
}

bool is_server_id(std::string_view text) {
    if (!is_name(text)) {
        return false;
    }
    std::string json = "{\"server_id\":";
    append_text(json, text);
    json += '}';
    Reading reading;
    return reading.read(json) && reading.server_id() == text;
}

std::string tenant_of(std::string_view text) {
    constexpr std::size_t kUuidText = 36;
    if (text.size() != kUuidText) {
        return {};
    }
    std::string out(text);
    for (std::size_t i = 0; i < kUuidText; ++i) {
        char& c = out[i];
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (c != '-') {
                return {};
            }
            continue;
        }
        if (c >= 'A' && c <= 'F') {
            c = static_cast<char>(c - 'A' + 'a');
        }
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return {};
        }
    }
    return out;
}

} // namespace queen::hint_json
