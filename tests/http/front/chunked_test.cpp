#include "http/front/chunked.hpp"

#include <gtest/gtest.h>

#include <string>

namespace queen::http {
namespace {

struct Decoded {
    ChunkedBody::Verdict verdict = ChunkedBody::Verdict::more;
    std::string body;
    std::size_t used = 0;
    int status = 0;
    std::string text;
};

Decoded decode(const std::string& bytes, std::size_t step, std::size_t most) {
    ChunkedBody decoder(most);
    Decoded decoded;
    while (decoded.verdict == ChunkedBody::Verdict::more && decoded.used < bytes.size()) {
        std::size_t used = 0;
        decoded.verdict =
            decoder.feed(std::string_view(bytes).substr(decoded.used, step), used, decoded.body);
        decoded.used += used;
    }
    if (decoded.verdict == ChunkedBody::Verdict::refused) {
        const Refusal refusal = decoder.take_refusal();
        decoded.status = refusal.status;
        decoded.text = refusal.text;
    }
    return decoded;
}

Decoded decode_all_ways(const std::string& bytes, std::size_t most = 1000) {
    const Decoded whole = decode(bytes, bytes.size() + 1, most);
    for (const std::size_t step : {1u, 2u, 3u, 5u}) {
        const Decoded cut = decode(bytes, step, most);
        EXPECT_EQ(cut.verdict, whole.verdict) << bytes;
        EXPECT_EQ(cut.status, whole.status) << bytes;
        EXPECT_EQ(cut.text, whole.text) << bytes;
        if (whole.verdict != ChunkedBody::Verdict::refused) {
            EXPECT_EQ(cut.body, whole.body) << bytes;
            EXPECT_EQ(cut.used, whole.used) << bytes;
        }
    }
    return whole;
}

TEST(Chunked, DecodesAndLeavesWhatFollows) {
    const Decoded decoded = decode_all_ways("5\r\nhello\r\n0A\r\n, partners\r\n0\r\n\r\nGET /");
    EXPECT_EQ(decoded.verdict, ChunkedBody::Verdict::complete);
    EXPECT_EQ(decoded.body, "hello, partners");
    EXPECT_EQ(decoded.used, std::string("5\r\nhello\r\n0A\r\n, partners\r\n0\r\n\r\n").size());
}

TEST(Chunked, KeepsEveryByteOfTheData) {
    std::string data;
    for (int byte = 0; byte < 256; ++byte) {
        data.push_back(static_cast<char>(byte));
    }
    EXPECT_EQ(decode_all_ways("100\r\n" + data + "\r\n0\r\n\r\n").body, data);
}

TEST(Chunked, DropsExtensionsAndTrailers) {
    const Decoded decoded = decode_all_ways(
        "3;a=b;c=\"d \xc3\xa4\"\r\nabc\r\n2 \t;x\r\nde\r\n0;last\r\nDigest: z\r\nB:\r\n\r\n");
    EXPECT_EQ(decoded.verdict, ChunkedBody::Verdict::complete);
    EXPECT_EQ(decoded.body, "abcde");
}

TEST(Chunked, WaitsForTheEndOfEveryUnfinishedBody) {
    const std::string body = "3;e\r\nabc\r\n0\r\nA: b\r\n\r\n";
    for (std::size_t size = 0; size < body.size(); ++size) {
        EXPECT_EQ(decode_all_ways(body.substr(0, size)).verdict, ChunkedBody::Verdict::more)
            << size;
    }
}

TEST(Chunked, RefusesWhateverIsNotExactlyTheGrammar) {
    const std::string nul("3\0\r\nabc\r\n0\r\n\r\n", 14);
    for (const std::string& bytes : {
             std::string("\r\n"),
             std::string("x\r\n"),
             std::string("-1\r\n"),
             std::string("+3\r\nabc\r\n"),
             std::string(" 3\r\nabc\r\n"),
             std::string("0x3\r\nabc\r\n"),
             std::string("3 \r\nabc\r\n0\r\n\r\n"),
             std::string("3\nabc\r\n0\r\n\r\n"),
             std::string("3\r\nabcd\r\n0\r\n\r\n"),
             std::string("3\r\nabc\n0\r\n\r\n"),
             std::string("3\r\nabcX\n0\r\n\r\n"),
             std::string("3\r\nabc\r0\r\n\r\n"),
             std::string("3\rabc\r\n"),
             std::string("3;a\rb\r\nabc\r\n"),
             std::string("3;a\nabc\r\n"),
             std::string("3;\x01\r\nabc\r\n"),
             std::string("3,4\r\nabc\r\n"),
             std::string("00000000000000003\r\nabc\r\n"),
             std::string("0\r\nno colon\r\n\r\n"),
             std::string("0\r\n folded: a\r\n\r\n"),
             std::string("0\r\nA : b\r\n\r\n"),
             std::string("0\r\nA: b\n\r\n"),
             std::string("0\r\nA: b\rc\r\n\r\n"),
             nul,
         }) {
        const Decoded decoded = decode_all_ways(bytes);
        EXPECT_EQ(decoded.verdict, ChunkedBody::Verdict::refused) << bytes;
        EXPECT_EQ(decoded.status, 400) << bytes;
    }
}

TEST(Chunked, RefusesBodiesOverTheLimitBeforeTheirBytesCome) {
    EXPECT_EQ(decode_all_ways("A\r\n0123456789\r\n0\r\n\r\n", 10).verdict,
              ChunkedBody::Verdict::complete);
    const Decoded over = decode_all_ways("B\r\n", 10);
    EXPECT_EQ(over.status, 413);
    EXPECT_NE(over.text.find("10 bytes"), std::string::npos);
    EXPECT_EQ(decode_all_ways("6\r\n012345\r\n5\r\n", 10).status, 413);
    EXPECT_EQ(decode_all_ways("FFFFFFFFFFFFFFFF\r\n", 10).status, 413);
    EXPECT_EQ(decode_all_ways("6\r\n012345\r\nFFFFFFFFFFFFFFFB\r\n", 10).status, 413);
}

TEST(Chunked, BoundsExtensionsOverTheWholeBody) {
    std::string bytes;
    for (int chunk = 0; chunk < 20; ++chunk) {
        bytes += "1;" + std::string(999, 'e') + "\r\nx\r\n";
    }
    const Decoded decoded = decode(bytes, bytes.size(), 1000);
    EXPECT_EQ(decoded.status, 400);
    EXPECT_NE(decoded.text.find("16384"), std::string::npos);
    EXPECT_LT(decoded.used, 17'000u);
}

TEST(Chunked, BoundsTrailers) {
    std::string bytes = "0\r\n";
    for (int line = 0; line < 10; ++line) {
        bytes += "T: " + std::string(1000, 't') + "\r\n";
    }
    const Decoded decoded = decode_all_ways(bytes + "\r\n");
    EXPECT_EQ(decoded.status, 431);
    EXPECT_NE(decoded.text.find("8192"), std::string::npos);
}

} // namespace
} // namespace queen::http
