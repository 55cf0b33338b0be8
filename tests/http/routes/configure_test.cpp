#include "http/configure_reader.hpp"
#include "http/routes/api.hpp"
#include "model/queue_options.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ConfigureRoute : public testing::Test {
protected:
    /// The options that reached the store.
    std::string options(const std::string& body) {
        const auto reply = api.ask("POST", "/api/v1/configure", body);
        EXPECT_EQ(reply.status, 200) << body << ": " << reply.body;
        return api.store.configured.empty() ? "" : api.store.configured.back().options;
    }
    http::Reply refused(const std::string& body, int status = 400) {
        const std::size_t before = api.store.calls;
        auto reply = api.ask("POST", "/api/v1/configure", body);
        EXPECT_EQ(reply.status, status) << body << ": " << reply.body;
        EXPECT_EQ(api.store.calls, before) << body;
        return reply;
    }
    std::string error(const std::string& body) { return at(refused(body).body, "error"); }

    Api api;
};

TEST_F(ConfigureRoute, WhatTheSdkSendsIsAReplace) {
    EXPECT_EQ(
        options(
            R"({"queue":"q","namespace":null,"task":null,"options":{"leaseTime":300,)"
            R"("retryLimit":3,"priority":0,"delayedProcessing":0,"windowBuffer":0,"maxSize":0,)"
            R"("retentionSeconds":0,"completedRetentionSeconds":0,"encryptionEnabled":false}})"),
        R"({"mode":"replace","priority":0,"leaseTime":300,"retryLimit":3,"maxSize":0,)"
        R"("delayedProcessing":0,"windowBuffer":0,"retentionSeconds":0,)"
        R"("completedRetentionSeconds":0,"encryptionEnabled":false})");
    EXPECT_EQ(api.store.configured.at(0).queue, "q");
}

TEST_F(ConfigureRoute, TheStoresAnswerIsPassedOnUnchanged) {
    api.store.configure_answer = R"({"configured":true, "options":{"leaseTime":5}})";
    EXPECT_EQ(api.ask("POST", "/api/v1/configure", R"({"queue":"q"})").body,
              api.store.configure_answer);
    api.store.configure_answer = R"({"error":"no","invalid":"leaseTime"})";
    EXPECT_EQ(api.ask("POST", "/api/v1/configure", R"({"queue":"q"})").status, 400);
}

TEST_F(ConfigureRoute, OptionsMayStandAtTheTopWhenThereIsNoOptions) {
    EXPECT_EQ(options(R"({"queue":"q","leaseTime":9,"namespace":"n"})"),
              R"({"mode":"replace","namespace":"n","leaseTime":9})");
    EXPECT_EQ(options(R"({"queue":"q","leaseTime":9,"options":null})"),
              R"({"mode":"replace","leaseTime":9})");
    EXPECT_EQ(at(refused(R"({"queue":"q","leaseTime":9,"options":{}})").body, "invalid"),
              "leaseTime");
}

// K36: with merge a null is "back to the default" and must reach the store.
TEST_F(ConfigureRoute, K36NullsMatterWithMergeOnly) {
    EXPECT_EQ(options(R"({"queue":"q","mode":"merge","task":null,"options":{"leaseTime":null}})"),
              R"({"mode":"merge","task":null,"leaseTime":null})");
    EXPECT_EQ(options(R"({"queue":"q","mode":"replace","task":null,"options":{"leaseTime":null}})"),
              R"({"mode":"replace"})");
    EXPECT_EQ(options(R"({"queue":"q","mode":null,"options":{"retryLimit":9}})"),
              R"({"mode":"replace","retryLimit":9})");
}

TEST_F(ConfigureRoute, TheSettingsTurnTheDefaultModeRound) {
    api.settings.configure_merges = true;
    EXPECT_EQ(options(R"({"queue":"q"})"), R"({"mode":"merge"})");
    EXPECT_EQ(options(R"({"queue":"q","mode":"replace"})"), R"({"mode":"replace"})");
}

TEST_F(ConfigureRoute, LabelsStandAtTheTopOrAmongTheOptions) {
    EXPECT_EQ(options(R"({"queue":"q","namespace":null,"options":{"namespace":"n","task":"t"}})"),
              R"({"mode":"replace","namespace":"n","task":"t"})");
    EXPECT_EQ(options(R"({"queue":"q","namespace":"top","task":"","options":{"namespace":"n"}})"),
              R"({"mode":"replace","namespace":"top","task":""})");
    EXPECT_EQ(at(refused(R"({"queue":"q","task":7})").body, "error"),
              "task must be a string, got \"7\"");
}

// K37: a misspelt option is reported, with the names there are.
TEST_F(ConfigureRoute, K37UnknownNamesAreRefusedAndTheKnownListed) {
    for (const char* body :
         {R"({"queue":"q","options":{"leasetime":5}})",
          R"({"queue":"q","options":{"mode":"merge"}})", R"({"queue":"q","retry_limit":5})",
          R"({"queue":"q","options":{},"retry_limit":5})",
          R"({"queue":"q","options":{"maxQueueSize":5}})"}) {
        const auto reply = refused(body);
        EXPECT_THAT(at(reply.body, "error"), StartsWith("unknown ")) << body;
        for (const QueueOption& option : queue_options()) {
            EXPECT_THAT(at(reply.body, "error"), HasSubstr(std::string(option.name)));
        }
        EXPECT_NE(at(reply.body, "invalid"), "<missing>");
    }
}

