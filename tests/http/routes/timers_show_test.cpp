// Timers by key: peeked at, cancelled, listed, counted.
#include "base/text.hpp"
#include "http/routes/timer_routes.hpp"

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// K25: decoded once, a slash inside a key is part of it, and + stays +.
TEST_F(TimerRoutes, K25_KeysInPathsAreDecodedOnce) {
    struct Case {
        const char* path;
        const char* key;
    };
    for (const auto& [path, key] :
         {Case{"a/b/c", "a/b/c"}, Case{"a%2Fb", "a/b"}, Case{"a%20b+c", "a b+c"}, Case{"%25", "%"},
          Case{"%2520", "%20"}, Case{"%C3%BC", "\xC3\xBC"}, Case{"a//b/", "a//b/"},
          Case{"a%3Fb", "a?b"}, Case{"_", "_"}}) {
        calls.clear();
        auto reply = api.ask("DELETE", std::string("/api/v1/timers/q%2Fr/") + path + "?txn=a+b");
        EXPECT_EQ(reply.status, 200) << path << reply.body;
        ASSERT_EQ(calls.size(), 1u);
        EXPECT_EQ(calls[0].ops.at(0).key, key);
        EXPECT_EQ(calls[0].ops.at(0).queue, "q/r");
        EXPECT_EQ(calls[0].ops.at(0).transaction_id, "a b");
        std::string peeked;
        api.timers.on_peek = [&](auto&&, auto&&, const std::string& asked, const auto& done) {
            peeked = asked;
            done(std::optional<WaitingTimer>{});
        };
        reply = api.ask("GET", std::string("/api/v1/timers/q/") + path);
        EXPECT_EQ(peeked, key);
        EXPECT_EQ(at(reply.body, "timerKey"), key);
    }
    for (const char* method : {"GET", "DELETE"}) {
        for (const auto& [path, reason] : {std::pair{"", "timers_key_required"},
                                           {"%00", "timers_bad_name"},
                                           {"..", "timers_bad_name"},
                                           {"a%0Ab", "timers_bad_name"}}) {
            const auto reply = api.ask(method, std::string("/api/v1/timers/q/") + path);
            EXPECT_EQ(reply.status, 400) << path;
            EXPECT_EQ(at(reply.body, "error"), "timers_bad_request");
            EXPECT_EQ(at(reply.body, "reason"), reason) << path;
        }
        EXPECT_EQ(api.ask(method, "/api/v1/timers/q/%zz").status, 400);
        EXPECT_EQ(api.ask(method, "/api/v1/timers/q/" + std::string(256, 'k')).status, 413);
    }
}

TEST_F(TimerRoutes, ACancelTellsItsOneResult) {
    auto reply = api.ask("DELETE", "/api/v1/timers/q/k?txn=mine");
    EXPECT_EQ(reply.body,
              R"({"ok":true,"status":"cancelled","queue":"q","timerKey":"k","txn":"its"})");
    api.timers.on_apply = [](const TimerCallOps& call,
                             const Done<std::vector<TimerVerdict>>& done) {
        done(std::vector<TimerVerdict>{{.transaction_id = call.ops.at(0).transaction_id}});
    };
    reply = api.ask("DELETE", "/api/v1/timers/q/k?txn=mine");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"ok":false,"status":"absent","queue":"q","timerKey":"k","txn":"mine"})");
    EXPECT_EQ(at(api.ask("DELETE", "/api/v1/timers/q/k").body, "txn"), "null");
    for (const char* query : {"?txn=%00", "?txn=a&txn=b"}) {
        reply = api.ask("DELETE", std::string("/api/v1/timers/q/k") + query);
        EXPECT_EQ(reply.status, 400);
        EXPECT_EQ(at(reply.body, "reason"), "timers_bad_txn");
    }
    EXPECT_THAT(api.forms.asked, IsEmpty()) << "a cancel asks nothing about the queue";
}

WaitingTimer waiting(const std::string& key) {
    return {.key = key,
            .partition = "p",
            .deliver_at = WallTime(1s),
            .transaction_id = "t",
            .message_id = *parse_uuid(kLeaseId),
            .payload = "1",
            .payload_zstd = false,
            .encrypted = true,
            .producer_sub = "",
            .attempts = 2,
            .last_error = "why",
            .claimed = true,
            .created_at = WallTime(2s),
            .updated_at = WallTime(3s)};
}

