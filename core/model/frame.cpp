// Layout of a frame, little-endian (FMT-5):
//   u32 length of the rest
//   u8  flags: 1 trace id, 2 producer subject, 4 payload encrypted
//   16  message id
//   16  trace id                         with flag 1
//   u16 + n  transaction id
//   u16 + n  producer subject            with flag 2
//   the rest  payload
#include "model/frame.hpp"

#include "model/names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace queen {
namespace {

constexpr std::uint8_t kHasTrace = 1;
constexpr std::uint8_t kHasSubject = 2;
constexpr std::uint8_t kEncrypted = 4;
constexpr std::uint8_t kKnownFlags = kHasTrace | kHasSubject | kEncrypted;

constexpr std::size_t kMinBodyBytes = 1 + sizeof(Uuid) + 2; ///< flags, id, length of the txn id
constexpr std::size_t kMaxText16 = std::numeric_limits<std::uint16_t>::max();

template <class Unsigned>
void append_number(std::string& out, std::size_t value) {
    std::array<char, sizeof(Unsigned)> bytes;
    for (char& byte : bytes) {
        byte = static_cast<char>(value & 0xFF);
        value >>= 8;
    }
    out.append(bytes.data(), bytes.size());
}

void append_uuid(std::string& out, const Uuid& id) {
    out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

/// Takes fields off the front; nullopt when they run past the end.
class Cursor {
public:
    explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

    bool done() const { return bytes_.empty(); }
    std::string_view rest() const { return bytes_; }

    std::optional<std::string_view> bytes(std::size_t count) {
        if (count > bytes_.size()) {
            return std::nullopt;
        }
        const std::string_view taken = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return taken;
    }
    template <class Unsigned>
    std::optional<Unsigned> number() {
        const auto taken = bytes(sizeof(Unsigned));
        if (!taken) {
            return std::nullopt;
        }
        Unsigned value = 0;
        for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
            value |= static_cast<Unsigned>(static_cast<unsigned char>((*taken)[i])) << (8 * i);
        }
        return value;
    }
    std::optional<std::string_view> text16() {
        const auto size = number<std::uint16_t>();
        return size ? bytes(*size) : std::nullopt;
    }
    std::optional<Uuid> uuid() {
        const auto taken = bytes(sizeof(Uuid));
        if (!taken) {
            return std::nullopt;
        }
        Uuid id;
        std::copy(taken->begin(), taken->end(), id.bytes.begin());
        return id;
    }

private:
    std::string_view bytes_;
};

std::optional<Frame> parse_body(std::string_view body) {
    Cursor cursor(body);
    Frame frame;
    const auto flags = cursor.number<std::uint8_t>();
    if (!flags || (*flags & ~kKnownFlags) != 0) {
        return std::nullopt;
    }
    const auto message_id = cursor.uuid();
    if (!message_id) {
        return std::nullopt;
    }
    frame.message_id = *message_id;
    if ((*flags & kHasTrace) != 0) {
        const auto trace_id = cursor.uuid();
        if (!trace_id) {
            return std::nullopt;
        }
        frame.trace_id = *trace_id;
    }
    const auto transaction_id = cursor.text16();
    if (!transaction_id) {
        return std::nullopt;
    }
    frame.transaction_id = *transaction_id;
    if ((*flags & kHasSubject) != 0) {
        const auto subject = cursor.text16();
        if (!subject) {
            return std::nullopt;
        }
        frame.producer_sub = *subject;
    }
    frame.payload = cursor.done() ? std::string_view("null") : cursor.rest(); // FMT-8
    frame.encrypted = (*flags & kEncrypted) != 0;
    return frame;
}

} // namespace

Result<void> append_frame(std::string& out, const Frame& frame) {
    static_assert(kMaxTransactionIdBytes == kMaxText16);
    if (frame.transaction_id.size() > kMaxText16) {
        return fail(Errc::invalid_argument, "transactionId is over 65535 bytes");
    }
    if (frame.producer_sub.size() > kMaxText16) {
        return fail(Errc::invalid_argument, "the producer's subject is over 65535 bytes");
    }
    const bool has_trace = frame.trace_id.known();
    const bool has_subject = !frame.producer_sub.empty();
    const std::size_t body =
        kMinBodyBytes + (has_trace ? sizeof(Uuid) : 0) + frame.transaction_id.size() +
        (has_subject ? 2 + frame.producer_sub.size() : 0) + frame.payload.size();
    if (body > std::numeric_limits<std::uint32_t>::max()) {
        return fail(Errc::invalid_argument, "a message is over 4 GiB");
    }
    append_number<std::uint32_t>(out, body);
    append_number<std::uint8_t>(out, (has_trace ? kHasTrace : 0) | (has_subject ? kHasSubject : 0) |
                                         (frame.encrypted ? kEncrypted : 0));
    append_uuid(out, frame.message_id);
    if (has_trace) {
        append_uuid(out, frame.trace_id);
    }
    append_number<std::uint16_t>(out, frame.transaction_id.size());
    out += frame.transaction_id;
    if (has_subject) {
        append_number<std::uint16_t>(out, frame.producer_sub.size());
        out += frame.producer_sub;
    }
    out += frame.payload;
    return {};
}

Result<std::vector<Frame>> parse_frames(std::string_view bytes) {
    std::vector<Frame> frames;
    Cursor cursor(bytes);
    while (!cursor.done()) {
        const std::size_t at = bytes.size() - cursor.rest().size();
        const auto length = cursor.number<std::uint32_t>();
        const auto body = length ? cursor.bytes(*length) : std::nullopt;
        const auto frame = body ? parse_body(*body) : std::nullopt;
        if (!frame) {
            return fail(Errc::corrupt, "segment is damaged: frame " +
                                           std::to_string(frames.size()) + " at byte " +
                                           std::to_string(at) + " of " +
                                           std::to_string(bytes.size()) + " does not parse");
        }
        frames.push_back(*frame);
    }
    return frames;
}

} // namespace queen