TEST_F(ConfigureRoute, EveryOptionIsTypedAndBounded) {
    for (const QueueOption& option : queue_options()) {
        const std::string name(option.name);
        const auto body = [&](const std::string& value) {
            return R"({"queue":"q","options":{")" + name + "\":" + value + "}}";
        };
        EXPECT_EQ(at(refused(body("[1]")).body, "invalid"), name);
        EXPECT_EQ(at(refused(body("{}")).body, "invalid"), name);
        EXPECT_EQ(at(refused(body("1.5")).body, "invalid"), name);
        switch (option.type) {
        case QueueOption::Type::integer:
            EXPECT_THAT(error(body("\"5\"")), StartsWith(name + " must be an integer from"));
            EXPECT_EQ(at(refused(body("true")).body, "invalid"), name);
            EXPECT_EQ(at(refused(body("99999999999999999999")).body, "invalid"), name);
            if (!option.clamps) {
                EXPECT_EQ(at(refused(body(std::to_string(option.max + 1))).body, "invalid"), name);
                EXPECT_EQ(at(refused(body(std::to_string(option.min - 1))).body, "invalid"), name);
            }
            break;
        case QueueOption::Type::boolean:
            EXPECT_EQ(error(body("\"true\"")), name + " must be a boolean, got \"true\"");
            EXPECT_EQ(at(refused(body("1")).body, "invalid"), name);
            break;
        case QueueOption::Type::text:
            EXPECT_EQ(at(refused(body("7")).body, "invalid"), name);
            EXPECT_EQ(at(refused(body("\"a b\"")).body, "invalid"), name);
            EXPECT_EQ(at(refused(body("\"" + std::string(65, 'x') + "\"")).body, "invalid"), name);
            break;
        }
    }
    for (const QueueOption& option : queue_options()) {
        if (option.type == QueueOption::Type::integer) {
            const std::string bound = std::to_string(option.max);
            EXPECT_EQ(options(R"({"queue":"q","options":{")" + std::string(option.name) +
                              "\":" + bound + "}}"),
                      R"({"mode":"replace",")" + std::string(option.name) + "\":" + bound + "}");
        }
    }
    EXPECT_EQ(options(R"({"queue":"q","retentionSinkHold":"a.B_9-"})"),
              R"({"mode":"replace","retentionSinkHold":"a.B_9-"})");
}

TEST_F(ConfigureRoute, TwoOptionsAreClampedByContract) {
    EXPECT_EQ(options(R"({"queue":"q","minPopWaitTime":-1,"dedupWindowSeconds":-9})"),
              R"({"mode":"replace","minPopWaitTime":0,"dedupWindowSeconds":0})");
    EXPECT_EQ(options(R"({"queue":"q","minPopWaitTime":60001})"),
              R"({"mode":"replace","minPopWaitTime":60000})");
}

TEST_F(ConfigureRoute, EncryptionWithoutAKeyIsRefused) {
    EXPECT_THAT(error(R"({"queue":"q","encryptionEnabled":true})"), HasSubstr("encryption key"));
}

TEST_F(ConfigureRoute, WhatIsNotAConfigurationIsRefused) {
    EXPECT_THAT(error(""), StartsWith("bad body: "));
    EXPECT_EQ(error("[]"), "bad body: the body is not an object");
    EXPECT_EQ(at(refused("").body, "code"), "bad_body");
    EXPECT_EQ(at(refused("[]").body, "code"), "bad_body");
    EXPECT_EQ(at(refused("{}").body, "code"), "bad_request");
    EXPECT_EQ(error("{}"), "queue is required");
    EXPECT_EQ(error(R"({"queue":null})"), "queue is required");
    EXPECT_EQ(error(R"({"queue":7})"), "queue must be a string");
    EXPECT_EQ(error(R"({"queue":"q","options":[]})"), "options must be an object, got an array");
    EXPECT_EQ(error(R"({"queue":"q","options":"x"})"), "options must be an object, got x");
    EXPECT_EQ(error(R"({"queue":"q","mode":"patch"})"),
              R"(mode must be "merge" or "replace", got patch)");
    EXPECT_EQ(error(R"({"queue":"q","mode":1})"), R"(mode must be "merge" or "replace", got 1)");
    const auto large =
        refused(R"({"queue":")" + std::string(http::kMaxConfigureBodyBytes, 'x') + "\"}", 413);
    EXPECT_EQ(at(large.body, "code"), "too_large");
}

TEST_F(ConfigureRoute, AFailureIs500WithTheContractsPrefix) {
    api.store.broken = Error{Errc::store_failed, "boom", {}};
    const auto reply = api.ask("POST", "/api/v1/configure", R"({"queue":"q"})");
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(at(reply.body, "error"), "configure failed: boom");
}

} // namespace
} // namespace queen::test
