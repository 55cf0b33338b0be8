#include "command_line.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

namespace queen::ctl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwo = R"({"success":true,"queue":"q","partition":"p","partitionId":"id-1",
"leaseId":"lease-1","consumerGroup":"g","messages":[
{"id":"m1","transactionId":"t1","data":{"n":9007199254740993},"createdAt":"2026-01-01T00:00:00.000001Z",
 "partitionId":"id-1","partition":"日本","deliveryAttempt":1,"offset":12},
{"id":"m2","transactionId":"t2","data":"a\u001b[31mb","createdAt":"2026-01-01T00:00:00.000002Z",
 "partitionId":"id-2","partition":"p2","deliveryAttempt":2,"offset":3}],"partitionsClaimed":2})";

Outcome pop_from(const ScriptedServer& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"pop", "--url", server.url()});
    return command_line(words);
}

TEST(PopCommand, PrintsATableThatATerminalCanBeTrustedWith) {
    ScriptedServer server(in_order({{200, kTwo, {}, false}}));
    const Outcome outcome = pop_from(server, {"orders"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(
        outcome.out,
        "lease lease-1\n"
        "PARTITION ID  PARTITION  OFFSET  TRY  CREATED                      TRANSACTION  DATA\n"
        "id-1          日本           12    1  2026-01-01T00:00:00.000001Z  t1           "
        "{\"n\":9007199254740993}\n"
        "id-2          p2              3    2  2026-01-01T00:00:00.000002Z  t2           "
        "\"a\\u001b[31mb\"\n");
    EXPECT_EQ(server.seen().at(0).method, "GET");
    EXPECT_EQ(server.seen().at(0).target, "/api/v1/pop/queue/orders");
}

TEST(PopCommand, EveryOptionBecomesItsParameterAndNamesAreEncoded) {
    ScriptedServer server(in_order({{204, "", {}, false}}));
    EXPECT_EQ(
        pop_from(server, {"a/b c", "--partition", "p+1", "--group", "g&h", "--batch", "5",
                          "--partitions", "2", "--wait", "--timeout", "1500ms", "--auto-ack",
                          "--lease", "2m", "--mode", "new", "--from", "2026-01-01T00:00:00+01:00"})
            .exit,
        Exit::empty);
    EXPECT_EQ(
        server.seen().at(0).target,
        "/api/v1/pop/queue/a%2Fb%20c/partition/p%2B1?consumerGroup=g%26h&batch=5&partitions=2&"
        "subscriptionMode=new&subscriptionFrom=2026-01-01T00%3A00%3A00%2B01%3A00&autoAck=true&"
        "wait=true&timeout=1500&leaseSeconds=120");
    EXPECT_EQ(pop_from(server, {"--namespace", "shop", "--task", "pay"}).exit, Exit::empty);
    EXPECT_EQ(server.seen().at(1).target, "/api/v1/pop?namespace=shop&task=pay");
}

TEST(PopCommand, NothingThereIsExitFourInEitherForm) {
    ScriptedServer server(
        in_order({{204, "", {}, false}, {200, R"({"success":true,"messages":[]})", {}, false}}));
    for (int i = 0; i < 2; ++i) {
        const Outcome outcome = pop_from(server, {"q"});
        EXPECT_EQ(outcome.exit, Exit::empty);
        EXPECT_EQ(outcome.out + outcome.err, "");
    }
}

TEST(PopCommand, JsonIsWhatTheBrokerSaid) {
    ScriptedServer server(in_order({{200, kTwo, {}, false}}));
    const Outcome outcome = pop_from(server, {"q", "--json"});
    EXPECT_EQ(outcome.exit, Exit::ok);
    EXPECT_EQ(outcome.out, std::string(kTwo) + "\n");
}

TEST(PopCommand, LongPayloadsAreCutUnlessFull) {
    const std::string body = R"({"messages":[{"partitionId":"i","transactionId":"t","data":")" +
                             std::string(100, 'x') + R"("}]})";
    ScriptedServer server(in_order({{200, body, {}, false}}));
    EXPECT_THAT(pop_from(server, {"q"}).out, HasSubstr(std::string(58, 'x') + "…\n"));
    EXPECT_THAT(pop_from(server, {"q", "--full"}).out, HasSubstr(std::string(100, 'x') + "\"\n"));
}

