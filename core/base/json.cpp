// The reader, on RapidJSON's iterative SAX parser. What that parser leaves to us, each pinned by a
// test:
// - Positions. It reports none. Between two tokens there are only blanks, commas and colons, so a
//   token begins where those end. Containers report their end before the bracket is consumed.
// - Numbers beyond a double (1e400, 400 digits) are refused even when numbers are kept as text: see
//   tame_numbers().
// - A low surrogate escape without its high one passes and decodes to bytes that are not UTF-8.
// - A NUL byte between tokens counts as the end of the text.
// - Depth is not limited.
#include "base/json.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace queen::json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

/// Positions are 32-bit inside RapidJSON.
constexpr std::size_t kMaxTextBytes = std::numeric_limits<rapidjson::SizeType>::max();

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Length of the JSON number at the start of `text`; 0 when there is none.
std::size_t number_length(std::string_view text) {
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t from = at;
        while (at < text.size() && is_digit(text[at])) {
            ++at;
        }
        return at > from;
    };
    const auto next_is = [&](std::string_view any) {
        return at < text.size() && any.find(text[at]) != any.npos;
    };
    at += next_is("-") ? 1 : 0;
    if (next_is("0")) {
        ++at;
    } else if (!digits()) {
        return 0;
    }
    if (next_is(".")) {
        ++at;
        if (!digits()) {
            return 0;
        }
    }
    if (next_is("eE")) {
        ++at;
        at += next_is("+-") ? 1 : 0;
        if (!digits()) {
            return 0;
        }
    }
    return at;
}

/// A copy of `text` in which every number from `from` on (a place outside strings) that may be
/// beyond a double is replaced by a zero of the same length: positions stay, and the handlers are
/// given the text as it was. Judges whole runs of characters that numbers are made of, so that a
/// malformed run never becomes a number.
std::string tame_numbers(std::string_view text, std::size_t from) {
    constexpr std::size_t kShortestTooBig = 5; // 9e308 fits, 1e309 does not
    std::string tame(text);
    std::size_t at = from;
    while (at < text.size()) {
        if (text[at] == '"') {
            ++at;
            while (at < text.size() && text[at] != '"') {
                at += text[at] == '\\' ? 2 : 1;
            }
            ++at;
            continue;
        }
        const std::size_t end =
            std::min(text.find_first_not_of("0123456789+-.eE", at), text.size());
        const std::size_t length = end - at;
        if (length >= kShortestTooBig && number_length(text.substr(at, length)) == length) {
            tame.replace(at, length, length, '0');
            tame[at + 1] = '.';
        }
        at = std::max(end, at + 1);
    }
    return tame;
}

/// Turns RapidJSON's events into ours. Events of tokens before `resume_at` were delivered by an
/// earlier pass and are swallowed.
class Adapter {
public:
    Adapter(std::string_view text, const rapidjson::MemoryStream& in, Events& events,
            std::size_t resume_at)
        : text_(text), in_(in), events_(events), resume_at_(resume_at) {}

    /// Why the parse was stopped by us, and where; null when RapidJSON or nobody did.
    const char* problem() const { return problem_; }
    std::size_t problem_at() const { return problem_at_; }

    bool Null() {
        const Token token = take_token();
        return token.done || accept(events_.null(token.begin, token.end), token);
    }
    bool Bool(bool value) {
        const Token token = take_token();
        return token.done || accept(events_.boolean(value, token.begin, token.end), token);
    }
    bool RawNumber(const char*, rapidjson::SizeType, bool) {
        const Token token = take_token();
        return token.done ||
               accept(events_.number(text_.substr(token.begin, token.end - token.begin),
                                     token.begin, token.end),
                      token);
    }
    bool String(const char* data, rapidjson::SizeType size, bool) {
        const Token token = take_token();
        const std::string_view value(data, size);
        if (has_lone_surrogate(value, token)) {
            return refuse("The surrogate pair in string is invalid.", token.begin);
        }
        return token.done || accept(events_.string(value, token.begin, token.end), token);
    }
    bool Key(const char* data, rapidjson::SizeType size, bool) {
        const Token token = take_token();
        const std::string_view name(data, size);
        if (has_lone_surrogate(name, token)) {
            return refuse("The surrogate pair in string is invalid.", token.begin);
        }
        return token.done || accept(events_.key(name), token);
    }
    bool StartObject() {
        const Token token = take_bracket();
        return enter(token) && (token.done || accept(events_.begin_object(token.begin), token));
    }
    bool EndObject(rapidjson::SizeType) {
        const Token token = leave();
        return token.done || accept(events_.end_object(token.end), token);
    }
    bool StartArray() {
        const Token token = take_bracket();
        return enter(token) && (token.done || accept(events_.begin_array(token.begin), token));
    }
    bool EndArray(rapidjson::SizeType) {
        const Token token = leave();
        return token.done || accept(events_.end_array(token.end), token);
    }

