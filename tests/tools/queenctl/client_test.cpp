#include "command_line.hpp"
#include "queenctl/client.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

#include <fstream>

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

TEST(Client, AnAnswerThatIsCutIsNoAnswerAndTheNextCallConnectsAnew) {
    ScriptedServer server(
        in_order({cut_answer("[1,2"), drop_connection(), {200, "whole", {}, false}}));
    auto client = Client::open(server.url(), 30s);
    ASSERT_TRUE(client.has_value());
    for (int i = 0; i < 2; ++i) {
        const auto broken = client->call("GET", "/", {});
        ASSERT_FALSE(broken.has_value()) << broken->body;
        EXPECT_EQ(broken.error().code, Errc::unavailable);
    }
    EXPECT_EQ(client->call("GET", "/", {})->body, "whole");
}

TEST(Client, TheEnvironmentNamesTheBrokerUnlessTheCommandLineDoes) {
    ScriptedServer server(in_order({{200, R"({"status":"healthy"})", {}, false}}));
    EXPECT_EQ(command_line({"health"}, "", {{"QUEEN_URL", server.url()}}).exit, Exit::ok);
    EXPECT_EQ(command_line({"health", "--url", server.url()}, "", {{"QUEEN_URL", "nonsense"}}).exit,
              Exit::ok);
    EXPECT_EQ(command_line({"health"}, "", {{"QUEEN_URL", "nonsense"}}).exit, Exit::usage);
}

TEST(Client, ATokenAndATenantGoWithEveryRequest) {
    ScriptedServer server(in_order({{200, R"({"status":"healthy"})", {}, false}}));
    const std::string file = ::testing::TempDir() + "queenctl-token";
    std::ofstream(file) << "from.a.file\n";
    const auto ask = [&](std::vector<std::string> more, const std::string& variable) {
        std::vector<std::string> words{"health", "--url", server.url()};
        words.insert(words.end(), more.begin(), more.end());
        return command_line(words, "", {{"QUEEN_TOKEN", variable}});
    };
    EXPECT_EQ(ask({}, "a.b.c").exit, Exit::ok);
    EXPECT_EQ(ask({"--token-file", file}, "a.b.c").exit, Exit::ok);
    EXPECT_EQ(ask({"--tenant", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}, "").exit, Exit::ok);
    ASSERT_EQ(server.seen().size(), 3u);
    EXPECT_EQ(server.seen()[0].authorization, "Bearer a.b.c");
    EXPECT_EQ(server.seen()[1].authorization, "Bearer from.a.file");
    EXPECT_EQ(server.seen()[2].authorization, "");
    EXPECT_EQ(server.seen()[2].tenant, "3f2504e0-4f89-11d3-9a0c-0305e82c3301");

    const auto odd = ask({}, "a\r\nx-queen-tenant: b");
    EXPECT_EQ(odd.exit, Exit::usage);
    EXPECT_EQ(odd.err.find("x-queen-tenant"), std::string::npos) << "a token is never shown";
    EXPECT_EQ(ask({"--token-file", file + "-missing"}, "").exit, Exit::usage);
    EXPECT_EQ(server.seen().size(), 3u);
}

TEST(Client, ARefusalIsOneSafeSentence) {
    EXPECT_EQ(refusal({500, "", 0s}), "the broker answered 500");
    EXPECT_EQ(refusal({500, "<html>", 0s}), "the broker answered 500");
    EXPECT_EQ(refusal({400, R"({"error":"a\nb"})", 0s}), "the broker answered 400: a\\x0ab");
}

} // namespace
} // namespace queen::ctl::testing
