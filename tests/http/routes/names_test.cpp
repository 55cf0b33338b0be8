// One rule for names: whatever way a name takes into the broker, the verdict is the same, and a
// name that is taken arrives byte for byte (K21, K24, K25).
#include "base/text.hpp"
#include "http/routes/api.hpp"

namespace queen::test {
namespace {

struct Verdict {
    int status;       ///< 0: taken
    std::string name; ///< as it arrived at the store
};

bool operator==(const Verdict& a, const Verdict& b) {
    return a.status == b.status && a.name == b.name;
}
void PrintTo(const Verdict& v, std::ostream* out) {
    *out << v.status << " \"" << v.name << "\"";
}

int taken(int status) {
    return status < 300 || status == 501 ? 0 : status;
}

// --- the ways in -----------------------------------------------------------------------------

Verdict queue_by_push(const std::string& name) {
    Api api;
    const auto reply =
        api.ask("POST", "/api/v1/push",
                R"({"items":[{"queue":)" + json::quoted(name) + R"(,"payload":1}]})");
    return {taken(reply.status), api.store.pushed.empty() ? "" : api.store.pushed[0].queue};
}
Verdict queue_by_configure(const std::string& name) {
    Api api;
    const auto reply =
        api.ask("POST", "/api/v1/configure", R"({"queue":)" + json::quoted(name) + "}");
    return {taken(reply.status), api.store.configured.empty() ? "" : api.store.configured[0].queue};
}
Verdict queue_by_pop(const std::string& name) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/pop/queue/" + percent_encode(name));
    return {taken(reply.status), api.store.pops.empty() ? "" : api.store.pops[0].args.queue};
}
Verdict queue_by_pinned_pop(const std::string& name) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/pop/queue/" + percent_encode(name) + "/partition/p");
    return {taken(reply.status), api.store.pops.empty() ? "" : api.store.pops[0].args.queue};
}
Verdict queue_by_detail(const std::string& name) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/resources/queues/" + percent_encode(name));
    return {taken(reply.status), api.store.figures.empty() ? "" : api.store.figures[0].queue};
}
Verdict queue_by_delete(const std::string& name) {
    Api api;
    const auto reply = api.ask("DELETE", "/api/v1/resources/queues/" + percent_encode(name));
    return {taken(reply.status), api.store.deleted.empty() ? "" : api.store.deleted[0]};
}
Verdict partition_by_push(const std::string& name) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/push",
                               R"({"items":[{"queue":"q","partition":)" + json::quoted(name) +
                                   R"(,"payload":1}]})");
    return {taken(reply.status), api.store.pushed.empty() ? "" : api.store.pushed[0].partition};
}
Verdict partition_by_pop(const std::string& name) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q/partition/" + percent_encode(name));
    return {taken(reply.status), api.store.pops.empty() ? "" : api.store.pops[0].partition};
}
Verdict group_by_pop(const std::string& name) {
    Api api;
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=" + percent_encode(name));
    return {taken(reply.status), api.store.pops.empty() ? "" : api.store.pops[0].args.group};
}
Verdict group_by_discovery(const std::string& name) {
    Api api;
    const auto reply =
        api.ask("GET", "/api/v1/pop?namespace=n&consumerGroup=" + percent_encode(name));
    return {taken(reply.status), api.store.pops.empty() ? "" : api.store.pops[0].args.group};
}
std::string ack_with(const std::string& group) {
    return R"("partitionId":")" + std::string(kPartitionId) + R"(","transactionId":"t")" +
           (group.empty() ? "" : R"(,"consumerGroup":)" + group);
}
Verdict group_by_ack(const std::string& name) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/ack", "{" + ack_with(json::quoted(name)) + "}");
    return {taken(reply.status), api.store.acks.empty() ? "" : api.store.acks[0].group};
}
Verdict group_by_ack_batch(const std::string& name) {
    Api api;
    const auto reply = api.ask("POST", "/api/v1/ack/batch",
                               R"({"acknowledgments":[{)" + ack_with("") +
                                   R"(}],"consumerGroup":)" + json::quoted(name) + "}");
    return {taken(reply.status), api.store.acks.empty() ? "" : api.store.acks[0].group};
}

Verdict queue_by_timer_list(const std::string& name) {
    Api api;
    std::string queue;
    api.timers.on_list = [&](auto&&, const std::string& asked, auto&&, auto, const auto& done) {
        queue = asked;
        done(TimerPage{});
    };
    const auto reply = api.ask("GET", "/api/v1/timers/" + percent_encode(name));
    return {taken(reply.status), queue};
}
Verdict queue_by_timer_peek(const std::string& name) {
    Api api;
    std::string queue;
    api.timers.on_peek = [&](auto&&, const std::string& asked, auto&&, const auto& done) {
        queue = asked;
        done(std::optional<WaitingTimer>{});
    };
    const auto reply = api.ask("GET", "/api/v1/timers/" + percent_encode(name) + "/key");
    return {taken(reply.status), queue};
}
Verdict queue_by_timer_cancel(const std::string& name) {
    Api api;
    std::string queue;
    api.timers.on_apply = [&](const TimerCallOps& call, const auto& done) {
        queue = call.ops.at(0).queue;
        done(std::vector<TimerVerdict>(1));
    };
    const auto reply =
        api.ask("POST", "/api/v1/timers",
                R"([{"op":"cancel","timerKey":"k","queue":)" + json::quoted(name) + "}]");
    return {taken(reply.status), queue};
}

