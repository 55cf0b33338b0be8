#include "base/text.hpp"
#include "model/frame.hpp"
#include "model/names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace queen {
namespace {

constexpr std::string_view kMessageId = "0190163d-8694-739b-aea5-966c26f8ad91";
constexpr std::string_view kTraceId = "ffeeddcc-bbaa-9988-7766-554433221100";

Uuid uuid(std::string_view text) {
    return parse_uuid(text).value();
}

std::string bytes_of(const Frame& frame) {
    std::string out;
    EXPECT_TRUE(append_frame(out, frame).has_value());
    return out;
}

Frame small_frame() {
    return {.message_id = uuid(kMessageId), .transaction_id = "tx", .payload = R"({"a":1})"};
}

Frame full_frame() {
    return {.message_id = uuid(kMessageId),
            .trace_id = uuid(kTraceId),
            .transaction_id = "order-1",
            .producer_sub = "alice",
            .payload = R"({"v":1})",
            .encrypted = true};
}

void expect_equal(const Frame& read, const Frame& written) {
    EXPECT_EQ(read.message_id, written.message_id);
    EXPECT_EQ(read.trace_id, written.trace_id);
    EXPECT_EQ(read.transaction_id, written.transaction_id);
    EXPECT_EQ(read.producer_sub, written.producer_sub);
    EXPECT_EQ(read.payload, written.payload);
    EXPECT_EQ(read.encrypted, written.encrypted);
}

// FMT-5: the stored layout. These bytes lie in databases.
TEST(Frame, TheSmallLayoutIsFixed) {
    EXPECT_EQ(to_hex(bytes_of(small_frame())), "1c000000"                         // 28 bytes follow
                                               "00"                               // no flags
                                               "0190163d8694739baea5966c26f8ad91" // message id
                                               "0200"                             // 2 bytes of
                                               "7478"                             // tx
                                               "7b2261223a317d");                 // {"a":1}
}

TEST(Frame, TheFullLayoutIsFixed) {
    EXPECT_EQ(to_hex(bytes_of(full_frame())), "38000000"                         // 56 bytes follow
                                              "07"                               // all three flags
                                              "0190163d8694739baea5966c26f8ad91" // message id
                                              "ffeeddccbbaa99887766554433221100" // trace id
                                              "0700"                             // 7 bytes of
                                              "6f726465722d31"                   // order-1
                                              "0500"                             // 5 bytes of
                                              "616c696365"                       // alice
                                              "7b2276223a317d");                 // {"v":1}
}

TEST(Frame, EachFlagStandsForItsOwnField) {
    Frame frame = small_frame();
    frame.trace_id = uuid(kTraceId);
    EXPECT_EQ(bytes_of(frame)[4], 1);
    frame = small_frame();
    frame.producer_sub = "p";
    EXPECT_EQ(bytes_of(frame)[4], 2);
    frame = small_frame();
    frame.encrypted = true;
    EXPECT_EQ(bytes_of(frame)[4], 4);
}

TEST(Frame, LengthsAreLittleEndian) {
    Frame frame = small_frame();
    const std::string id(0x1234, 't');
    const std::string payload(0x012345, ' ');
    frame.transaction_id = id;
    frame.payload = payload;
    const std::string bytes = bytes_of(frame);
    EXPECT_EQ(to_hex(bytes.substr(0, 4)), "8c350100"); // 19 + 0x1234 + 0x12345
    EXPECT_EQ(to_hex(bytes.substr(21, 2)), "3412");
}

TEST(Frame, ManyFramesReadBackInOrder) {
    Frame second = small_frame();
    second.transaction_id = "tx2";
    const std::string bytes = bytes_of(full_frame()) + bytes_of(small_frame()) + bytes_of(second);
    const auto frames = parse_frames(bytes);
    ASSERT_TRUE(frames.has_value());
    ASSERT_EQ(frames->size(), 3u);
    expect_equal((*frames)[0], full_frame());
    expect_equal((*frames)[1], small_frame());
    expect_equal((*frames)[2], second);
}

TEST(Frame, NoBytesAreNoFrames) {
    const auto frames = parse_frames("");
    ASSERT_TRUE(frames.has_value());
    EXPECT_TRUE(frames->empty());
}

// FMT-8
TEST(Frame, AnEmptyPayloadReadsAsNull) {
    Frame frame = small_frame();
    frame.payload = "";
    const std::string bytes = bytes_of(frame);
    EXPECT_EQ(bytes.size(), 4u + 19u + 2u);
    const auto frames = parse_frames(bytes);
    ASSERT_TRUE(frames.has_value());
    EXPECT_EQ(frames->front().payload, "null");
}

// FMT-10
TEST(Frame, ThePayloadIsKeptByteForByte) {
    Frame frame = small_frame();
    const std::string payload("{\"z\" : 1.0,\"a\":18446744073709551616,\"n\":\"\\u0000\xC3\xA9\"}");
    frame.payload = payload;
    const std::string bytes = bytes_of(frame);
    EXPECT_EQ(parse_frames(bytes).value().front().payload, payload);
}

// FMT-6: one damaged frame refuses the whole segment.
TEST(Frame, EveryTruncatedLengthIsRefused) {
    const std::string bytes = bytes_of(small_frame()) + bytes_of(full_frame());
    const std::size_t first = bytes_of(small_frame()).size();
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        if (size == first) {
            continue; // a whole frame
        }
        const auto frames = parse_frames(std::string_view(bytes).substr(0, size));
        ASSERT_FALSE(frames.has_value()) << size;
        EXPECT_EQ(frames.error().code, Errc::corrupt);
    }
    EXPECT_TRUE(parse_frames(bytes).has_value());
}

