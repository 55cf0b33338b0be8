#include "http/front/codec.hpp"

#include <gtest/gtest.h>

#include <string>

namespace queen::http {
namespace {

bool has_line(const std::string& head, const std::string& line) {
    return head.find("\r\n" + line + "\r\n") != std::string::npos;
}

TEST(Codec, BuildsHeadsWithExactLength) {
    const std::string head = build_head({.status = 201, .body = "12345"}, {});
    EXPECT_TRUE(head.starts_with("HTTP/1.1 201 Created\r\n")) << head;
    EXPECT_TRUE(head.ends_with("\r\n\r\n"));
    EXPECT_TRUE(has_line(head, "Content-Length: 5"));
    EXPECT_TRUE(has_line(head, "Content-Type: application/json"));
    EXPECT_EQ(head.find("Connection"), std::string::npos);
}

TEST(Codec, GivesAStatusWithoutBodyNeitherLengthNorType) {
    for (const int status : {204, 304}) {
        const std::string head = build_head({.status = status, .body = "ignored"}, {});
        EXPECT_EQ(head.find("Content-"), std::string::npos) << head;
        EXPECT_EQ(head.find("Transfer-"), std::string::npos) << head;
    }
}

TEST(Codec, SaysHowTheConnectionGoesOn) {
    EXPECT_TRUE(has_line(build_head({}, {.close = true}), "Connection: Close") ||
                has_line(build_head({}, {.close = true}), "Connection: close"));
    EXPECT_TRUE(has_line(build_head({}, {.say_keep_alive = true}), "Connection: Keep-Alive"));
}

TEST(Codec, LetsNoRouteBreakTheFraming) {
    Reply reply;
    reply.body = "{}";
    reply.content_type = "text/plain\r\nX: y";
    reply.headers = {{"Location", "/a\r\nContent-Length: 99\r\n\r\nHTTP/1.1 200"},
                     {"Content-Length", "7"},
                     {"transfer-encoding", "chunked"},
                     {"connection", "close"},
                     {"bad name", "v"},
                     {"Retry-After", "1"}};
    const std::string head = build_head(reply, {});
    EXPECT_TRUE(has_line(head, "Content-Length: 2")) << head;
    EXPECT_TRUE(has_line(head, "Retry-After: 1")) << head;
    EXPECT_TRUE(has_line(head, "Location: /a  Content-Length: 99    HTTP/1.1 200")) << head;
    EXPECT_EQ(head.find("\r\n\r\n"), head.size() - 4) << head;
    EXPECT_EQ(head.find("chunked"), std::string::npos) << head;
    EXPECT_EQ(head.find("lose"), std::string::npos) << head;
    EXPECT_EQ(head.find("bad name"), std::string::npos) << head;
}

TEST(Codec, FitsHeadsOfAnySize) {
    Reply reply;
    for (int i = 0; i < 200; ++i) {
        reply.headers.emplace_back("X-" + std::to_string(i), std::string(500, 'v'));
    }
    const std::string head = build_head(reply, {.close = true, .say_keep_alive = true});
    EXPECT_TRUE(head.ends_with(std::string(500, 'v') + "\r\n\r\n"));
}

TEST(Codec, TellsRefusalsAsJson) {
    const Reply reply = refusal_reply({413, "the \"body\" is too long", true});
    EXPECT_EQ(reply.status, 413);
    EXPECT_EQ(reply.body, R"({"error":"the \"body\" is too long","code":"too_large"})");
    EXPECT_TRUE(reply.close);
    ASSERT_EQ(reply.headers.size(), 1u);
    EXPECT_EQ(reply.headers[0].first, "Retry-After");
}

} // namespace
} // namespace queen::http