TEST_F(TimerRoutes, APeekShowsATimerAsItWaits) {
    api.timers.on_peek = [](auto&&, auto&&, const std::string& key, const auto& done) {
        done(key == "k" ? std::optional(waiting(key)) : std::nullopt);
    };
    auto reply = api.ask("GET", "/api/v1/timers/q/k");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body,
              R"({"found":true,"queue":"q","timerKey":"k","partition":"p",)"
              R"("deliverAt":"1970-01-01T00:00:01.000000Z","txn":"t","messageId":")" +
                  std::string(kLeaseId) +
                  R"(","payload":"MQ==","payloadZstd":false,"encrypted":true,"producerSub":null,)"
                  R"("attempts":2,"lastError":"why","claimed":true,)"
                  R"("createdAt":"1970-01-01T00:00:02.000000Z",)"
                  R"("updatedAt":"1970-01-01T00:00:03.000000Z"})");
    reply = api.ask("GET", "/api/v1/timers/q/other");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"found":false,"queue":"q","timerKey":"other"})");
}

TEST_F(TimerRoutes, AListIsAPageBehindAKey) {
    std::vector<std::pair<std::string, std::int32_t>> asked;
    bool more = true;
    api.timers.on_list = [&](auto&&, auto&&, const std::string& after, std::int32_t limit,
                             const auto& done) {
        asked.emplace_back(after, limit);
        done(TimerPage{.rows = {waiting("a"), waiting("b")}, .truncated = more});
    };
    auto reply = api.ask("GET", "/api/v1/timers/q");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "rows"), "[2]");
    EXPECT_EQ(at(reply.body, "rows.1.timerKey"), "b");
    EXPECT_EQ(at(reply.body, "rows.1.payload"), "<missing>");
    EXPECT_EQ(at(reply.body, "rows.1.payloadZstd"), "false");
    EXPECT_EQ(at(reply.body, "truncated"), "true");
    EXPECT_EQ(at(reply.body, "nextAfter"), "b");
    more = false;
    for (const char* query : {"?limit=0&mode=", "?limit=2000&mode=list", "?limit=-7&after=b%20+"}) {
        reply = api.ask("GET", std::string("/api/v1/timers/q") + query);
        EXPECT_EQ(at(reply.body, "truncated"), "false");
        EXPECT_EQ(at(reply.body, "nextAfter"), "null");
    }
    EXPECT_THAT(asked, ElementsAre(std::pair("", 100), std::pair("", 1), std::pair("", 1000),
                                   std::pair("b  ", 1)));
    for (const auto& [query, reason] : {std::pair{"mode=all", "timers_read_mode_unknown"},
                                        {"mode=list&mode=list", "timers_read_mode_unknown"},
                                        {"limit=x", "timers_list_page_parameters"},
                                        {"after=%00", "timers_list_page_parameters"},
                                        {"after=a&after=b", "timers_list_page_parameters"}}) {
        reply = api.ask("GET", std::string("/api/v1/timers/q?") + query);
        EXPECT_EQ(reply.status, 400) << query;
        EXPECT_EQ(at(reply.body, "error"), "timers_bad_request");
        EXPECT_EQ(at(reply.body, "reason"), reason) << query;
    }
    EXPECT_EQ(asked.size(), 4u);
}

TEST_F(TimerRoutes, ACountTakesAPrefixLiterally) {
    std::vector<std::string> asked;
    api.timers.on_count = [&](auto&&, auto&&, const std::string& prefix, const auto& done) {
        asked.push_back(prefix);
        done(std::int64_t{7});
    };
    auto reply = api.ask("GET", "/api/v1/timers/q?mode=count&prefix=a%25_");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"count":7})");
    const std::string longest(128, 'x');
    EXPECT_EQ(api.ask("GET", "/api/v1/timers/q?mode=count&prefix=" + longest).status, 200);
    EXPECT_THAT(asked, ElementsAre("a%_", longest));
    for (const auto& [query, reason] :
         {std::pair<std::string, const char*>{"", "timers_count_prefix_required"},
          {"&prefix=", "timers_count_prefix_required"},
          {"&prefix=a%00", "timers_count_prefix_invalid"},
          {"&prefix=a&prefix=b", "timers_count_prefix_invalid"},
          {"&prefix=x" + longest, "timers_count_prefix_too_long"},
          {"&prefix=a&after=b", "timers_count_page_parameters"},
          {"&prefix=a&limit=1", "timers_count_page_parameters"}}) {
        reply = api.ask("GET", "/api/v1/timers/q?mode=count" + query);
        EXPECT_EQ(reply.status, 400) << query;
        EXPECT_EQ(at(reply.body, "reason"), reason) << query;
    }
    EXPECT_EQ(asked.size(), 2u);
}

} // namespace
} // namespace queen::test
