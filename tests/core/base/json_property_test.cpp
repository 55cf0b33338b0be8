#include "base/json.hpp"
#include "base/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace queen::json {
namespace {

/// 0 to `count` - 1, each as likely as any other: inRange() alone keeps to small values at first.
int pick(int count) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, count));
}

std::string blanks() {
    return *rc::gen::container<std::string>(static_cast<std::size_t>(pick(3)),
                                            rc::gen::element(' ', '\t', '\r', '\n'));
}

std::string number_text() {
    std::string text = *rc::gen::element("", "-");
    const auto digits = [](int most) {
        return *rc::gen::container<std::string>(1 + static_cast<std::size_t>(pick(most)),
                                                rc::gen::elementOf(std::string("0123456789")));
    };
    text += *rc::gen::element(std::string("0"), "7" + digits(25), std::string(1, '3'));
    if (*rc::gen::arbitrary<bool>()) {
        text += "." + digits(25);
    }
    if (*rc::gen::arbitrary<bool>()) {
        text +=
            *rc::gen::element("e", "E") + std::string(*rc::gen::element("", "+", "-")) + digits(6);
    }
    return text;
}

std::string string_text() {
    std::string text = "\"";
    const auto pieces = pick(6);
    for (int i = 0; i < pieces; ++i) {
        text += *rc::gen::element<std::string>(
            "a", " ", "\\n", "\\\"", "\\\\", "\\u0000", "\\u00e9", "\\ud83d\\ude00", "é", "日",
            "\xF0\x9F\x98\x80", "{", "[", ",", ":", "1e400", "\\/", "\x7F");
    }
    return text + "\"";
}

/// A random JSON text with blanks wherever they may stand.
std::string value_text(int depth) {
    std::string text;
    switch (pick(depth > 0 ? 8 : 5)) {
    case 0:
        return "null";
    case 1:
        return *rc::gen::element("true", "false");
    case 2:
        return string_text();
    case 3:
    case 4:
        return number_text();
    case 5:
    case 6: {
        text = "[" + blanks();
        const auto count = pick(4);
        for (int i = 0; i < count; ++i) {
            text += (i > 0 ? "," + blanks() : "") + value_text(depth - 1) + blanks();
        }
        return text + "]";
    }
    default: {
        text = "{" + blanks();
        const auto count = pick(4);
        for (int i = 0; i < count; ++i) {
            text += (i > 0 ? "," + blanks() : "") + string_text() + blanks() + ":" + blanks() +
                    value_text(depth - 1) + blanks();
        }
        return text + "}";
    }
    }
}

/// A text whose root is a container, so that no run is spent on a lone number.
std::string container_text() {
    return "[" + blanks() + value_text(4) + "," + value_text(3) + "]";
}

/// Cuts every value out of the text it is parsed from and keeps a canonical form of the events.
class Slicer final : public Events {
public:
    explicit Slicer(std::string_view text) : text_(text) {}
    std::vector<std::string_view> slices;
    std::string canonical;

    bool null(std::size_t begin, std::size_t end) override { return add("null", begin, end); }
    bool boolean(bool value, std::size_t begin, std::size_t end) override {
        return add(value ? "true" : "false", begin, end);
    }
    bool number(std::string_view text, std::size_t begin, std::size_t end) override {
        return add(text, begin, end);
    }
    bool string(std::string_view value, std::size_t begin, std::size_t end) override {
        return add(quoted(value), begin, end);
    }
    bool key(std::string_view name) override {
        canonical += json::quoted(name) + ":";
        return true;
    }
    bool begin_object(std::size_t begin) override { return open('{', begin); }
    bool end_object(std::size_t end) override { return close('}', end); }
    bool begin_array(std::size_t begin) override { return open('[', begin); }
    bool end_array(std::size_t end) override { return close(']', end); }

private:
    bool add(std::string_view canonical_text, std::size_t begin, std::size_t end) {
        slices.push_back(text_.substr(begin, end - begin));
        canonical.append(canonical_text).append(",");
        return true;
    }
    bool open(char bracket, std::size_t begin) {
        begins_.push_back(begin);
        canonical += bracket;
        return true;
    }
    bool close(char bracket, std::size_t end) {
        slices.push_back(text_.substr(begins_.back(), end - begins_.back()));
        begins_.pop_back();
        canonical.append(1, bracket).append(",");
        return true;
    }
    std::string_view text_;
    std::vector<std::size_t> begins_;
};

