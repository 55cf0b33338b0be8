#include "model/frame.hpp"
#include "model/segment.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace queen {
namespace {

struct OwnedFrame {
    std::array<std::uint8_t, 16> message_id;
    std::array<std::uint8_t, 16> trace_id;
    std::string transaction_id;
    std::string producer_sub;
    std::string payload;
    bool encrypted;

    Frame view() const {
        return {{message_id}, {trace_id}, transaction_id, producer_sub, payload, encrypted};
    }
};

std::vector<OwnedFrame> some_frames() {
    using Bytes = std::array<std::uint8_t, 16>;
    std::vector<OwnedFrame> frames(*rc::gen::inRange<std::size_t>(0, 20));
    for (OwnedFrame& frame : frames) {
        frame.message_id = *rc::gen::arbitrary<Bytes>();
        frame.trace_id = *rc::gen::oneOf(rc::gen::just(Bytes{}), rc::gen::arbitrary<Bytes>());
        frame.transaction_id = *rc::gen::arbitrary<std::string>();
        frame.producer_sub = *rc::gen::arbitrary<std::string>();
        frame.payload = *rc::gen::nonEmpty<std::string>();
        frame.encrypted = *rc::gen::arbitrary<bool>();
    }
    return frames;
}

std::string bytes_of(const std::vector<OwnedFrame>& frames) {
    std::string bytes;
    for (const OwnedFrame& frame : frames) {
        RC_ASSERT(append_frame(bytes, frame.view()).has_value());
    }
    return bytes;
}

RC_GTEST_PROP(FrameProperty, FramesRoundTripThroughASegment, ()) {
    const std::vector<OwnedFrame> written = some_frames();
    const auto bytes = decompress_segment(compress_segment(bytes_of(written)));
    RC_ASSERT(bytes.has_value());
    const auto read = parse_frames(*bytes);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->size() == written.size());
    for (std::size_t i = 0; i < written.size(); ++i) {
        const Frame expected = written[i].view();
        RC_ASSERT((*read)[i].message_id == expected.message_id);
        RC_ASSERT((*read)[i].trace_id == expected.trace_id);
        RC_ASSERT((*read)[i].transaction_id == expected.transaction_id);
        RC_ASSERT((*read)[i].producer_sub == expected.producer_sub);
        RC_ASSERT((*read)[i].payload == expected.payload);
        RC_ASSERT((*read)[i].encrypted == expected.encrypted);
    }
}

RC_GTEST_PROP(FrameProperty, CutBytesAreRefusedUnlessCutBetweenFrames, ()) {
    const std::vector<OwnedFrame> written = some_frames();
    RC_PRE(!written.empty());
    const std::string bytes = bytes_of(written);
    std::vector<std::size_t> borders{0};
    for (const OwnedFrame& frame : written) {
        borders.push_back(borders.back() + bytes_of({frame}).size());
    }
    const auto size = *rc::gen::inRange<std::size_t>(0, bytes.size());
    const bool whole = std::find(borders.begin(), borders.end(), size) != borders.end();
    RC_ASSERT(parse_frames(std::string_view(bytes).substr(0, size)).has_value() == whole);
}

RC_GTEST_PROP(FrameProperty, DamagedBytesAreRefusedOrStayInside, ()) {
    std::string bytes = bytes_of(some_frames());
    RC_PRE(!bytes.empty());
    const auto changes = *rc::gen::inRange(1, 5);
    for (int i = 0; i < changes; ++i) {
        bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    }
    if (const auto frames = parse_frames(bytes)) {
        for (const Frame& frame : *frames) {
            if (frame.payload != "null") { // stands for an empty one, which lies elsewhere
                RC_ASSERT(frame.payload.data() >= bytes.data());
                RC_ASSERT(frame.payload.data() + frame.payload.size() <=
                          bytes.data() + bytes.size());
            }
        }
    }
}

} // namespace
} // namespace queen
