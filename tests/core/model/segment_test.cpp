#include "base/text.hpp"
#include "model/frame.hpp"
#include "model/segment.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <string>
#include <thread>
#include <vector>

namespace queen {
namespace {

Errc refusal_of(std::string_view blob) {
    const auto frames = decompress_segment(blob);
    EXPECT_FALSE(frames.has_value()) << to_hex(blob.substr(0, 100));
    return frames ? Errc{} : frames.error().code;
}

/// Three messages, as a push of three items makes them.
std::string three_frames() {
    std::string frames;
    for (int i = 0; i < 3; ++i) {
        Uuid id = parse_uuid("0190163d-8694-739b-aea5-966c26f8ad00").value();
        id.bytes[15] = static_cast<std::uint8_t>(i);
        const std::string transaction_id = "t" + std::to_string(i);
        const std::string payload = "{\"n\":" + std::to_string(i) + "}";
        EXPECT_TRUE(
            append_frame(frames,
                         {.message_id = id, .transaction_id = transaction_id, .payload = payload})
                .has_value());
    }
    return frames;
}

constexpr std::string_view kThreeFramesHex =
    "1c000000000190163d8694739baea5966c26f8ad00020074307b226e223a307d"
    "1c000000000190163d8694739baea5966c26f8ad01020074317b226e223a317d"
    "1c000000000190163d8694739baea5966c26f8ad02020074327b226e223a327d";

// A blob as a broker stored it, written down: every later version must read it.
constexpr std::string_view kStoredBlobHex =
    "28b52ffd2060ed010024031c000000000190163d8694739baea5966c26f8ad00020074307b226e223a307d01020074"
    "313102020074327b226e223a327d0300e005683506ad9e";

TEST(Segment, AStoredBlobStillReads) {
    EXPECT_EQ(to_hex(three_frames()), kThreeFramesHex);
    const auto frames = decompress_segment(from_hex(kStoredBlobHex).value());
    ASSERT_TRUE(frames.has_value()) << frames.error().message;
    EXPECT_EQ(to_hex(*frames), kThreeFramesHex);
    const auto parsed = parse_frames(*frames);
    ASSERT_TRUE(parsed.has_value());
    ASSERT_EQ(parsed->size(), 3u);
    EXPECT_EQ((*parsed)[2].transaction_id, "t2");
    EXPECT_EQ((*parsed)[2].payload, "{\"n\":2}");
}

// FMT-1, FMT-2: one plain zstd frame, its size stated, nothing of ours around it.
TEST(Segment, ABlobIsOneZstdFrameThatStatesItsSize) {
    const std::string frames = three_frames();
    const std::string blob = compress_segment(frames);
    EXPECT_EQ(to_hex(blob.substr(0, 4)), "28b52ffd");
    EXPECT_EQ(ZSTD_getFrameContentSize(blob.data(), blob.size()), frames.size());
    EXPECT_EQ(ZSTD_findFrameCompressedSize(blob.data(), blob.size()), blob.size());
}

TEST(Segment, EverySizeRoundTrips) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{65'536},
          std::size_t{1} << 20, (std::size_t{4} << 20), (std::size_t{4} << 20) + 1,
          (std::size_t{9} << 20) + 17}) {
        std::string frames(size, '\0');
        std::uint32_t state = 1;
        for (char& c : frames) {
            state = state * 1664525 + 1013904223;
            c = static_cast<char>(state >> 28);
        }
        const auto read = decompress_segment(compress_segment(frames));
        ASSERT_TRUE(read.has_value()) << read.error().message;
        EXPECT_TRUE(*read == frames) << size;
    }
}