/// A frame whose stated body length is `length`, over the body of the full frame.
std::string with_length(std::uint32_t length) {
    std::string bytes = bytes_of(full_frame());
    for (std::size_t i = 0; i < 4; ++i) {
        bytes[i] = static_cast<char>(length >> (8 * i) & 0xFF);
    }
    return bytes;
}

TEST(Frame, ABodyTooShortForItsFieldsIsRefused) {
    // Up to 49: flags, two ids, two lengths, two texts; the payload may be empty.
    for (std::uint32_t length = 0; length < 49; ++length) {
        const std::string bytes = with_length(length).substr(0, 4 + length);
        EXPECT_FALSE(parse_frames(bytes).has_value()) << length;
    }
    const std::string bytes = with_length(49).substr(0, 4 + 49);
    EXPECT_TRUE(parse_frames(bytes).has_value());
}

TEST(Frame, ALengthBeyondTheEndIsRefused) {
    EXPECT_FALSE(parse_frames(with_length(57)).has_value());
    EXPECT_FALSE(parse_frames(with_length(0x7FFFFFFF)).has_value());
    EXPECT_FALSE(parse_frames(with_length(0xFFFFFFFF)).has_value());
}

TEST(Frame, BytesLeftOverAreRefused) {
    EXPECT_FALSE(parse_frames(bytes_of(small_frame()) + '\0').has_value());
    EXPECT_FALSE(parse_frames(bytes_of(small_frame()) + std::string(4, '\0')).has_value());
    EXPECT_FALSE(parse_frames(with_length(55)).has_value());
}

TEST(Frame, TextLengthsInsideTheBodyAreBoundedByIt) {
    std::string bytes = bytes_of(small_frame());
    bytes[21] = 10; // transaction id longer than what is left
    EXPECT_FALSE(parse_frames(bytes).has_value());
    bytes = bytes_of(full_frame());
    bytes[4 + 1 + 32 + 2 + 7] = 13; // subject longer than what is left
    EXPECT_FALSE(parse_frames(bytes).has_value());
}

// A flag of a later layout: its field would be taken for payload.
TEST(Frame, UnknownFlagsAreRefused) {
    for (int bit = 3; bit < 8; ++bit) {
        std::string bytes = bytes_of(small_frame());
        bytes[4] = static_cast<char>(1 << bit);
        EXPECT_FALSE(parse_frames(bytes).has_value()) << bit;
    }
}

TEST(Frame, TheErrorSaysWhereTheDamageIs) {
    const auto frames = parse_frames(bytes_of(small_frame()) + "x");
    ASSERT_FALSE(frames.has_value());
    EXPECT_EQ(frames.error().message,
              "segment is damaged: frame 1 at byte 32 of 33 does not parse");
}

// FMT-7: a cut length would put the frame out of step with its hash.
TEST(Frame, TextsOverTheirLengthFieldAreRefusedAndNothingIsWritten) {
    std::string out = "before";
    const std::string fits(kMaxTransactionIdBytes, 'x');
    const std::string over(kMaxTransactionIdBytes + 1, 'x');

    Frame frame = small_frame();
    frame.transaction_id = over;
    const auto id_refused = append_frame(out, frame);
    ASSERT_FALSE(id_refused.has_value());
    EXPECT_EQ(id_refused.error().code, Errc::invalid_argument);

    frame = small_frame();
    frame.producer_sub = over;
    const auto subject_refused = append_frame(out, frame);
    ASSERT_FALSE(subject_refused.has_value());
    EXPECT_EQ(subject_refused.error().code, Errc::invalid_argument);
    EXPECT_EQ(out, "before");

    frame.transaction_id = fits;
    frame.producer_sub = fits;
    const std::string bytes = bytes_of(frame);
    const auto frames = parse_frames(bytes);
    ASSERT_TRUE(frames.has_value());
    expect_equal(frames->front(), frame);
}

} // namespace
} // namespace queen
