#include "http/routes/api.hpp"

namespace queen::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class PopParameters : public testing::Test {
protected:
    /// What the store was asked for by a pop with that query.
    PopArgs args(const std::string& query) {
        const auto reply = api.ask("GET", "/api/v1/pop/queue/q" + query);
        EXPECT_EQ(reply.status, 204) << query << ": " << reply.body;
        return api.store.pops.empty() ? PopArgs{} : api.store.pops.back().args;
    }
    std::string refusal(const std::string& query) {
        const auto reply = api.ask("GET", "/api/v1/pop/queue/q?" + query);
        EXPECT_EQ(reply.status, 400) << query;
        EXPECT_TRUE(api.store.pops.empty()) << query;
        return at(reply.body, "error");
    }

    Api api;
};

TEST_F(PopParameters, DefaultsAreTheContracts) {
    const PopArgs a = args("");
    EXPECT_EQ(a.tenant, kDefaultTenant);
    EXPECT_EQ(a.queue, "q");
    EXPECT_EQ(a.group, "__QUEUE_MODE__");
    EXPECT_EQ(a.budget, 200);
    EXPECT_EQ(a.max_partitions, 1);
    EXPECT_EQ(a.lease_seconds, 0);
    EXPECT_FALSE(a.auto_ack);
    EXPECT_EQ(a.sub_mode, "all");
    EXPECT_EQ(a.sub_from, "");
}

