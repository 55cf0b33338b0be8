#include "http/front/chunked.hpp"

#include <algorithm>

namespace queen::http {
namespace {

int hex_value(char byte) noexcept {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

} // namespace

ChunkedBody::Verdict ChunkedBody::refuse(int status, std::string text) {
    refusal_ = {status, std::move(text)};
    return Verdict::refused;
}

ChunkedBody::Verdict ChunkedBody::feed(std::string_view bytes, std::size_t& used,
                                       std::string& body) {
    used = 0;
    while (used < bytes.size()) {
        if (state_ == State::data) {
            const auto part =
                static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - used));
            body.append(bytes.substr(used, part));
            used += part;
            left_ -= part;
            if (left_ == 0) {
                state_ = State::data_cr;
            }
            continue;
        }
        const char byte = bytes[used++];
        Verdict verdict = Verdict::more;
        switch (state_) {
        case State::size:
            verdict = on_size(byte);
            break;
        case State::blank:
        case State::extension:
            verdict = on_extension(byte);
            break;
        case State::size_lf:
            verdict = byte == '\n' ? on_size_end(body.size())
                                   : refuse(400, "a chunk's size line has a CR without LF");
            break;
        case State::data:
            break;
        case State::data_cr:
            state_ = State::data_lf;
            if (byte != '\r') {
                verdict = refuse(400, "a chunk is longer than its size");
            }
            break;
        case State::data_lf:
            state_ = State::size;
            if (byte != '\n') {
                verdict = refuse(400, "a chunk is longer than its size");
            }
            break;
        case State::trailer:
            verdict = on_trailer(byte);
            break;
        case State::trailer_lf:
            verdict =
                byte == '\n' ? on_trailer_end() : refuse(400, "a trailer line has a CR without LF");
            break;
        }
        if (verdict != Verdict::more) {
            return verdict;
        }
    }
    return Verdict::more;
}

ChunkedBody::Verdict ChunkedBody::on_size(char byte) {
    if (const int value = hex_value(byte); value >= 0) {
        if (++digits_ > kSizeDigits) {
            return refuse(400, "a chunk size has more than 16 digits");
        }
        left_ = left_ << 4 | static_cast<std::uint64_t>(value);
        return Verdict::more;
    }
    if (digits_ == 0) {
        return refuse(400, "a chunk size is not a hexadecimal number");
    }
    if (byte == '\r') {
        state_ = State::size_lf;
        return Verdict::more;
    }
    state_ = State::blank;
    return on_extension(byte);
}

ChunkedBody::Verdict ChunkedBody::on_extension(char byte) {
    if (++extension_bytes_ > kExtensionBytes) {
        return refuse(400, "the chunk extensions of the body are longer than " +
                               std::to_string(kExtensionBytes) + " bytes");
    }
    if (state_ == State::blank) {
        if (byte == ';') {
            state_ = State::extension;
        } else if (byte != ' ' && byte != '\t') {
            return refuse(400, "a chunk size is not a hexadecimal number");
        }
    } else if (byte == '\r') {
        state_ = State::size_lf;
    } else if (!text_byte(byte)) {
        return refuse(400, "a chunk extension holds a control byte");
    }
    return Verdict::more;
}

ChunkedBody::Verdict ChunkedBody::on_size_end(std::size_t body_bytes) {
    digits_ = 0;
    if (left_ == 0) {
        state_ = State::trailer;
        return Verdict::more;
    }
    if (left_ > most_ - std::min(most_, body_bytes)) {
        return refuse(413,
                      "the body of the request is longer than " + std::to_string(most_) + " bytes");
    }
    state_ = State::data;
    return Verdict::more;
}

ChunkedBody::Verdict ChunkedBody::on_trailer(char byte) {
    if (byte == '\r') {
        state_ = State::trailer_lf;
        return Verdict::more;
    }
    if (byte == '\n') {
        return refuse(400, "a trailer line ends in LF without CR");
    }
    if (++trailer_bytes_ > kTrailerBytes) {
        return refuse(431, "the trailers of the body are longer than " +
                               std::to_string(kTrailerBytes) + " bytes");
    }
    trailer_.push_back(byte);
    return Verdict::more;
}

ChunkedBody::Verdict ChunkedBody::on_trailer_end() {
    if (trailer_.empty()) {
        return Verdict::complete;
    }
    const Field field = split_field(trailer_);
    if (*field.problem != '\0') {
        return refuse(field.status, std::string("trailer: ") + field.problem);
    }
    trailer_.clear();
    state_ = State::trailer;
    return Verdict::more;
}

} // namespace queen::http