    // Of RapidJSON's handler concept; numbers come as text, so these are never called.
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(std::int64_t) { return false; }
    bool Uint64(std::uint64_t) { return false; }
    bool Double(double) { return false; }

private:
    struct Token {
        std::size_t begin;
        std::size_t end;
        bool done; ///< delivered by an earlier pass
    };

    Token take(std::size_t end) {
        const std::size_t begin = text_.find_first_not_of(" \t\r\n,:", last_end_);
        last_end_ = end;
        return {begin, end, begin < resume_at_};
    }
    Token take_token() { return take(in_.Tell()); }
    Token take_bracket() { return take(in_.Tell() + 1); }

    bool enter(const Token& token) {
        if (depth_ == kMaxDepth) {
            return refuse("Nested too deeply (512 levels are allowed).", token.begin);
        }
        ++depth_;
        return true;
    }
    Token leave() {
        --depth_;
        return take_bracket();
    }

    /// Decoded text that is not UTF-8 can only come from an escape: raw bytes are validated.
    bool has_lone_surrogate(std::string_view decoded, const Token& token) const {
        const bool escaped = decoded.size() != token.end - token.begin - 2;
        if (!escaped) {
            return false;
        }
        for (std::size_t at = decoded.find('\xED'); at < decoded.size();
             at = decoded.find('\xED', at + 1)) {
            if (static_cast<unsigned char>(decoded[at + 1]) >= 0xA0) { // U+D800 to U+DFFF
                return true;
            }
        }
        return false;
    }

    bool accept(bool wanted, const Token& token) {
        return wanted || refuse("stopped", token.begin);
    }
    bool refuse(const char* problem, std::size_t at) {
        problem_ = problem;
        problem_at_ = at;
        return false;
    }

    std::string_view text_;
    const rapidjson::MemoryStream& in_;
    Events& events_;
    std::size_t resume_at_;
    std::size_t last_end_ = 0;
    std::size_t depth_ = 0;
    const char* problem_ = nullptr;
    std::size_t problem_at_ = 0;
};

struct Outcome {
    const char* problem = nullptr; ///< null: the text is one JSON value
    std::size_t at = 0;
    bool number_too_big = false;
};

/// @param text   what the events are about
/// @param input  what is read: `text`, or the same with tame numbers
Outcome read(std::string_view text, std::string_view input, Events& events, std::size_t resume_at) {
    rapidjson::MemoryStream in(input.data(), input.size());
    Adapter adapter(text, in, events, resume_at);
    rapidjson::Reader reader;
    const rapidjson::ParseResult result = reader.Parse<kFlags>(in, adapter);
    if (adapter.problem() != nullptr) {
        return {adapter.problem(), adapter.problem_at()};
    }
    if (result.IsError()) {
        return {rapidjson::GetParseError_En(result.Code()), result.Offset(),
                result.Code() == rapidjson::kParseErrorNumberTooBig};
    }
    if (in.Tell() != input.size()) { // a NUL byte
        return {rapidjson::GetParseError_En(rapidjson::kParseErrorDocumentRootNotSingular),
                in.Tell()};
    }
    return {};
}

/// Takes every event; only the parser's verdict matters.
class AnyEvents final : public Events {
public:
    bool null(std::size_t, std::size_t) override { return true; }
    bool boolean(bool, std::size_t, std::size_t) override { return true; }
    bool number(std::string_view, std::size_t, std::size_t) override { return true; }
    bool string(std::string_view, std::size_t, std::size_t) override { return true; }
    bool key(std::string_view) override { return true; }
    bool begin_object(std::size_t) override { return true; }
    bool end_object(std::size_t) override { return true; }
    bool begin_array(std::size_t) override { return true; }
    bool end_array(std::size_t) override { return true; }
};

} // namespace

Result<void> parse(std::string_view text, Events& events) {
    if (text.size() > kMaxTextBytes) {
        return fail(Errc::invalid_argument, "JSON text over 4 GiB");
    }
    Outcome outcome = read(text, text, events, 0);
    if (outcome.number_too_big) {
        // Everything before that number has been delivered; go on from there, once.
        const std::size_t resume_at = outcome.at;
        outcome = read(text, tame_numbers(text, resume_at), events, resume_at);
    }
    if (outcome.problem == nullptr) {
        return {};
    }
    const std::string_view problem = outcome.problem;
    if (problem == "stopped") {
        return fail(Errc::invalid_argument, "stopped");
    }
    return fail(Errc::invalid_argument,
                std::string(problem) + " (at byte " + std::to_string(outcome.at) + ")");
}

Result<void> check(std::string_view text) {
    AnyEvents events;
    return parse(text, events);
}

} // namespace queen::json
