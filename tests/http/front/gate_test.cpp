#include "http/front/gate.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace queen::http {
namespace {

struct Judged {
    Gate::Verdict verdict = Gate::Verdict::more;
    int status = 0;
    std::string text;
    Head head;
};

/// Feeds growing prefixes: `step` bytes more each time.
Judged judge(const std::string& bytes, std::size_t step, HeadLimits limits = {}) {
    Gate gate(limits);
    Judged judged;
    for (std::size_t size = std::min(step, bytes.size());;
         size = std::min(size + step, bytes.size())) {
        judged.verdict = gate.scan(std::string_view(bytes).substr(0, size));
        if (judged.verdict != Gate::Verdict::more || size == bytes.size()) {
            break;
        }
    }
    if (judged.verdict == Gate::Verdict::refused) {
        const Refusal refusal = gate.take_refusal();
        judged.status = refusal.status;
        judged.text = refusal.text;
    } else {
        judged.head = gate.head();
    }
    return judged;
}

/// The same, checked to be independent of how the bytes were cut.
Judged judge_all_ways(const std::string& bytes, HeadLimits limits = {}) {
    const Judged whole = judge(bytes, bytes.size() + 1, limits);
    for (const std::size_t step : {1u, 2u, 3u, 7u}) {
        const Judged cut = judge(bytes, step, limits);
        EXPECT_EQ(cut.verdict, whole.verdict) << bytes << " in steps of " << step;
        EXPECT_EQ(cut.status, whole.status) << bytes << " in steps of " << step;
        EXPECT_EQ(cut.text, whole.text) << bytes << " in steps of " << step;
        EXPECT_EQ(cut.head.end, whole.head.end) << bytes << " in steps of " << step;
    }
    return whole;
}

std::string head_with(const std::string& fields) {
    return "POST /a HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

struct Bad {
    const char* name;
    std::string bytes;
    int status;
    std::string says;
};
void PrintTo(const Bad& bad, std::ostream* out) {
    *out << bad.name;
}
std::string name_of(const ::testing::TestParamInfo<Bad>& info) {
    return info.param.name;
}

class GateRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(GateRefuses, WithStatusAndReason) {
    const Judged judged = judge_all_ways(GetParam().bytes);
    EXPECT_EQ(judged.verdict, Gate::Verdict::refused);
    EXPECT_EQ(judged.status, GetParam().status);
    EXPECT_NE(judged.text.find(GetParam().says), std::string::npos) << judged.text;
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n";

INSTANTIATE_TEST_SUITE_P(
    Lengths, GateRefuses,
    ::testing::Values(
        Bad{"Twice", head_with("Content-Length: 5\r\nContent-Length: 5\r\n"), 400, "twice"},
        Bad{"TwiceDiffering", head_with("Content-Length: 5\r\ncontent-length: 6\r\n"), 400,
            "twice"},
        Bad{"List", head_with("Content-Length: 5, 5\r\n"), 400, "Content-Length"},
        Bad{"Plus", head_with("Content-Length: +5\r\n"), 400, "Content-Length"},
        Bad{"Minus", head_with("Content-Length: -5\r\n"), 400, "Content-Length"},
        Bad{"InnerBlank", head_with("Content-Length: 5 5\r\n"), 400, "Content-Length"},
        Bad{"BlankBeforeColon", head_with("Content-Length : 5\r\n"), 400, "blank"},
        Bad{"TabBeforeColon", head_with("Content-Length\t: 5\r\n"), 400, "blank"},
        Bad{"Hex", head_with("Content-Length: 0x5\r\n"), 400, "Content-Length"},
        Bad{"Fraction", head_with("Content-Length: 5.0\r\n"), 400, "Content-Length"},
        Bad{"Empty", head_with("Content-Length:\r\n"), 400, "Content-Length"},
        Bad{"Quoted", head_with("Content-Length: \"5\"\r\n"), 400, "Content-Length"},
        Bad{"Over63Bits", head_with("Content-Length: 9223372036854775808\r\n"), 400, "above"},
        Bad{"Over64Bits", head_with("Content-Length: 18446744073709551621\r\n"), 400, "above"},
        Bad{"ManyDigits", head_with("Content-Length: " + std::string(400, '9') + "\r\n"), 400,
            "above"},
        Bad{"WithCoding", head_with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400,
            "both"},
        Bad{"CodingFirst", head_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400,
            "both"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Codings, GateRefuses,
    ::testing::Values(
        Bad{"Gzip", head_with("Transfer-Encoding: gzip\r\n"), 400, "Transfer-Encoding"},
        Bad{"List", head_with("Transfer-Encoding: gzip, chunked\r\n"), 400, "Transfer-Encoding"},
        Bad{"Identity", head_with("Transfer-Encoding: identity\r\n"), 400, "Transfer-Encoding"},
        Bad{"Prefix", head_with("Transfer-Encoding: xchunked\r\n"), 400, "Transfer-Encoding"},
        Bad{"Suffix", head_with("Transfer-Encoding: chunked;a=b\r\n"), 400, "Transfer-Encoding"},
        Bad{"Twice", head_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400,
            "twice"},
        Bad{"VerticalTab", head_with("Transfer-Encoding: \vchunked\r\n"), 400, "control"},
        Bad{"OldVersion", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
            "HTTP/1.0"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Lines, GateRefuses,
    ::testing::Values(
        Bad{"Folded", head_with("A: b\r\n c\r\n"), 400, "folded"},
        Bad{"FoldedByTab", head_with("A: b\r\n\tc\r\n"), 400, "folded"},
        Bad{"FoldedFirst", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400, "folded"},
        Bad{"BareLfInFields", "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400, "LF without CR"},
        Bad{"BareLfAtEnd", kGet + "\n", 400, "LF without CR"},
        Bad{"BareLfInRequestLine", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400, "LF without CR"},
        Bad{"BareLfFirst", "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "LF without CR"},
        Bad{"BareCrInValue", head_with("A: b\rc\r\n"), 400, "control"},
        Bad{"BareCrInName", head_with("A\rB: c\r\n"), 400, "not allowed"},
        Bad{"BareCrBeforeRequest", "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "token"},
        Bad{"TwoCrs", kGet + "A: b\r\r\n\r\n", 400, "control"},
        Bad{"NulInValue", head_with(std::string("A: b\0c\r\n", 8)), 400, "control"},
        Bad{"NulInName", head_with(std::string("A\0B: c\r\n", 8)), 400, "not allowed"},
        Bad{"DeleteInValue", head_with("A: b\x7f\r\n"), 400, "control"},
        Bad{"BellInValue", head_with("A: b\a\r\n"), 400, "control"},
        Bad{"NoColon", head_with("Content-Length 5\r\n"), 400, "colon"},
        Bad{"NoName", head_with(": 5\r\n"), 400, "no name"},
        Bad{"BadName", head_with("A(b): 5\r\n"), 400, "not allowed"},
        Bad{"HighByteInName", head_with("\xc3\xa4: 5\r\n"), 400, "not allowed"},
        Bad{"FiveEmptyLines", "\r\n\r\n\r\n\r\n\r\n" + kGet + "\r\n", 400, "4 empty lines"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    RequestLines, GateRefuses,
    ::testing::Values(
        Bad{"BadMethod", "G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "method"},
        Bad{"MethodWithBrace", "{} / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "method"},
        Bad{"LongMethod", std::string(33, 'A') + " / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "32 bytes"},
        Bad{"NoTarget", "GET\r\nHost: h\r\n\r\n", 400, "target"},
        Bad{"NoVersion", "GET /\r\nHost: h\r\n\r\n", 400, "method target version"},
        Bad{"TwoBlanks", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "one blank"},
        Bad{"TwoBlanksBeforeVersion", "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"BlankInTarget", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"TabInTarget", "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400, "target"},
        Bad{"NulInTarget", std::string("GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n", 31), 400, "target"},
        Bad{"Fragment", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "target"},
        Bad{"BlankAtEnd", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"LowerVersion", "GET / http/1.1\r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"OddProtocol", "GET / HTTQ/1.1\r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"LongMinor", "GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400, "version"},
        Bad{"VersionTwo", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "HTTP/1.1"},
        Bad{"Http2Preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1"},
        Bad{"VersionNine", "GET / HTTP/9.9\r\nHost: h\r\n\r\n", 505, "HTTP/1.1"},
        Bad{"TlsHello", "\x16\x03\x01\x02", 400, "plain HTTP"},
        Bad{"TlsHelloAfterEmptyLine", "\r\n\x16\x03\x01\x02", 400, "plain HTTP"},
        Bad{"Connect", "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"},
        Bad{"RelativeTarget", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"},
        Bad{"OtherScheme", "GET ftp://h/a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"},
        Bad{"NoAuthority", "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"},
        Bad{"UserInfo", "GET http://u@h/a HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"},
        Bad{"Asterisk", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400, "neither a path"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Fields, GateRefuses,
    ::testing::Values(Bad{"NoHost", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 400, "Host is missing"},
                      Bad{"TwoHosts", kGet + "Host: h\r\n\r\n", 400, "Host is given twice"},
                      Bad{"TwoHostsOldVersion", "GET / HTTP/1.0\r\nHost: h\r\nhost: g\r\n\r\n", 400,
                          "Host is given twice"},
                      Bad{"HostWithSlash", "GET / HTTP/1.1\r\nHost: h/a\r\n\r\n", 400, "Host"},
                      Bad{"HostWithBlank", "GET / HTTP/1.1\r\nHost: h g\r\n\r\n", 400, "Host"},
                      Bad{"OtherExpectation", kGet + "Expect: 200-ok\r\n\r\n", 417, "Expect"},
                      Bad{"LongName", kGet + std::string(257, 'n') + ": v\r\n\r\n", 431, "256"},
                      Bad{"LongValue", kGet + "A: " + std::string(8193, 'v') + "\r\n\r\n", 431,
                          "8192"},
                      Bad{"LongValueByItsBlanks",
                          kGet + "A: " + std::string(8190, 'v') + "   \r\n\r\n", 431, "8192"}),
    name_of);

TEST(Gate, RefusesTargetsOverTheLimitAtTheLimit) {
    const HeadLimits limits{.head_bytes = 1024, .uri_bytes = 100, .fields = 10};
    const auto with_target = [](std::size_t bytes) {
        return "GET /" + std::string(bytes - 1, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n";
    };
    EXPECT_EQ(judge_all_ways(with_target(100), limits).verdict, Gate::Verdict::passed);
    const Judged over = judge_all_ways(with_target(101), limits);
    EXPECT_EQ(over.status, 414);
    EXPECT_NE(over.text.find("100 bytes"), std::string::npos);
    // Without any line end the verdict comes when none can follow in time.
    EXPECT_EQ(judge_all_ways("GET /" + std::string(500, 'a'), limits).status, 414);
}

TEST(Gate, RefusesHeadsOverTheLimitAtTheLimit) {
    const std::string fixed = "GET / HTTP/1.1\r\nHost: h\r\nA: \r\n\r\n";
    const HeadLimits limits{.head_bytes = 300, .uri_bytes = 100, .fields = 10};
    const auto of_size = [&](std::size_t bytes) {
        return "GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(bytes - fixed.size(), 'v') +
               "\r\n\r\n";
    };
    const Judged exact = judge_all_ways(of_size(300), limits);
    EXPECT_EQ(exact.verdict, Gate::Verdict::passed);
    EXPECT_EQ(exact.head.end, 300u);
    const Judged over = judge_all_ways(of_size(301), limits);
    EXPECT_EQ(over.status, 431);
    EXPECT_NE(over.text.find("300 bytes"), std::string::npos);
}

TEST(Gate, RefusesFieldsOverTheLimit) {
    const HeadLimits limits{.head_bytes = 1024, .uri_bytes = 100, .fields = 3};
    EXPECT_EQ(judge_all_ways(kGet + "A: 1\r\nB: 2\r\n\r\n", limits).verdict, Gate::Verdict::passed);
    const Judged over = judge_all_ways(kGet + "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits);
    EXPECT_EQ(over.status, 431);
    EXPECT_NE(over.text.find("3 fields"), std::string::npos);
}

TEST(Gate, LearnsFramingAndPlaces) {
    const std::string bytes =
        "\r\n\r\nPOST /a?b HTTP/1.1\r\nhOST:h\r\ncontent-LENGTH: \t42 \r\n\r\n";
    const Judged judged = judge_all_ways(bytes + "body");
    ASSERT_EQ(judged.verdict, Gate::Verdict::passed);
    EXPECT_EQ(judged.head.begin, 4u);
    EXPECT_EQ(judged.head.end, bytes.size());
    EXPECT_EQ(bytes.substr(judged.head.target_begin, judged.head.target_bytes), "/a?b");
    EXPECT_EQ(judged.head.framing, Framing::length);
    EXPECT_EQ(judged.head.content_length, 42u);
    EXPECT_EQ(judge_all_ways(head_with("Transfer-Encoding: ChunkeD\r\n")).head.framing,
              Framing::chunked);
    EXPECT_EQ(judge_all_ways(head_with("")).head.framing, Framing::none);
    EXPECT_EQ(
        judge_all_ways(head_with("Content-Length: 9223372036854775807\r\n")).head.content_length,
        9223372036854775807u);
}

TEST(Gate, LearnsPersistence) {
    const auto keeps = [](const std::string& version, const std::string& fields) {
        return judge_all_ways("GET / " + version + "\r\nHost: h\r\n" + fields + "\r\n")
            .head.keep_alive;
    };
    EXPECT_TRUE(keeps("HTTP/1.1", ""));
    EXPECT_TRUE(keeps("HTTP/1.2", ""));
    EXPECT_FALSE(keeps("HTTP/1.0", ""));
    EXPECT_TRUE(keeps("HTTP/1.0", "Connection: Keep-Alive\r\n"));
    EXPECT_FALSE(keeps("HTTP/1.1", "Connection: close\r\n"));
    EXPECT_FALSE(keeps("HTTP/1.1", "Connection: x, CLOSE ,y\r\n"));
    EXPECT_FALSE(keeps("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    EXPECT_TRUE(keeps("HTTP/1.1", "Connection: closed\r\n"));
}

TEST(Gate, LetsAnHttp10ClientExpectNothing) {
    EXPECT_TRUE(judge_all_ways(kGet + "Expect: 100-Continue\r\n\r\n").head.expects_continue);
    EXPECT_FALSE(
        judge_all_ways("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").head.expects_continue);
}

TEST(Gate, LetsUsualHeadsPass) {
    for (const std::string& head : {
             kGet + "\r\n",
             std::string("GET / HTTP/1.0\r\n\r\n"),
             std::string("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
             std::string("GET http://h:80/a?b=c HTTP/1.1\r\nHost: h:80\r\n\r\n"),
             std::string("GET HTTPS://h HTTP/1.1\r\nHost:\r\n\r\n"),
             std::string("GET /\xc3\xbc%20{}|^\" HTTP/1.1\r\nHost: [::1]:6632\r\n\r\n"),
             kGet + "A:\r\nB: \xc3\xa4\tb \r\nCookie: a=b; c=\"d\"\r\n\r\n",
             kGet + "A: " + std::string(8192, 'v') + "\r\n\r\n",
         }) {
        EXPECT_EQ(judge_all_ways(head).verdict, Gate::Verdict::passed) << head;
    }
}

TEST(Gate, WaitsForTheEndOfEveryUnfinishedHead) {
    const std::string head = kGet + "A: b\r\n\r\n";
    for (std::size_t size = 0; size < head.size(); ++size) {
        EXPECT_EQ(judge_all_ways(head.substr(0, size)).verdict, Gate::Verdict::more) << size;
    }
}

TEST(Gate, FindsTheOriginFormOfATarget) {
    EXPECT_EQ(origin_form("/a?b"), "/a?b");
    EXPECT_EQ(origin_form("http://h/a?b"), "/a?b");
    EXPECT_EQ(origin_form("http://h"), "");
    EXPECT_EQ(origin_form("http://h?b"), "?b");
    EXPECT_FALSE(origin_form("mailto:a").has_value());
}

} // namespace
} // namespace queen::http