TEST(PopCommand, AckSettlesWhatWasPrinted) {
    ScriptedServer server(in_order({{200, kTwo, {}, false},
                                    drop_connection(), // asked again: a second ack changes nothing
                                    {200, R"([{"success":true},{"success":true}])", {}, false}}));
    const Outcome outcome = pop_from(server, {"q", "--group", "g", "--ack"});
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[2].target, "/api/v1/ack/batch");
    EXPECT_EQ(
        seen[2].body,
        R"({"consumerGroup":"g","acknowledgments":[)"
        R"({"transactionId":"t1","partitionId":"id-1","leaseId":"lease-1","status":"completed"},)"
        R"({"transactionId":"t2","partitionId":"id-2","leaseId":"lease-1","status":"completed"}]})");
}

TEST(PopCommand, AnAckThatIsRefusedFails) {
    ScriptedServer server(
        in_order({{200, kTwo, {}, false},
                  {200,
                   R"([{"success":true},{"success":false,"error":"invalid or expired lease"}])",
                   {},
                   false}}));
    const Outcome outcome = pop_from(server, {"q", "--ack"});
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.err, "queenctl pop: settled 1 of 2: invalid or expired lease\n");
}

TEST(PopCommand, MessagesThatNobodyCouldReadAreNotSettled) {
    ScriptedServer server(in_order({{200, kTwo, {}, false}, {200, "[]", {}, false}}));
    std::istringstream in;
    std::ostream nowhere(nullptr); // every write fails, as to a full disk or a closed pipe
    std::ostringstream err;
    queen::test::ManualClock clock;
    Terminal terminal{in, nowhere, err, false, false, clock, [](auto) {}, {}};
    const std::vector<std::string> words{"pop", "--url", server.url(), "q", "--ack"};
    EXPECT_EQ(run(words, terminal), Exit::failed);
    EXPECT_THAT(err.str(), HasSubstr("could not be printed and are not settled"));
    EXPECT_EQ(server.seen().size(), 1u);
}

TEST(PopCommand, RefusalsAndStrangersAreToldApart) {
    ScriptedServer server(in_order({{400, R"({"error":"batch must be a number"})", {}, false},
                                    {200, "<html>", {}, false},
                                    drop_connection()}));
    const Outcome refused = pop_from(server, {"q"});
    EXPECT_EQ(refused.exit, Exit::failed);
    EXPECT_EQ(refused.err, "queenctl pop: the broker answered 400: batch must be a number\n");
    EXPECT_EQ(pop_from(server, {"q"}).exit, Exit::failed);
    EXPECT_EQ(pop_from(server, {"q"}).exit, Exit::unreachable);
}

TEST(PopCommand, UsageIsCheckedBeforeAnythingIsAsked) {
    ScriptedServer server(in_order({{204, "", {}, false}}));
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{}, "QUEUE, --namespace or --task is missing"},
        {{"--namespace", "n", "--partition", "p"}, "--partition needs a QUEUE"},
        {{"q", "--task", "t"}, "--namespace and --task go without a QUEUE"},
        {{"q", "--timeout", "5s"}, "--timeout needs --wait"},
        {{"q", "--wait", "--timeout", "5"}, "has no unit"},
        {{"q", "--lease", "1500ms"}, "--lease is not in whole seconds"},
        {{"q", "--lease", "0s"}, "--lease is not in whole seconds, at least 1s"},
        {{"q", "--ack", "--auto-ack"}, "--auto-ack and --ack exclude each other"},
        {{"q", "--batch", "x"}, "--batch \"x\": allowed is a whole number"},
        {{"q", "--batch", "10001"}, "allowed is a whole number from 1 to 10000"},
        {{"q", "r"}, "one word too many: \"r\""},
    };
    for (const auto& [words, message] : cases) {
        const Outcome outcome = pop_from(server, words);
        EXPECT_EQ(outcome.exit, Exit::usage) << message;
        EXPECT_THAT(outcome.err, HasSubstr(message));
    }
    EXPECT_THAT(server.seen(), IsEmpty());
}

} // namespace
} // namespace queen::ctl::testing
