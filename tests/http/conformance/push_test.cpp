// POST /api/v1/push.
#include "http/conformance/conformance.hpp"

namespace queen::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class PushContract : public ConformanceTest {};

TEST_F(PushContract, AnswersAnArrayInInputOrder) {
    const auto answer = post("/api/v1/push", R"({"items":[
        {"queue":")" + queue() + R"(","partition":"a","payload":1,"transactionId":"x"},
        {"queue":")" + queue() + R"(","payload":null}]})");
    EXPECT_EQ(answer.status(), 201);
    EXPECT_EQ(answer.response().header("Content-Type"), "application/json");
    EXPECT_THAT(answer.column("", "index"), ElementsAre("0", "1"));
    EXPECT_THAT(answer.column("", "status"), ElementsAre("queued", "queued"));
    EXPECT_THAT(answer.column("", "queueName"), ElementsAre(queue(), queue()));
    EXPECT_THAT(answer.column("", "offset"), ElementsAre("0", "0"));
    EXPECT_EQ(answer.at("0.transaction_id"), "x");
    EXPECT_EQ(answer.at("1.transaction_id"), answer.at("1.message_id"));
    EXPECT_THAT(answer.at("0.message_id"), MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-.*"));
}

} // namespace
} // namespace queen::test