TEST(Segment, TheLevelChangesTheSizeOnly) {
    std::string frames;
    for (int i = 0; i < 2'000; ++i) {
        frames += R"({"order":)" + std::to_string(i * i % 99'991) + R"(,"state":"new"})";
    }
    const std::string fast = compress_segment(frames, 1);
    const std::string small = compress_segment(frames, 19);
    EXPECT_LT(small.size(), fast.size());
    EXPECT_EQ(decompress_segment(fast).value(), frames);
    EXPECT_EQ(decompress_segment(small).value(), frames);
    EXPECT_EQ(compress_segment(frames), compress_segment(frames, kDefaultZstdLevel));
}

TEST(Segment, EveryTruncatedLengthIsRefused) {
    const std::string blob = compress_segment(three_frames());
    for (std::size_t size = 0; size < blob.size(); ++size) {
        EXPECT_EQ(refusal_of(std::string_view(blob).substr(0, size)), Errc::corrupt) << size;
    }
}

TEST(Segment, BytesBehindTheZstdFrameAreRefused) {
    const std::string blob = compress_segment(three_frames());
    EXPECT_EQ(refusal_of(blob + '\0'), Errc::corrupt);
    EXPECT_EQ(refusal_of(blob + blob), Errc::corrupt);
}

TEST(Segment, WhatIsNoZstdFrameIsRefused) {
    EXPECT_EQ(refusal_of(""), Errc::corrupt);
    EXPECT_EQ(refusal_of("plain text"), Errc::corrupt);
    EXPECT_EQ(refusal_of(three_frames()), Errc::corrupt);
    // A skippable frame: zstd reads it as nothing at all.
    EXPECT_EQ(refusal_of(std::string_view("\x50\x2A\x4D\x18\x02\x00\x00\x00hi", 10)),
              Errc::corrupt);
}

/// A raw-block zstd frame that states `size` bytes and holds "hi".
std::string stating(std::uint64_t size) {
    std::string blob("\x28\xB5\x2F\xFD", 4);
    blob += '\xE0'; // 8 bytes of content size, single segment
    for (std::size_t i = 0; i < 8; ++i) {
        blob += static_cast<char>(size >> (8 * i) & 0xFF);
    }
    blob += std::string("\x11\x00\x00", 3); // last block, raw, 2 bytes
    return blob + "hi";
}

TEST(Segment, AStatedSizeIsNotBelieved) {
    EXPECT_EQ(decompress_segment(stating(2)).value(), "hi");
    for (const std::uint64_t size :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{4} << 20,
          (std::uint64_t{4} << 20) + 1, std::uint64_t{kMaxSegmentBytes},
          std::uint64_t{kMaxSegmentBytes} + 1, std::uint64_t{1} << 62, ~std::uint64_t{0},
          ~std::uint64_t{0} - 1}) {
        EXPECT_EQ(refusal_of(stating(size)), Errc::corrupt) << size;
    }
}

/// A zstd frame without a stated size: `blocks` run-length blocks of 128 KiB each, 4 bytes a block.
std::string bomb(std::size_t blocks) {
    std::string blob("\x28\xB5\x2F\xFD", 4);
    blob += std::string("\x00\x38", 2); // window of 128 KiB, no size
    for (std::size_t i = 0; i < blocks; ++i) {
        const std::uint32_t header = 0x20000u << 3 | 1u << 1 | (i + 1 == blocks ? 1u : 0u);
        blob += static_cast<char>(header & 0xFF);
        blob += static_cast<char>(header >> 8 & 0xFF);
        blob += static_cast<char>(header >> 16 & 0xFF);
        blob += 'x';
    }
    return blob;
}

TEST(Segment, ABlobWithoutAStatedSizeReadsAsItIs) {
    EXPECT_EQ(decompress_segment(bomb(1)).value(), std::string(0x20000, 'x'));
    EXPECT_EQ(decompress_segment(bomb(100)).value().size(), 100u * 0x20000);
}

TEST(Segment, MoreThanTheLimitIsRefusedWhetherStatedOrNot) {
    EXPECT_EQ(kMaxSegmentBytes, std::size_t{1} << 30);
    const auto refused = [](std::string_view blob, std::size_t limit) {
        const auto frames = decompress_segment(blob, limit);
        EXPECT_TRUE(frames || frames.error().code == Errc::corrupt);
        return !frames.has_value();
    };
    for (const std::size_t blocks : {std::size_t{1}, std::size_t{40}, std::size_t{100}}) {
        const std::size_t size = blocks * 0x20000;
        const std::string unstated = bomb(blocks);
        EXPECT_FALSE(refused(unstated, size));
        EXPECT_FALSE(refused(unstated, size + 1));
        EXPECT_TRUE(refused(unstated, size - 1));
        EXPECT_TRUE(refused(unstated, 1));
        const std::string stated = compress_segment(std::string(size, 'x'));
        EXPECT_FALSE(refused(stated, size));
        EXPECT_TRUE(refused(stated, size - 1));
    }
    EXPECT_TRUE(refused(bomb(1), 0));
    EXPECT_FALSE(refused(compress_segment(""), 0));
}

TEST(Segment, ADamagedBlobLeavesTheContextUsable) {
    const std::string blob = compress_segment(three_frames());
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(refusal_of(bomb(40).substr(0, 100)), Errc::corrupt);
        EXPECT_EQ(refusal_of(stating(std::uint64_t{5} << 20)), Errc::corrupt);
        EXPECT_EQ(decompress_segment(blob).value(), three_frames());
        EXPECT_EQ(decompress_segment(bomb(40)).value().size(), 40u * 0x20000);
    }
}

TEST(Segment, EveryDamagedByteIsRefusedOrReads) {
    const std::string good = compress_segment(three_frames());
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string blob = good;
            blob[at] = static_cast<char>(blob[at] ^ (1 << bit));
            const auto frames = decompress_segment(blob); // ASan and the bounds are the judges
            if (!frames) {
                EXPECT_EQ(frames.error().code, Errc::corrupt);
            }
        }
    }
}

TEST(Segment, ThreadsHaveTheirOwnContexts) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (int i = 0; i < 200; ++i) {
                const std::string frames(static_cast<std::size_t>(t * 1000 + i), 'a');
                EXPECT_EQ(decompress_segment(compress_segment(frames)).value(), frames);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

} // namespace
} // namespace queen
