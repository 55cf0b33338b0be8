#include "base/text.hpp"
#include "http/routes/api.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;

const std::string kTarget = "/api/v1/lease/" + std::string(kLeaseId) + "/extend";

TEST(LeaseRoute, AnswersTheEarliestNewEndThreeTimes) {
    Api api;
    api.store.renewal = {2, WallTime(std::chrono::microseconds(1'800'000'000'000'001))};
    const auto reply = api.ask("POST", kTarget, R"({"seconds":90})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"leaseId":"0199f0d1-0000-7000-8000-000000000777","success":true,)"
                          R"("renewed":2,"newExpiresAt":"2027-01-15T08:00:00.000001Z",)"
                          R"("expiresAt":"2027-01-15T08:00:00.000001Z",)"
                          R"("lease_expires_at":"2027-01-15T08:00:00.000001Z"})");
    ASSERT_EQ(api.store.renewed.size(), 1u);
    EXPECT_EQ(api.store.renewed[0].first, kLeaseId);
    EXPECT_EQ(api.store.renewed[0].second, std::chrono::seconds(90));
}

TEST(LeaseRoute, AnUnknownLeaseIs200WithoutSuccess) {
    Api api;
    const auto reply = api.ask("POST", kTarget, "{}");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(at(reply.body, "success"), "false");
    EXPECT_EQ(at(reply.body, "renewed"), "0");
    EXPECT_EQ(at(reply.body, "expiresAt"), "null");
}

TEST(LeaseRoute, WhatIsNoLeaseIdIsUnknownWithoutAskingTheStore) {
    Api api;
    for (const char* id : {"x", "", "%00", "%E6%97%A5", "0199f0d1"}) {
        const auto reply = api.ask("POST", std::string("/api/v1/lease/") + id + "/extend");
        EXPECT_EQ(reply.status, 200) << id;
        EXPECT_EQ(at(reply.body, "success"), "false");
    }
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(LeaseRoute, WithoutSecondsItIsAMinute) {
    const struct {
        const char* body;
        int seconds;
    } bodies[] = {{"", 60},
                  {"{}", 60},
                  {"not JSON", 60},
                  {"[]", 60},
                  {R"({"seconds":null})", 60},
                  {R"({"seconds":0})", 1},
                  {R"({"seconds":-7})", 1},
                  {R"({"seconds":604800})", 604800}};
    for (const auto& asked : bodies) {
        Api api;
        EXPECT_EQ(api.ask("POST", kTarget, asked.body).status, 200) << asked.body;
        ASSERT_EQ(api.store.renewed.size(), 1u);
        EXPECT_EQ(api.store.renewed[0].second, std::chrono::seconds(asked.seconds)) << asked.body;
    }
}

TEST(LeaseRoute, SecondsThatCannotBeMeantAreRefused) {
    for (const char* body : {R"({"seconds":"90"})", R"({"seconds":1.5})", R"({"seconds":604801})",
                             R"({"seconds":1e30})", R"({"seconds":[]})"}) {
        Api api;
        const auto reply = api.ask("POST", kTarget, body);
        EXPECT_EQ(reply.status, 400) << body;
        EXPECT_EQ(at(reply.body, "error"), "seconds must be a whole number from 1 to 604800");
        EXPECT_EQ(api.store.calls, 0u);
    }
}

TEST(LeaseRoute, AFailureIs500) {
    Api api;
    api.store.broken = Error{Errc::store_failed, "boom", {}};
    auto reply = api.ask("POST", kTarget);
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "renew failed: boom");
    api.store.broken = Error{Errc::unavailable, "no session", {}};
    reply = api.ask("POST", kTarget);
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "pool");
}

} // namespace
} // namespace queen::test
