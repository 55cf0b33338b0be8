// POST /api/v1/lease/:leaseId/extend.
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

constexpr const char* kMicroseconds =
    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z";

class LeaseContract : public ConformanceTest {
protected:
    static std::string path(const std::string& lease) {
        return "/api/v1/lease/" + lease + "/extend";
    }
    std::vector<Delivery> lease(const std::string& query = "batch=10&partitions=10") {
        push(queue(), "a", {"1"});
        push(queue(), "b", {"1"});
        return take(queue(), query);
    }
};

TEST_F(LeaseContract, ExtendsEveryPartitionOfTheLease) {
    const auto messages = lease();
    ASSERT_THAT(messages, SizeIs(2));
    const auto answer = post(path(messages[0].lease_id), R"({"seconds":600})");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_THAT(answer.keys(), ElementsAre("expiresAt", "leaseId", "lease_expires_at",
                                           "newExpiresAt", "renewed", "success"));
    EXPECT_EQ(answer.at("leaseId"), messages[0].lease_id);
    EXPECT_EQ(answer.at("success"), "true");
    EXPECT_EQ(answer.at("renewed"), "2");
    EXPECT_THAT(answer.at("newExpiresAt"), MatchesRegex(kMicroseconds));
    EXPECT_EQ(answer.at("expiresAt"), answer.at("newExpiresAt"));
    EXPECT_EQ(answer.at("lease_expires_at"), answer.at("newExpiresAt"));
}

TEST_F(LeaseContract, ABodyIsOptionalAndASmallOneShortensNothing) {
    const auto messages = lease();
    const auto far = post(path(messages[0].lease_id), R"({"seconds":3600})");
    for (const std::string body : {"", "{}", R"({"seconds":1})", R"({"seconds":null})"}) {
        const auto answer = post(path(messages[0].lease_id), body);
        EXPECT_EQ(answer.status(), 200) << body;
        EXPECT_EQ(answer.at("success"), "true") << body;
        EXPECT_EQ(answer.at("newExpiresAt"), far.at("newExpiresAt")) << body;
    }
}

TEST_F(LeaseContract, AnUnknownLeaseIsAnOutcomeAndNoError) {
    const auto answer = post(path("0199f0d1-0000-7000-8000-000000000777"), "{}");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.at("success"), "false");
    EXPECT_EQ(answer.at("renewed"), "0");
    EXPECT_EQ(answer.at("newExpiresAt"), "null");
    EXPECT_EQ(answer.at("expiresAt"), "null");
    EXPECT_EQ(answer.at("lease_expires_at"), "null");
}

TEST_F(LeaseContract, ALeaseThatWasSettledIsGone) {
    push(queue(), "a", {"1"});
    const auto messages = take(queue());
    EXPECT_THAT(ack(messages.at(0)).column("", "leaseReleased"), ElementsAre("true"));
    const auto answer = post(path(messages[0].lease_id), "{}");
    EXPECT_EQ(answer.at("success"), "false");
}

} // namespace
} // namespace queen::test
