#include "command_line.hpp"
#include "queenctl/client.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using namespace std::chrono_literals;

TEST(Client, RefusesUrlsItCannotServe) {
    for (const char* url : {"", "localhost:6632", "https://a", "http://", "http://a:x", "ftp://a",
                            "http://u:p@a", "http://a?x=1", "http://a#f", "unix:/run/q"}) {
        const auto client = Client::open(url, 1s);
        ASSERT_FALSE(client.has_value()) << url;
        EXPECT_EQ(client.error().code, Errc::invalid_argument) << url;
    }
    for (const char* url : {"http://a", "http://a:80/", "http://[::1]:6632", "http://a/queen/"}) {
        EXPECT_TRUE(Client::open(url, 1s).has_value()) << url;
    }
}

TEST(Client, AUrlsPathStandsBeforeTheRoutes) {
    ScriptedServer server(in_order({{200, "{}", {}, false}}));
    auto client = Client::open(server.url() + "/behind/proxy/", 30s);
    ASSERT_TRUE(client.has_value());
    EXPECT_TRUE(client->call("GET", "/health", {{"a b", "c&d"}}).has_value());
    EXPECT_EQ(server.seen().at(0).target, "/behind/proxy/health?a%20b=c%26d");
}

TEST(Client, AnAnswerThatIsCutIsNoAnswer) {
    ScriptedServer server([](const Seen&) -> Reaction {
        return {200, "short", {{"X-Test", "cut"}}, false};
    });
    auto client = Client::open(server.url(), 30s);
    ASSERT_TRUE(client.has_value());
    EXPECT_EQ(client->call("GET", "/", {})->body, "short");
    ScriptedServer dropping(in_order({drop_connection(), {200, "again", {}, false}}));
    auto second = Client::open(dropping.url(), 30s);
    const auto broken = second->call("GET", "/", {});
    ASSERT_FALSE(broken.has_value());
    EXPECT_EQ(broken.error().code, Errc::unavailable);
    EXPECT_EQ(second->call("GET", "/", {})->body, "again"); // a new connection
}

TEST(Client, TheEnvironmentNamesTheBrokerUnlessTheCommandLineDoes) {
    ScriptedServer server(in_order({{200, R"({"status":"healthy"})", {}, false}}));
    EXPECT_EQ(command_line({"health"}, "", {{"QUEEN_URL", server.url()}}).exit, Exit::ok);
    EXPECT_EQ(command_line({"health", "--url", server.url()}, "", {{"QUEEN_URL", "nonsense"}}).exit,
              Exit::ok);
    EXPECT_EQ(command_line({"health"}, "", {{"QUEEN_URL", "nonsense"}}).exit, Exit::usage);
}

TEST(Client, ARefusalIsOneSafeSentence) {
    EXPECT_EQ(refusal({500, "", 0s}), "the broker answered 500");
    EXPECT_EQ(refusal({500, "<html>", 0s}), "the broker answered 500");
    EXPECT_EQ(refusal({400, R"({"error":"a\nb"})", 0s}), "the broker answered 400: a\\x0ab");
}

} // namespace
} // namespace queen::ctl::testing