// A default above the parameter's bound would refuse every pop that names no batch.
TEST_F(PopParameters, EveryDefaultBatchOfTheSettingsIsAccepted) {
    const auto largest = [](const std::string& batch) {
        return settings::load_text("q.yaml", "pop: {default_batch: " + batch + "}", {{"HOME", "/"}},
                                   {});
    };
    const auto loaded = largest("10000");
    ASSERT_TRUE(loaded.has_value());
    api.settings.pop.default_batch = loaded->settings.pop.default_batch;
    EXPECT_EQ(args("").budget, 10'000);
    EXPECT_FALSE(largest("10001").has_value());
}

TEST_F(PopParameters, AreHandedOn) {
    const PopArgs a =
        args("?batch=10000&partitions=1000&leaseSeconds=604800&autoAck=true&wait=false"
             "&consumerGroup=fleet&subscriptionMode=new&timeout=5");
    EXPECT_EQ(a.budget, 10'000);
    EXPECT_EQ(a.max_partitions, 1'000);
    EXPECT_EQ(a.lease_seconds, 604'800);
    EXPECT_TRUE(a.auto_ack);
    EXPECT_EQ(a.group, "fleet");
    EXPECT_EQ(a.sub_mode, "new");
}

TEST_F(PopParameters, DefaultsComeFromTheSettings) {
    api.settings.pop.default_batch = 7;
    api.settings.pop.default_subscription = Subscription::Mode::fresh;
    const PopArgs a = args("?consumerGroup=g");
    EXPECT_EQ(a.budget, 7);
    EXPECT_EQ(a.sub_mode, "new");
    EXPECT_EQ(args("?consumerGroup=g&subscriptionMode=all").sub_mode, "all");
}

TEST_F(PopParameters, ABatchBelowOneIsOne) {
    EXPECT_EQ(args("?batch=0").budget, 1);
    EXPECT_EQ(args("?batch=-5").budget, 1);
}

TEST_F(PopParameters, MalformedOrOutOfBoundsIsRefusedByNameWithWhatIsAllowed) {
    EXPECT_EQ(refusal("batch=abc"), "batch must be a whole number from 1 to 10000, got \"abc\"");
    EXPECT_EQ(refusal("batch=10001"),
              "batch must be a whole number from 1 to 10000, got \"10001\"");
    for (const char* value : {"", "1.5", "1e3", "0x10", "%201", "1%20", "%2B1", "+1", "2147483648",
                              "-2147483649", "99999999999999999999", "true", "null", "%C2%B2"}) {
        EXPECT_THAT(refusal(std::string("batch=") + value), HasSubstr("batch must be")) << value;
        EXPECT_THAT(refusal(std::string("timeout=") + value), HasSubstr("timeout must be"))
            << value;
    }
    for (const char* value : {"0", "-1", "1001", "x", ""}) {
        EXPECT_THAT(refusal(std::string("partitions=") + value),
                    HasSubstr("partitions must be a whole number from 1 to 1000"));
    }
    for (const char* value : {"-1", "604801", "x", ""}) {
        EXPECT_THAT(refusal(std::string("leaseSeconds=") + value),
                    HasSubstr("leaseSeconds must be a whole number from 0 to 604800"));
    }
    for (const char* name : {"wait", "autoAck", "conflation", "autopilot"}) {
        for (const char* value : {"", "1", "0", "yes", "True", "FALSE", "true%20"}) {
            EXPECT_THAT(refusal(std::string(name) + "=" + value),
                        HasSubstr(std::string(name) + " must be true or false"));
        }
        EXPECT_THAT(refusal(name), HasSubstr("must be true or false")); // without '='
    }
}

TEST_F(PopParameters, ABadValueIsEchoedEscapedAndCut) {
    EXPECT_EQ(refusal("batch=%22%0A"),
              "batch must be a whole number from 1 to 10000, got \"\"\n\"");
    const std::string cut = refusal("batch=" + std::string(63, 'x') + "%C3%A9");
    EXPECT_THAT(cut, HasSubstr(std::string(63, 'x') + "...\""));
}

TEST_F(PopParameters, ARepeatedKnownParameterIsRefused) {
    for (const char* query :
         {"batch=1&batch=1", "wait=true&wait=true", "consumerGroup=a&consumerGroup=b",
          "subscriptionMode=all&subscriptionMode=new", "subscriptionFrom=&subscriptionFrom=now",
          "batch=1&b%61tch=2"}) {
        EXPECT_THAT(refusal(query), HasSubstr("is given more than once")) << query;
    }
}

TEST_F(PopParameters, UnknownOnesAreIgnoredRepeatedOrNot) {
    EXPECT_EQ(args("?batchSize=3&x=1&x=2&namespace=n&&=&batch=5").budget, 5);
}

// CF-1: what the pop does not say is not decided for it.
TEST_F(PopParameters, ConflationIsHandedOnAsItWasSaid) {
    EXPECT_THAT(refusal("conflation=yes"), HasSubstr("conflation must be"));
    EXPECT_EQ(args("?consumerGroup=g").conflate, std::nullopt);
    EXPECT_EQ(args("?consumerGroup=g&conflation=false").conflate, std::optional(false));
}

TEST_F(PopParameters, WithConflationPartitionsFollowTheBatch) {
    const auto partitions = [&](const std::string& query) {
        api.ask("GET", "/api/v1/pop/queue/q?consumerGroup=g&conflation=true" + query);
        return api.store.pops.back().args.max_partitions;
    };
    EXPECT_EQ(partitions(""), 64);
    EXPECT_EQ(partitions("&batch=7"), 7);
    EXPECT_EQ(partitions("&batch=0"), 1);
    EXPECT_EQ(partitions("&batch=7&partitions=3"), 3);
    EXPECT_EQ(args("?consumerGroup=h&conflation=false&batch=7").max_partitions, 1);
}

// PF-2
TEST_F(PopParameters, AutopilotChoosesWhatIsAbsent) {
    const auto size = [&](const std::string& path) {
        api.ask("GET", path);
        const auto& asked = api.store.pops.back().args;
        return std::pair(asked.budget, asked.max_partitions);
    };
    const std::string queue = "/api/v1/pop/queue/q";
    EXPECT_EQ(size(queue + "?autopilot=true"), std::pair(100, 8));
    EXPECT_EQ(size(queue + "?autopilot=true&batch=5&partitions=2"), std::pair(5, 2));
    EXPECT_EQ(size(queue + "?autopilot=true&partitions=2"), std::pair(100, 2));
    EXPECT_EQ(size(queue + "?autopilot=false"), std::pair(200, 1));
    EXPECT_EQ(size(queue + "/partition/p?autopilot=true"), std::pair(100, 1));
    EXPECT_EQ(size("/api/v1/pop?namespace=n&autopilot=true"), std::pair(200, 1)) << "ignored";
}

TEST_F(PopParameters, AQueryThatCannotBeDecodedIsRefused) {
    for (const char* query : {"batch=%", "batch=%4", "x=%zz", "%=1", "x=%FF"}) {
        EXPECT_THAT(refusal(query), HasSubstr("query")) << query;
    }
}

// K19: one point in time in every readable spelling; what is not readable never means "everything".
TEST_F(PopParameters, K19SubscriptionFromIsReadOrRefused) {
    const std::string same = "2026-01-31T09:30:00.000000Z";
    for (const char* from :
         {"2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z", "2026-01-31T09:30:00.000000000Z",
          "2026-01-31T15:00:00+05:30", "2026-01-31T15:00:00%2B05:30", "2026-01-31T06:00:00-03:30",
          "2026-01-31T09:30:00", "2026-01-31%2009:30:00Z"}) {
        EXPECT_EQ(args(std::string("?consumerGroup=g&subscriptionFrom=") + from).sub_from, same)
            << from;
    }
    EXPECT_EQ(args("?consumerGroup=g&subscriptionFrom=now").sub_mode, "new");
    EXPECT_EQ(args("?consumerGroup=g&subscriptionFrom=").sub_mode, "all");
    api.store.pops.clear();
    for (const char* from : {"yesterday", "24:00:00", "1769851800000", "2026-13-01T00:00:00Z",
                             "2026-01-31T09:30:00%20%20Z"}) {
        EXPECT_THAT(refusal(std::string("consumerGroup=g&subscriptionFrom=") + from),
                    HasSubstr("subscriptionFrom"))
            << from;
    }
    EXPECT_THAT(refusal("consumerGroup=g&subscriptionMode=newest"), HasSubstr("subscriptionMode"));
}

TEST_F(PopParameters, QueueModeBeginsAtEverythingButStillChecksWhatItIsGiven) {
    EXPECT_EQ(args("?subscriptionMode=new").sub_mode, "all");
    EXPECT_EQ(args("?consumerGroup=__QUEUE_MODE__&subscriptionFrom=now").sub_mode, "all");
    api.store.pops.clear();
    EXPECT_THAT(refusal("subscriptionFrom=yesterday"), HasSubstr("subscriptionFrom"));
}

// K29: 0 and less do not wait; more than the cap is the cap; the default is the settings'.
TEST_F(PopParameters, K29TimeoutsAreCappedAndNonPositiveOnesAnswerAtOnce) {
    for (const char* query : {"?wait=true&timeout=0", "?wait=true&timeout=-1"}) {
        EXPECT_EQ(api.ask("GET", std::string("/api/v1/pop/queue/q") + query).status, 204);
    }
    const struct {
        const char* query;
        milliseconds deadline;
    } waits[] = {{"?wait=true&timeout=1000", milliseconds{1'000}},
                 {"?wait=true", milliseconds{30'000}},
                 {"?wait=true&timeout=1000000000", milliseconds{60'000}}};
    for (const auto& wait : waits) {
        const auto exchange = api.send("GET", std::string("/api/v1/pop/queue/q") + wait.query);
        const auto run_until = [&](milliseconds passed) {
            api.workers.run_all();
            for (auto next = api.ticker.next(); next && *next <= api.clock.now() + passed;
                 next = api.ticker.next()) {
                const auto step = *next - api.clock.now();
                passed -= std::chrono::ceil<milliseconds>(step);
                api.ticker.advance(std::max(step, Nanoseconds{0}));
                api.workers.run_all();
            }
            api.ticker.advance(std::max(passed, milliseconds{0}));
            api.workers.run_all();
        };
        run_until(wait.deadline - milliseconds{1});
        EXPECT_EQ(exchange->replies, 0u) << wait.query;
        run_until(milliseconds{1});
        ASSERT_EQ(exchange->replies, 1u) << wait.query;
        EXPECT_EQ(exchange->answer->status, 204);
    }
}

TEST_F(PopParameters, ATimeoutOfZeroIsNoWaitAtAll) {
    // Only a pop that does not wait tells its client that the claim failed.
    api.store.broken = Error{Errc::timeout, "too slow", {}};
    const auto reply = api.ask("GET", "/api/v1/pop/queue/q?wait=true&timeout=0");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pop failed");
}

} // namespace
} // namespace queen::test
