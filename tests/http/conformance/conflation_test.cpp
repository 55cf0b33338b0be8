// Conflating groups, and what a pop leaves to the broker: `conflation` and `autopilot`.
#include "base/text.hpp"
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class ConflationContract : public ConformanceTest {
protected:
    static inline const std::string kView = "conflation=true&consumerGroup=view&batch=10";
    static std::vector<std::string> data_of(const std::vector<Delivery>& messages) {
        std::vector<std::string> all;
        for (const auto& message : messages) {
            all.push_back(message.data);
        }
        return all;
    }
    /// An empty answer of a conflating pop, at every broker.
    void expect_nothing(const std::string& query = kView) {
        for (std::size_t i = 0; i < brokers(); ++i) {
            const auto answer = call_at(i, "GET", pop_path(queue(), query));
            EXPECT_EQ(answer.status(), 200) << testing::PrintToString(answer);
            EXPECT_EQ(answer.at("conflation"), "true");
            EXPECT_EQ(answer.at("messages"), "[0]");
        }
    }
};

TEST_F(ConflationContract, AnEmptyAnswerHasABody) {
    expect_nothing();
    const auto waited = get(pop_path(queue(), kView + "&wait=true&timeout=1"));
    EXPECT_EQ(waited.status(), 200);
    EXPECT_EQ(waited.at("conflation"), "true");
}

TEST_F(ConflationContract, TheNewestOfEachPartitionCompletesTheRest) {
    push(queue(), "a", {"1", "2", "3"});
    push(queue(), "b", {"4"});
    const auto messages = take(queue(), kView);
    EXPECT_THAT(data_of(messages), UnorderedElementsAre("3", "4"));
    const auto depth = get("/api/v1/resources/queues/" + queue() + "/depth?group=view");
    EXPECT_EQ(depth.at("conflation"), "true");
    for (const auto& message : messages) {
        const auto answer = ack(message);
        EXPECT_EQ(answer.at("0.success"), "true") << testing::PrintToString(answer);
        if (message.data == "3") {
            EXPECT_EQ(answer.at("0.conflated"), "2");
        } else {
            EXPECT_THAT(answer.at("0.conflated"), AnyOf("0", "missing"));
        }
        EXPECT_EQ(answer.at("0.leaseReleased"), "true");
    }
    expect_nothing();
    push(queue(), "a", {"5", "6"}, {"five", "six"});
    EXPECT_THAT(data_of(take(queue(), kView)), ElementsAre("6"));
}

TEST_F(ConflationContract, AnotherGroupReadsEverything) {
    push(queue(), "a", {"1", "2", "3"});
    take(queue(), kView);
    EXPECT_THAT(data_of(take(queue(), "consumerGroup=plain&batch=10")), ElementsAre("1", "2", "3"));
}

TEST_F(ConflationContract, AFailureBringsTheThenNewest) {
    push(queue(), "a", {"1", "2"});
    const auto messages = take(queue(), kView);
    push(queue(), "a", {"3"}, {"three"});
    EXPECT_EQ(ack(messages.at(0), "failed").at("0.success"), "true");
    EXPECT_THAT(data_of(take(queue(), kView)), ElementsAre("3"));
}

TEST_F(ConflationContract, TheGroupsPolicyWinsAndAConflictIsTold) {
    push(queue(), "a", {"1", "2"});
    take(queue(), "consumerGroup=plain&batch=1");
    const auto conflict = get(pop_path(queue("-none"), "consumerGroup=plain&conflation=true"));
    EXPECT_EQ(conflict.at("conflation"), "true") << "another queue, another registration";
    push(queue(), "b", {"3", "4"}, {"b3", "b4"});
    const auto answer = get(
        pop_path(queue(), "consumerGroup=plain&conflation=true&batch=10&wait=true&timeout=5000"));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("conflationConflict"), "true") << testing::PrintToString(answer);
    EXPECT_THAT(answer.column("messages", "data"), ElementsAre("3", "4")) << "as registered";
    push(queue(), "c", {"5", "6"}, {"c5", "c6"});
    take(queue(), kView);
    push(queue(), "c", {"7"}, {"c7"});
    const auto plain = get(pop_path(queue(), "consumerGroup=view&conflation=false&batch=10"));
    EXPECT_EQ(plain.at("conflationConflict"), "true") << testing::PrintToString(plain);
}

TEST_F(ConflationContract, ItNeedsAGroupAndALease) {
    const auto nobody = get(pop_path(queue(), "conflation=true"));
    EXPECT_EQ(nobody.status(), 400);
    EXPECT_EQ(nobody.at("success"), "false");
    EXPECT_THAT(nobody.at("error"), StartsWith("conflation requires consumerGroup"));
    EXPECT_EQ(nobody.at("messages"), "[0]");
    const auto acked = get(pop_path(queue(), "conflation=true&consumerGroup=g&autoAck=true"));
    EXPECT_EQ(acked.status(), 400);
    EXPECT_THAT(acked.at("error"), StartsWith("conflation cannot be combined with autoAck"));
}

TEST_F(ConflationContract, TheListOfGroupsShowsIt) {
    push(queue(), "a", {"1"});
    take(queue(), kView);
    const auto list = get("/api/v1/consumer-groups");
    bool seen = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string at = std::to_string(i) + ".";
        if (list.at(at + "queueName") == queue() && list.at(at + "name") == "view") {
            seen = true;
            EXPECT_EQ(list.at(at + "conflation"), "true");
        }
    }
    EXPECT_TRUE(seen);
}

class AutopilotContract : public ConformanceTest {};

TEST_F(AutopilotContract, TheBrokerPicksWhatIsAbsentAndSaysSo) {
    push(queue(), "a", {"1", "2"});
    push(queue(), "b", {"3"});
    const auto both =
        get(pop_path(queue(), "autopilot=true&consumerGroup=g&wait=true&timeout=5000"));
    ASSERT_EQ(both.status(), 200) << testing::PrintToString(both);
    EXPECT_THAT(both.keys("autopilot"), IsSupersetOf({"batch", "partitions"}));
    EXPECT_GE(std::stoi(both.at("autopilot.batch")), 1);
    EXPECT_GE(std::stoi(both.at("autopilot.partitions")), 1);
    EXPECT_LE(both.size("messages"),
              static_cast<std::size_t>(std::stoi(both.at("autopilot.batch"))));
    const auto one =
        get(pop_path(queue(), "autopilot=true&batch=1&consumerGroup=h&wait=true&timeout=5000"));
    EXPECT_EQ(one.at("autopilot.batch"), "1") << "what was given stays";
    EXPECT_EQ(one.size("messages"), 1u);
    const auto off =
        get(pop_path(queue(), "autopilot=false&consumerGroup=i&wait=true&timeout=5000"));
    EXPECT_EQ(off.at("autopilot"), "missing");
}

TEST_F(AutopilotContract, AnEmptyPopStaysEmpty) {
    const auto answer = get(pop_path(queue(), "autopilot=true"));
    EXPECT_EQ(answer.status(), 204);
}

} // namespace
} // namespace queen::test
