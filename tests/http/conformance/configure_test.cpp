// POST /api/v1/configure.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

#include <map>

namespace queen::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

class ConfigureContract : public ConformanceTest {
protected:
    Answer configure(const std::string& members) {
        return post("/api/v1/configure", R"({"queue":)" + json::quoted(queue()) +
                                             (members.empty() ? "" : "," + members) + "}");
    }
    std::string option(const std::string& name) {
        return get("/api/v1/resources/queues/" + queue()).at("options." + name);
    }
};

/// The nineteen, and what they are when nobody says otherwise.
const std::map<std::string, std::string> kDefaults{{"priority", "0"},
                                                   {"leaseTime", "300"},
                                                   {"retryLimit", "3"},
                                                   {"retryDelay", "1000"},
                                                   {"maxSize", "0"},
                                                   {"ttl", "3600"},
                                                   {"deadLetterQueue", "true"},
                                                   {"dlqAfterMaxRetries", "true"},
                                                   {"delayedProcessing", "0"},
                                                   {"windowBuffer", "0"},
                                                   {"retentionSeconds", "0"},
                                                   {"completedRetentionSeconds", "0"},
                                                   {"retentionEnabled", "false"},
                                                   {"encryptionEnabled", "false"},
                                                   {"maxWaitTimeSeconds", "0"},
                                                   {"minPopWaitTime", "0"},
                                                   {"dedupWindowSeconds", "3600"},
                                                   {"retentionSinkHold", ""},
                                                   {"retentionSinkHoldMaxSeconds", "604800"}};

TEST_F(ConfigureContract, CreatesAQueueWithTheDefaultsAndEchoesEveryOption) {
    const auto answer = configure("");
    ASSERT_EQ(answer.status(), 200) << testing::PrintToString(answer);
    EXPECT_THAT(answer.keys(), IsSupersetOf({"configured", "queueId", "partitionId", "queue",
                                             "namespace", "task", "storage", "options"}));
    EXPECT_EQ(answer.at("configured"), "true");
    EXPECT_EQ(answer.at("partitionId"), "null");
    EXPECT_EQ(answer.at("queue"), queue());
    EXPECT_EQ(answer.at("namespace"), "");
    EXPECT_EQ(answer.at("task"), "");
    EXPECT_EQ(answer.at("storage"), "segments");
    for (const auto& [name, value] : kDefaults) {
        EXPECT_EQ(answer.at("options." + name), value) << name;
    }
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue()).size("partitions"), 0u);
}

TEST_F(ConfigureContract, OptionsMayStandAtTheTopLevel) {
    EXPECT_EQ(configure(R"("leaseTime":7,"namespace":"n")").at("options.leaseTime"), "7");
    EXPECT_EQ(configure(R"("namespace":null,"task":null,"options":{"leaseTime":8})").status(), 200);
    EXPECT_EQ(configure(R"("options":{"namespace":"inside","leaseTime":8})").at("namespace"),
              "inside");
}

// K36: what merging keeps, what null restores, what replacing resets.
TEST_F(ConfigureContract, K36_MergeKeepsReplaceResets) {
    configure(
        R"("namespace":"n","task":"t","options":{"leaseTime":11,"retryLimit":12,"retryDelay":13,)"
        R"("maxSize":14,"ttl":15,"delayedProcessing":1,"windowBuffer":2,"dedupWindowSeconds":17})");
    const auto merged = configure(R"("mode":"merge","options":{"retryLimit":9})");
    EXPECT_EQ(merged.at("options.retryLimit"), "9");
    EXPECT_EQ(merged.at("options.leaseTime"), "11");
    EXPECT_EQ(merged.at("options.retryDelay"), "13");
    EXPECT_EQ(merged.at("options.maxSize"), "14");
    EXPECT_EQ(merged.at("options.ttl"), "15");
    EXPECT_EQ(merged.at("options.windowBuffer"), "2");
    EXPECT_EQ(merged.at("options.dedupWindowSeconds"), "17");
    EXPECT_EQ(merged.at("namespace"), "n");
    const auto restored = configure(R"("mode":"merge","options":{"leaseTime":null})");
    EXPECT_EQ(restored.at("options.leaseTime"), "300");
    EXPECT_EQ(restored.at("options.retryLimit"), "9");
    const auto replaced =
        configure(R"("mode":"replace","options":{"completedRetentionSeconds":7})");
    EXPECT_EQ(replaced.at("options.completedRetentionSeconds"), "7");
    EXPECT_EQ(replaced.at("options.retentionEnabled"), "false");
    EXPECT_EQ(replaced.at("options.retryLimit"), "3");
    EXPECT_EQ(replaced.at("namespace"), "");
    EXPECT_EQ(option("completedRetentionSeconds"), "7");
    EXPECT_EQ(configure(R"("options":{"leaseTime":5})").at("options.completedRetentionSeconds"),
              "0")
        << "without a mode it replaces";
}