RC_GTEST_PROP(JsonProperty, SlicesParseAgainAndAreEqual, ()) {
    const std::string value = container_text();
    const std::string text = blanks() + value + blanks();
    Slicer whole(text);
    RC_ASSERT(parse(text, whole).has_value());
    RC_ASSERT(whole.slices.back() == value);
    for (const std::string_view slice : whole.slices) {
        Slicer part(slice);
        RC_ASSERT(parse(slice, part).has_value());
        RC_ASSERT(part.slices.back() == slice);
        RC_ASSERT(whole.canonical.find(part.canonical) != std::string::npos);
    }
}

RC_GTEST_PROP(JsonProperty, ADocumentSaysWhatTheEventsSay, ()) {
    const std::string text = container_text();
    Slicer events(text);
    RC_ASSERT(parse(text, events).has_value());
    const auto doc = Document::parse(text);
    RC_ASSERT(doc.has_value());
    std::string canonical;
    const auto walk = [&](const auto& self, Value value) -> void {
        switch (value.kind()) {
        case Kind::missing:
            RC_FAIL("a document has no holes");
        case Kind::null:
            canonical += "null";
            break;
        case Kind::boolean:
            canonical += *value.boolean() ? "true" : "false";
            break;
        case Kind::number:
            canonical += value.raw_number();
            break;
        case Kind::string:
            canonical += json::quoted(value.string());
            break;
        case Kind::array:
            canonical += '[';
            for (std::size_t i = 0; i < value.size(); ++i) {
                self(self, value.at(i));
            }
            canonical += ']';
            break;
        case Kind::object:
            canonical += '{';
            for (std::size_t i = 0; i < value.size(); ++i) {
                canonical += json::quoted(value.key_at(i)) + ":";
                self(self, value.value_at(i));
            }
            canonical += '}';
            break;
        }
        canonical += ',';
    };
    walk(walk, doc->root());
    RC_ASSERT(canonical == events.canonical);
}

RC_GTEST_PROP(JsonProperty, ATextCutShortIsRefused, ()) {
    const std::string text = container_text();
    const auto size = *rc::gen::inRange<std::size_t>(0, text.size());
    Slicer slicer(std::string_view(text).substr(0, size));
    RC_ASSERT(!parse(std::string_view(text).substr(0, size), slicer).has_value());
}

RC_GTEST_PROP(JsonProperty, ADamagedTextIsRefusedOrStillWellFormed, ()) {
    std::string text = container_text();
    text[static_cast<std::size_t>(pick(static_cast<int>(text.size())))] = *rc::gen::oneOf(
        rc::gen::arbitrary<char>(), rc::gen::elementOf(std::string("0123456789+-.eE,:\"\\[]{} ")));
    Slicer slicer(text);
    if (parse(text, slicer).has_value()) {
        RC_ASSERT(valid_utf8(text));
        for (const std::string_view slice : slicer.slices) {
            Slicer part(slice);
            RC_ASSERT(parse(slice, part).has_value());
        }
    }
}

RC_GTEST_PROP(JsonProperty, WrittenStringsReadBackEqual, (const std::string& bytes)) {
    const auto doc = Document::parse(json::quoted(bytes));
    RC_ASSERT(doc.has_value());
    if (valid_utf8(bytes)) {
        RC_ASSERT(doc->root().string() == bytes);
    } else {
        RC_ASSERT(doc->root().string().find("\xEF\xBF\xBD") != std::string_view::npos);
    }
}

RC_GTEST_PROP(JsonProperty, WrittenNumbersReadBackEqual, (std::int64_t whole, double real)) {
    RC_PRE(std::isfinite(real));
    std::string out;
    Writer(out).begin_array().integer(whole).number(real).end_array();
    const auto doc = Document::parse(out);
    RC_ASSERT(doc.has_value());
    RC_ASSERT(doc->root().at(0).integer() == whole);
    RC_ASSERT(std::stod(std::string(doc->root().at(1).raw_number())) == real);
}

RC_GTEST_PROP(JsonProperty, IntegersDoNotDependOnTheirSpelling, (std::int64_t value)) {
    // The same number with the point moved by an exponent.
    const std::string plain = std::to_string(value);
    const std::size_t sign = value < 0 ? 1 : 0;
    const std::string digits = plain.substr(sign);
    const auto places = *rc::gen::inRange<std::size_t>(0, 30);
    std::string spelled = digits;
    if (places >= spelled.size()) {
        spelled.insert(0, places + 1 - spelled.size(), '0');
    }
    spelled.insert(spelled.size() - places, places > 0 ? "." : "");
    while (spelled.size() > 1 && spelled[0] == '0' && spelled[1] != '.') {
        spelled.erase(0, 1);
    }
    const auto doc =
        Document::parse(plain.substr(0, sign) + spelled + "e" + std::to_string(places));
    RC_ASSERT(doc.has_value());
    RC_ASSERT(doc->root().integer() == value);
}

} // namespace
} // namespace queen::json