std::string group_by_delete(const std::string& group, const std::string& queue) {
    Api api;
    api.ask("DELETE", "/api/v1/consumer-groups/" + percent_encode(group) + "/queues/" +
                          percent_encode(queue));
    return api.group_store.asked.empty() ? "" : api.group_store.asked[0];
}
std::string seek_by(const std::string& group, const std::string& queue,
                    const std::string& partition) {
    Api api;
    api.ask("POST", "/api/v1/consumer-groups/" + percent_encode(group) + "/queues/" +
                        percent_encode(queue) + "/partitions/" + percent_encode(partition) +
                        "/seek");
    return api.group_store.asked.empty() ? "" : api.group_store.asked[0];
}

/// Routes that no handler serves yet judge names too; what arrives cannot be seen.
int status_of(const std::string& method, const std::string& target,
              const std::string& body = "{}") {
    Api api;
    return taken(api.ask(method, target, body).status);
}
constexpr const char* kToEnd = R"({"toEnd":true})";
constexpr const char* kFrom = R"({"subscriptionTimestamp":"2026-11-03"})";

// --- what is expected ------------------------------------------------------------------------

void expect_queue(const std::string& name, const Verdict& expected) {
    EXPECT_EQ(queue_by_push(name), expected);
    EXPECT_EQ(queue_by_configure(name), expected);
    EXPECT_EQ(queue_by_pop(name), expected);
    EXPECT_EQ(queue_by_pinned_pop(name), expected);
    EXPECT_EQ(queue_by_detail(name), expected);
    EXPECT_EQ(queue_by_delete(name), expected);
    const std::string encoded = percent_encode(name);
    EXPECT_EQ(queue_by_timer_list(name), expected);
    EXPECT_EQ(queue_by_timer_peek(name), expected);
    EXPECT_EQ(queue_by_timer_cancel(name), expected);
    EXPECT_EQ(status_of("GET", "/api/v1/resources/queues/" + encoded + "/depth"), expected.status);
    EXPECT_EQ(status_of("GET", "/api/v1/status/queues/" + encoded), expected.status);
    EXPECT_EQ(status_of("POST", "/api/v1/consumer-groups/g/queues/" + encoded + "/seek", kToEnd),
              expected.status);
    EXPECT_EQ(status_of("DELETE", "/api/v1/consumer-groups/g/queues/" + encoded), expected.status);
}
void expect_partition(const std::string& name, const Verdict& expected) {
    EXPECT_EQ(partition_by_push(name), expected);
    EXPECT_EQ(partition_by_pop(name), expected);
    EXPECT_EQ(
        status_of("POST",
                  "/api/v1/consumer-groups/g/queues/q/partitions/" + percent_encode(name) + "/seek",
                  kToEnd),
        expected.status);
}
void expect_group(const std::string& name, const Verdict& expected) {
    EXPECT_EQ(group_by_pop(name), expected);
    EXPECT_EQ(group_by_discovery(name), expected);
    EXPECT_EQ(group_by_ack(name), expected);
    EXPECT_EQ(group_by_ack_batch(name), expected);
    if (name.empty()) {
        return; // a path without a name names nobody: GroupsRoute.APathThatNamesNoGroup...
    }
    const std::string encoded = percent_encode(name);
    EXPECT_EQ(status_of("GET", "/api/v1/consumer-groups/" + encoded), expected.status);
    EXPECT_EQ(status_of("DELETE", "/api/v1/consumer-groups/" + encoded), expected.status);
    // Queue mode has no subscription that could be moved.
    EXPECT_EQ(status_of("POST", "/api/v1/consumer-groups/" + encoded + "/subscription", kFrom),
              name == "__QUEUE_MODE__" ? 400 : expected.status);
}
void expect_everywhere(const std::string& name, const Verdict& expected) {
    SCOPED_TRACE("name \"" + name.substr(0, 40) + "\" of " + std::to_string(name.size()) +
                 " bytes");
    expect_queue(name, expected);
    expect_partition(name, expected);
    expect_group(name, expected);
}

TEST(Names, K21K25OddNamesAreTakenByteForByteOnEveryRoute) {
    for (const std::string name :
         {"a b",  "a+b",  "a%b",  "a/b",       "ü",      "a&b",       "a\"b",         "a\\b",
          "é",    "日本", "😀",    "'",         "<x>",    "a?b#c=d;e", "%2F",          "...",
          "../x", " ",    "null", "undefined", "Orders", "orders",    "x:y@z!$&'()*,"}) {
        expect_everywhere(name, {0, name});
        EXPECT_EQ(group_by_delete(name, name), "remove " + name + " in " + name);
        EXPECT_EQ(seek_by(name, name, name), "seek " + name + " in " + name + "/" + name);
    }
}

