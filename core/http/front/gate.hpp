// http/front/gate.hpp - the strict look at the bytes of a request's head, before any parser.
//
// A lenient parser (Poco takes `Content-Length : 5`, folded fields, bare LF, NUL in values) and a
// strict one in front of it can disagree on where a request ends, and then a body becomes somebody
// else's request. So whatever could be read in two ways is refused here, and only what passed is
// parsed. The verdict depends on the bytes alone, never on how they were cut into packets: a limit
// is reached when the bytes before it hold no line end, however they arrived.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace queen::http {

/// Why a request is turned away: what the client is told.
struct Refusal {
    int status = 400;
    std::string text;
    bool retry_later = false; ///< a passing shortage: say when to come back
    std::string_view code{};  ///< stable word for programs; "" for the one of the status
};

struct HeadLimits {
    std::size_t head_bytes = 16 * 1024; ///< empty lines before it included
    std::size_t uri_bytes = 8 * 1024;
    std::size_t fields = 100;
};

enum class Framing : std::uint8_t { none, length, chunked };

/// What the gate learned of a head it let pass. Positions count from the first byte scanned.
struct Head {
    std::size_t begin = 0;        ///< of the request line; empty lines may stand before it
    std::size_t end = 0;          ///< one past the head's last LF: the body's first byte
    std::size_t fields_begin = 0; ///< one past the request line
    std::size_t method_bytes = 0;
    std::size_t target_begin = 0;
    std::size_t target_bytes = 0;
    std::uint64_t content_length = 0; ///< when framing is `length`
    Framing framing = Framing::none;
    bool version_1_0 = false;
    bool keep_alive = true;        ///< by version and Connection field
    bool expects_continue = false; ///< waits for an interim answer before it sends the body
};

/// Judges one head, line by line, each byte once.
///
/// Invariant: `scan` is given all bytes of the head from its first one on, each time at least as
/// many as before; what was looked at is not looked at again.
class Gate {
public:
    enum class Verdict : std::uint8_t { more, passed, refused };

    /// The largest field name and value the parser behind takes (Poco's MessageHeader::Limits).
    static constexpr std::size_t kNameBytes = 256;
    static constexpr std::size_t kValueBytes = 8192;
    static constexpr std::size_t kUriBytes = 16384; ///< Poco's HTTPRequest::Limits
    static constexpr std::size_t kMethodBytes = 32; ///< the same
    static constexpr std::size_t kEmptyLines = 4;   ///< CRLFs tolerated before a request line

    explicit Gate(const HeadLimits& limits) noexcept : limits_(&limits) {}

    /// @source FRM-1 FRM-2 FRM-3 FRM-4
    Verdict scan(std::string_view bytes);
    const Head& head() const noexcept { return head_; } ///< after `passed`
    Refusal take_refusal() { return std::move(refusal_); }
    bool started() const noexcept { return looked_ != 0; }
    void reset() { *this = Gate(*limits_); }

private:
    Verdict refuse(int status, std::string text);
    Verdict request_line(std::string_view line, std::size_t begin);
    Verdict field_line(std::string_view line);
    Verdict content_length(std::string_view value);
    Verdict expectation(std::string_view value);
    Verdict end_of_head();
    void connection(std::string_view value);

    const HeadLimits* limits_;
    std::size_t looked_ = 0;     ///< bytes before it hold no LF that was not judged
    std::size_t line_begin_ = 0; ///< of the line in work
    std::size_t fields_ = 0;
    Head head_;
    Refusal refusal_;
    std::uint8_t empty_lines_ = 0;
    bool in_fields_ = false;
    bool has_host_ = false, has_length_ = false, has_coding_ = false;
    bool says_close_ = false, says_keep_alive_ = false;
};

/// One field line without its CRLF, split. `problem` is empty when it is well formed.
struct Field {
    std::string_view name, value; ///< value without the blanks around it
    const char* problem = "";
    int status = 400;
};
Field split_field(std::string_view line) noexcept;

/// ASCII only: what HTTP compares without case is ASCII.
bool same_word(std::string_view a, std::string_view b) noexcept;
/// Without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text) noexcept;
/// The part of a target behind scheme and authority: all of `/a?b`, `/a?b` of `http://h/a?b`, and
/// "" or `?b` when an absolute one has no path.
/// @return nullopt for neither a path nor an http or https URI
std::optional<std::string_view> origin_form(std::string_view target) noexcept;
/// A byte that may stand in a field's value or a chunk extension: no control but the tab.
bool text_byte(char byte) noexcept;

} // namespace queen::http
