// http/front/chunked.hpp - takes a chunked body apart, byte by byte, with limits on everything.
#pragma once
#include "http/front/gate.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace queen::http {

/// States: size -> (extension) -> LF -> data -> CR -> LF -> size ... -> size 0 -> trailers -> done.
/// Extensions and trailers are checked, bounded and dropped. Whatever is not exactly the grammar
/// is refused: two readings of a chunk size are two readings of where the next request begins.
class ChunkedBody {
public:
    enum class Verdict : std::uint8_t { more, complete, refused };

    static constexpr std::size_t kSizeDigits = 16;
    static constexpr std::size_t kExtensionBytes = 16 * 1024; ///< of all chunks of a body
    static constexpr std::size_t kTrailerBytes = 8 * 1024;    ///< of all trailer lines

    explicit ChunkedBody(std::size_t most) noexcept : most_(most) {}

    /// Decodes from the front of `bytes` and appends to `body`. `used` tells how many bytes were
    /// taken; what follows the body's end is left alone.
    /// @errors refusal 413 past `most` bytes, 431 for trailers, 400 else
    /// @source FRM-5
    Verdict feed(std::string_view bytes, std::size_t& used, std::string& body);
    Refusal take_refusal() { return std::move(refusal_); }

private:
    enum class State : std::uint8_t {
        size,
        blank,
        extension,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailer,
        trailer_lf
    };
    Verdict refuse(int status, std::string text);
    Verdict on_size(char byte);
    Verdict on_extension(char byte);
    Verdict on_size_end(std::size_t body_bytes);
    Verdict on_trailer(char byte);
    Verdict on_trailer_end();

    std::size_t most_;
    std::uint64_t left_ = 0; ///< of the chunk in work: its size, then its bytes to come
    std::size_t extension_bytes_ = 0;
    std::size_t trailer_bytes_ = 0;
    std::string trailer_; ///< the line in work
    Refusal refusal_;
    State state_ = State::size;
    std::uint8_t digits_ = 0;
};

} // namespace queen::http