TEST(Names, K24LimitsAreTheSameEverywhere) {
    // 36 bytes of tenant + queue + the longer of group and partition <= 447
    expect_everywhere(std::string(255, 'x'), {0, std::string(255, 'x')});
    for (const std::string& name : {std::string(256, 'x'), std::string(5'000, 'x')}) {
        expect_everywhere(name, {413, ""});
    }
    const std::string twin = std::string(63, 'x');
    expect_everywhere(twin + "one", {0, twin + "one"});
    expect_everywhere(twin + "two", {0, twin + "two"});
}

TEST(Names, K24UnusableNamesAreRefusedTheSameEverywhere) {
    using namespace std::string_literals;
    for (const std::string& name : {"."s, ".."s, "a\tb"s,
                                    "a\x1f"
                                    "b"s,
                                    "a\0b"s, "\x7f"s, "a\xc2\x85z"s, "\n"s}) {
        expect_everywhere(name, {400, ""});
    }
}

TEST(Names, K24EmptyOnesMeanTheSameOnEveryWayIn) {
    expect_queue("", {400, ""});
    expect_partition("", {0, "Default"});
    expect_group("", {0, "__QUEUE_MODE__"});
}

TEST(Names, K24TheReservedWordIsQueueModeItself) {
    expect_group("__QUEUE_MODE__", {0, "__QUEUE_MODE__"});
    Api api;
    api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=__QUEUE_MODE__&subscriptionMode=new");
    EXPECT_EQ(api.store.pops.at(0).args.sub_mode, "all");
}

TEST(Names, NamesUsedTogetherHaveABudget) {
    const std::string queue(200, 'q');
    const std::string fits(211, 'x'); // 36 + 200 + 211 = 447
    const std::string over(212, 'x');
    const auto push = [&](const std::string& partition) {
        Api api;
        return api
            .ask("POST", "/api/v1/push",
                 R"({"items":[{"queue":")" + queue + R"(","partition":")" + partition +
                     R"(","payload":1}]})")
            .status;
    };
    EXPECT_EQ(push(fits), 201);
    EXPECT_EQ(push(over), 413);
    EXPECT_EQ(status_of("GET", "/api/v1/pop/queue/" + queue + "/partition/" + fits), 0);
    EXPECT_EQ(status_of("GET", "/api/v1/pop/queue/" + queue + "/partition/" + over), 413);
    EXPECT_EQ(status_of("GET", "/api/v1/pop/queue/" + queue + "?consumerGroup=" + fits), 0);
    EXPECT_EQ(status_of("GET", "/api/v1/pop/queue/" + queue + "?consumerGroup=" + over), 413);
    EXPECT_EQ(status_of("DELETE", "/api/v1/consumer-groups/" + over + "/queues/" + queue), 413);
    Api api;
    const auto reply = api.ask("GET", "/api/v1/pop/queue/" + queue + "?consumerGroup=" + over);
    EXPECT_EQ(at(reply.body, "code"), "name_too_long");
}

TEST(Names, K25PlusStaysPlusInAPathAndIsASpaceInAQuery) {
    Api api;
    api.ask("GET", "/api/v1/pop/queue/a+b?consumerGroup=c+d");
    api.ask("GET", "/api/v1/pop/queue/a%2Bb?consumerGroup=c%2Bd");
    api.ask("GET", "/api/v1/pop/queue/a%20b?consumerGroup=c%20d");
    ASSERT_EQ(api.store.pops.size(), 3u);
    EXPECT_EQ(api.store.pops[0].args.queue, "a+b");
    EXPECT_EQ(api.store.pops[0].args.group, "c d");
    EXPECT_EQ(api.store.pops[1].args.queue, "a+b");
    EXPECT_EQ(api.store.pops[1].args.group, "c+d");
    EXPECT_EQ(api.store.pops[2].args.queue, "a b");
    EXPECT_EQ(api.store.pops[2].args.group, "c d");
}

TEST(Names, K25DecodingHappensOnce) {
    Api api;
    api.ask("GET", "/api/v1/pop/queue/a%252Fb?consumerGroup=a%2525");
    EXPECT_EQ(api.store.pops.at(0).args.queue, "a%2Fb");
    EXPECT_EQ(api.store.pops.at(0).args.group, "a%25");
    const auto reply = api.ask("DELETE", "/api/v1/resources/queues/a%2Fpartition%2Fb");
    EXPECT_EQ(at(reply.body, "queue"), "a/partition/b");
}

TEST(Names, LabelsFollowTheRuleToo) {
    EXPECT_EQ(status_of("GET", "/api/v1/pop?namespace=" + std::string(256, 'x')), 413);
    EXPECT_EQ(status_of("GET", "/api/v1/pop?task=a%00"), 400);
    Api api;
    const auto reply = api.ask("POST", "/api/v1/configure", R"({"queue":"q","namespace":"a\tb"})");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(at(reply.body, "invalid"), "namespace");
}

} // namespace
} // namespace queen::test
