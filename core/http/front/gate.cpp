#include "http/front/gate.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace queen::http {
namespace {

enum : std::uint8_t { kToken = 1, kText = 2, kTarget = 4, kHost = 8 };

constexpr std::array<std::uint8_t, 256> make_classes() {
    std::array<std::uint8_t, 256> classes{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool alnum = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                           (byte >= 'A' && byte <= 'Z');
        std::uint8_t bits = 0;
        if (byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
            bits |= kText;
        }
        // Bytes from 0x80 on are let pass: clients send unescaped UTF-8, and the routes check it.
        if (byte > 0x20 && byte != 0x7f && byte != '#') {
            bits |= kTarget;
        }
        if (alnum) {
            bits |= kToken | kHost;
        }
        classes[byte] = bits;
    }
    for (const char byte : std::string_view("!#$%&'*+-.^_`|~")) {
        classes[static_cast<unsigned char>(byte)] |= kToken;
    }
    for (const char byte : std::string_view("-._~!$&'()*+,;=:[]%")) {
        classes[static_cast<unsigned char>(byte)] |= kHost;
    }
    return classes;
}
constexpr auto kClasses = make_classes();

bool is(char byte, std::uint8_t bits) noexcept {
    return (kClasses[static_cast<unsigned char>(byte)] & bits) != 0;
}
bool all(std::string_view text, std::uint8_t bits) noexcept {
    return std::all_of(text.begin(), text.end(), [&](char byte) { return is(byte, bits); });
}
bool digit(char byte) noexcept {
    return byte >= '0' && byte <= '9';
}
char lower(char byte) noexcept {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

bool begins_line(char byte) noexcept {
    return is(byte, kToken) || byte == '\r' || byte == '\n';
}

constexpr std::string_view kVersion = "HTTP/1.1";

} // namespace

bool same_word(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) noexcept {
    const auto blank = [](char byte) { return byte == ' ' || byte == '\t'; };
    while (!text.empty() && blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

std::optional<std::string_view> origin_form(std::string_view target) noexcept {
    if (target.front() == '/') {
        return target;
    }
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (same_word(target.substr(0, scheme.size()), scheme)) {
            target.remove_prefix(scheme.size());
            const std::size_t end = std::min(target.find_first_of("/?"), target.size());
            if (end == 0 || !all(target.substr(0, end), kHost)) {
                return std::nullopt;
            }
            return target.substr(end);
        }
    }
    return std::nullopt;
}

bool text_byte(char byte) noexcept {
    return is(byte, kText);
}

Field split_field(std::string_view line) noexcept {
    if (line.front() == ' ' || line.front() == '\t') {
        return {.problem = "a field is folded over lines"};
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
        return {.problem = "a field line has no colon"};
    }
    Field field{.name = line.substr(0, colon), .value = trimmed(line.substr(colon + 1))};
    if (field.name.empty()) {
        field.problem = "a field has no name";
    } else if (field.name.back() == ' ' || field.name.back() == '\t') {
        field.problem = "a blank stands before the colon of a field";
    } else if (!all(field.name, kToken)) {
        field.problem = "a field name holds a byte that is not allowed";
    } else if (!all(field.value, kText)) {
        field.problem = "a field value holds a control byte";
    } else if (field.name.size() > Gate::kNameBytes) {
        field.problem = "a field name is longer than 256 bytes";
        field.status = 431;
    } else if (!field.value.empty() && // with the blanks behind it, as the parser counts
               line.data() + line.size() - field.value.data() > std::ptrdiff_t{Gate::kValueBytes}) {
        field.problem = "a field value is longer than 8192 bytes";
        field.status = 431;
    }
    return field;
}

Gate::Verdict Gate::refuse(int status, std::string text) {
    refusal_ = {status, std::move(text)};
    return Verdict::refused;
}

Gate::Verdict Gate::scan(std::string_view bytes) {
    const std::size_t uri_limit = std::min(limits_->uri_bytes, kUriBytes);
    while (true) {
        if (!in_fields_ && bytes.size() > line_begin_ && !begins_line(bytes[line_begin_])) {
            // A TLS hello has no line end to wait for: say so at its first byte.
            return refuse(400, "the request does not begin with a method; this port speaks plain "
                               "HTTP/1.1");
        }
        std::size_t limit = limits_->head_bytes;
        bool limited_by_uri = false;
        if (!in_fields_) {
            const std::size_t longest =
                line_begin_ + kMethodBytes + 1 + uri_limit + 1 + kVersion.size() + 2;
            limited_by_uri = longest < limit;
            limit = std::min(limit, longest);
        }
        const std::size_t window = std::min(bytes.size(), limit);
        const void* found = looked_ < window
                                ? std::memchr(bytes.data() + looked_, '\n', window - looked_)
                                : nullptr;
        if (found == nullptr) {
            looked_ = window;
            if (window < limit) {
                return Verdict::more;
            }
            return limited_by_uri ? refuse(414, "the request target is longer than " +
                                                    std::to_string(uri_limit) + " bytes")
                                  : refuse(431, "the head of the request is longer than " +
                                                    std::to_string(limit) + " bytes");
        }
        const auto lf = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
        std::string_view line = bytes.substr(line_begin_, lf - line_begin_);
        if (line.empty() || line.back() != '\r') {
            return refuse(400, "a line of the head ends in LF without CR");
        }
        line.remove_suffix(1);
        const std::size_t begin = line_begin_;
        line_begin_ = looked_ = lf + 1;
        Verdict verdict = Verdict::more;
        if (in_fields_) {
            verdict = line.empty() ? end_of_head() : field_line(line);
        } else if (!line.empty()) {
            verdict = request_line(line, begin);
        } else if (++empty_lines_ > kEmptyLines) {
            verdict = refuse(400, "more than 4 empty lines stand before the request");
        }
        if (verdict != Verdict::more) {
            return verdict;
        }
    }
}

Gate::Verdict Gate::request_line(std::string_view line, std::size_t begin) {
    const std::size_t first = line.find(' ');
    const std::string_view method = line.substr(0, first);
    if (method.empty() || !all(method, kToken)) {
        return refuse(400, "the method is not a token");
    }
    if (method.size() > kMethodBytes) {
        return refuse(400, "the method is longer than 32 bytes");
    }
    if (first == std::string_view::npos) {
        return refuse(400, "the request line has no target");
    }
    const std::string_view rest = line.substr(first + 1);
    const std::size_t second = rest.find(' ');
    const std::string_view target = rest.substr(0, second);
    if (second == std::string_view::npos || target.empty()) {
        return refuse(400,
                      "the request line is not `method target version` with one blank between");
    }
    const std::size_t uri_limit = std::min(limits_->uri_bytes, kUriBytes);
    if (target.size() > uri_limit) {
        return refuse(414,
                      "the request target is longer than " + std::to_string(uri_limit) + " bytes");
    }
    if (!all(target, kTarget)) {
        return refuse(400, "the request target holds a byte that is not allowed");
    }
    const std::string_view version = rest.substr(second + 1);
    if (version.size() != kVersion.size() || version.substr(0, 5) != kVersion.substr(0, 5) ||
        !digit(version[5]) || version[6] != '.' || !digit(version[7])) {
        return refuse(400, "the request line does not end in an HTTP version");
    }
    if (version[5] != '1') {
        return refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    const bool served = target == "*" ? method == "OPTIONS" : origin_form(target).has_value();
    if (!served) {
        return refuse(400, "the request target is neither a path nor an http URI");
    }
    head_.begin = begin;
    head_.method_bytes = method.size();
    head_.target_begin = begin + first + 1;
    head_.target_bytes = target.size();
    head_.version_1_0 = version[7] == '0';
    head_.fields_begin = line_begin_;
    in_fields_ = true;
    return Verdict::more;
}

Gate::Verdict Gate::field_line(std::string_view line) {
    const Field field = split_field(line);
    if (*field.problem != '\0') {
        return refuse(field.status, field.problem);
    }
    if (++fields_ > limits_->fields) {
        return refuse(431,
                      "the request has more than " + std::to_string(limits_->fields) + " fields");
    }
    switch (field.name.size()) {
    case 4:
        if (same_word(field.name, "host")) {
            if (has_host_) {
                return refuse(400, "Host is given twice");
            }
            has_host_ = true;
            if (!all(field.value, kHost)) {
                return refuse(400, "Host is not a host name and port");
            }
        }
        break;
    case 6:
        if (same_word(field.name, "expect")) {
            return expectation(field.value);
        }
        break;
    case 10:
        if (same_word(field.name, "connection")) {
            connection(field.value);
        }
        break;
    case 14:
        if (same_word(field.name, "content-length")) {
            return content_length(field.value);
        }
        break;
    case 17:
        if (same_word(field.name, "transfer-encoding")) {
            if (has_coding_) {
                return refuse(400, "Transfer-Encoding is given twice");
            }
            has_coding_ = true;
            if (!same_word(field.value, "chunked")) {
                return refuse(400, "Transfer-Encoding is not exactly `chunked`");
            }
        }
        break;
    default:
        break;
    }
    return Verdict::more;
}

Gate::Verdict Gate::content_length(std::string_view value) {
    if (has_length_) {
        return refuse(400, "Content-Length is given twice");
    }
    has_length_ = true;
    if (value.empty() || !std::all_of(value.begin(), value.end(), digit)) {
        return refuse(400, "Content-Length is not a plain decimal number");
    }
    std::uint64_t length = 0;
    for (const char byte : value) {
        constexpr std::uint64_t kMost = INT64_MAX;
        const auto figure = static_cast<std::uint64_t>(byte - '0');
        if (length > (kMost - figure) / 10) {
            return refuse(400, "Content-Length is above 9223372036854775807");
        }
        length = length * 10 + figure;
    }
    head_.content_length = length;
    return Verdict::more;
}

Gate::Verdict Gate::expectation(std::string_view value) {
    if (!same_word(value, "100-continue")) {
        return refuse(417, "Expect is not `100-continue`");
    }
    head_.expects_continue = true;
    return Verdict::more;
}

void Gate::connection(std::string_view value) {
    while (!value.empty()) {
        const std::size_t comma = std::min(value.find(','), value.size());
        const std::string_view word = trimmed(value.substr(0, comma));
        says_close_ = says_close_ || same_word(word, "close");
        says_keep_alive_ = says_keep_alive_ || same_word(word, "keep-alive");
        value.remove_prefix(std::min(comma + 1, value.size()));
    }
}

Gate::Verdict Gate::end_of_head() {
    if (!has_host_ && !head_.version_1_0) {
        return refuse(400, "Host is missing");
    }
    if (has_coding_ && has_length_) {
        return refuse(400, "Content-Length and Transfer-Encoding are both given");
    }
    if (has_coding_ && head_.version_1_0) {
        return refuse(400, "Transfer-Encoding is unknown to HTTP/1.0");
    }
    head_.framing = has_coding_ ? Framing::chunked : has_length_ ? Framing::length : Framing::none;
    head_.keep_alive = !says_close_ && (!head_.version_1_0 || says_keep_alive_);
    // An HTTP/1.0 client cannot read an interim answer.
    head_.expects_continue = head_.expects_continue && !head_.version_1_0;
    head_.end = line_begin_;
    return Verdict::passed;
}

} // namespace queen::http