TEST_F(ConfigureContract, TwoOptionsAreClampedAndTheOthersRefused) {
    EXPECT_EQ(configure(R"("options":{"minPopWaitTime":99999999})").at("options.minPopWaitTime"),
              "60000");
    EXPECT_EQ(configure(R"("options":{"minPopWaitTime":-5})").at("options.minPopWaitTime"), "0");
    EXPECT_EQ(configure(R"("options":{"dedupWindowSeconds":-5})").at("options.dedupWindowSeconds"),
              "0");
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"leaseTime", "0"},
             {"leaseTime", "-1"},
             {"leaseTime", "1.5"},
             {"leaseTime", "\"7\""},
             {"leaseTime", "99999999999"},
             {"retryLimit", "-1"},
             {"delayedProcessing", "-1"},
             {"windowBuffer", "[]"},
             {"deadLetterQueue", "1"},
             {"retentionEnabled", "\"true\""},
             {"retentionSinkHold", "\"a b\""},
             {"retentionSinkHold", "\"" + std::string(65, 'x') + "\""},
             {"retentionSinkHoldMaxSeconds", "59"},
             {"retentionSinkHoldMaxSeconds", "31536001"},
             {"leasetime", "5"},
             {"retry_limit", "5"}}) {
        const auto answer = configure(R"("options":{")" + name + "\":" + value + "}");
        EXPECT_EQ(answer.status(), 400) << name << "=" << value;
        EXPECT_THAT(answer.at("error"), HasSubstr(name));
        EXPECT_EQ(answer.at("invalid"), name);
    }
}

TEST_F(ConfigureContract, WhatIsNoConfigurationIsRefused) {
    const auto none = post("/api/v1/configure", "{}");
    EXPECT_EQ(none.status(), 400);
    EXPECT_EQ(none.at("error"), "queue is required");
    EXPECT_EQ(post("/api/v1/configure", R"({"queue":""})").status(), 400);
    const auto mode = configure(R"("mode":"append")");
    EXPECT_EQ(mode.status(), 400);
    EXPECT_THAT(mode.at("error"),
                MatchesRegex("mode must be \"merge\" or \"replace\", got .*append.*"));
    for (const std::string body : {"", "[]", "5", R"({"queue":5})"}) {
        EXPECT_EQ(post("/api/v1/configure", body).status(), 400) << body;
    }
    EXPECT_EQ(configure(R"("options":5)").status(), 400);
    EXPECT_EQ(get("/api/v1/resources/queues/" + queue()).status(), 404) << "nothing was created";
}

TEST_F(ConfigureContract, ALeaseTimeHoldsFromTheNextPopAtEveryBroker) {
    push(queue(), "p", {"1"});
    EXPECT_EQ(take(queue(), "consumerGroup=g&leaseSeconds=1").at(0).attempt, "1");
    configure(R"("options":{"leaseTime":1})");
    EXPECT_EQ(take(queue(), "consumerGroup=g").at(0).attempt, "2");
    EXPECT_EQ(take(queue(), "consumerGroup=g").at(0).attempt, "3")
        << "after a second, not a minute";
}

TEST_F(ConfigureContract, ADedupWindowHoldsFromTheNextPushAtEveryBroker) {
    push(queue(), "p", {"1"}, {"tx"});
    const std::string again = R"({"items":[{"queue":")" + queue() +
                              R"(","partition":"p","payload":1,"transactionId":"tx"}]})";
    for (std::size_t i = 0; i < brokers(); ++i) {
        EXPECT_EQ(call_at(i, "POST", "/api/v1/push", again).at("0.status"), "duplicate");
    }
    configure(R"("options":{"dedupWindowSeconds":0})");
    for (std::size_t i = 0; i < brokers(); ++i) {
        EXPECT_EQ(call_at(i, "POST", "/api/v1/push", again).at("0.status"), "queued");
    }
    configure(R"("options":{"dedupWindowSeconds":60})");
    for (std::size_t i = 0; i < brokers(); ++i) {
        EXPECT_EQ(call_at(i, "POST", "/api/v1/push", again).at("0.status"), "duplicate");
    }
}

TEST_F(ConfigureContract, ADelayWithholdsUntilItIsOver) {
    configure(R"("options":{"delayedProcessing":2})");
    push(queue(), "p", {"1"});
    EXPECT_EQ(get(pop_path(queue(), "consumerGroup=g")).status(), 204);
    EXPECT_THAT(take(queue(), "consumerGroup=g"), SizeIs(1));
}

TEST_F(ConfigureContract, AWindowWithholdsAPartitionUntilItIsQuiet) {
    configure(R"("options":{"windowBuffer":1})");
    push(queue(), "p", {"1"}, {"a"});
    push(queue(), "p", {"2"}, {"b"});
    EXPECT_EQ(get(pop_path(queue(), "consumerGroup=g&batch=10")).status(), 204);
    EXPECT_THAT(take(queue(), "consumerGroup=g&batch=10"), SizeIs(2)) << "both at once";
}

TEST_F(ConfigureContract, OptionsThatAreOnlyStoredAreTold) {
    const auto answer = configure(R"("options":{"maxSize":5,"priority":7,"leaseTime":5})");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.column("storedOnly", ""),
                testing::UnorderedElementsAre("maxSize", "priority"));
    EXPECT_EQ(configure(R"("options":{"leaseTime":5})").at("storedOnly"), "missing");
}

} // namespace
} // namespace queen::test
