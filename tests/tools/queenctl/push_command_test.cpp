#include "base/json.hpp"
#include "command_line.hpp"
#include "queenctl/json_text.hpp"
#include "scripted_server.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace queen::ctl::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// `partition/payload` of each message of each request.
std::vector<std::vector<std::string>> batches(const ScriptedServer& server) {
    std::vector<std::vector<std::string>> out;
    for (const Seen& seen : server.seen()) {
        const auto document = json::Document::parse(seen.body);
        EXPECT_TRUE(document.has_value()) << seen.body;
        std::vector<std::string> batch;
        const json::Value items = document->root()["items"];
        for (std::size_t i = 0; i < items.size(); ++i) {
            batch.push_back(std::string(items.at(i)["partition"].string()) + "/" +
                            to_json(items.at(i)["payload"]));
        }
        out.push_back(std::move(batch));
    }
    return out;
}

std::vector<std::string> transactions(const std::string& body) {
    const auto document = json::Document::parse(body);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < document->root()["items"].size(); ++i) {
        out.emplace_back(document->root()["items"].at(i)["transactionId"].string());
    }
    return out;
}

Outcome push_to(const ScriptedServer& server, std::vector<std::string> words,
                const std::string& input) {
    std::vector<std::string> line{"push", "--url", server.url(), "orders"};
    line.insert(line.end(), words.begin(), words.end());
    return command_line(line, input);
}

TEST(PushCommand, SendsLinesInOrderInBatchesOverOneConnection) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    const Outcome outcome = push_to(server, {"--batch", "2", "--partition", "p"},
                                    "{\"n\": 1}\nplain\n\n3\r\n\"4\"\n[5]");
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "queued 5, duplicate 0, failed 0\n");
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(batches(server), ElementsAre(ElementsAre("p/{\"n\":1}", "p/\"plain\""),
                                             ElementsAre("p/3", "p/\"4\""), ElementsAre("p/[5]")));
    const auto seen = server.seen();
    EXPECT_EQ(seen[0].method, "POST");
    EXPECT_EQ(seen[0].target, "/api/v1/push");
    EXPECT_EQ(seen[0].client_port, seen[2].client_port);
    EXPECT_THAT(seen[0].body, HasSubstr("\"payload\":{\"n\": 1}")); // byte for byte
    EXPECT_THAT(seen[0].body, HasSubstr("\"queue\":\"orders\""));
}

TEST(PushCommand, ADefaultPartitionIsLeftToTheBroker) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    EXPECT_EQ(push_to(server, {}, "1\n").exit, Exit::ok);
    EXPECT_THAT(server.seen().at(0).body, Not(HasSubstr("\"partition\"")));
}

TEST(PushCommand, ServerErrorsAreRetriedWithTheSameTransactionIds) {
    int calls = 0;
    ScriptedServer server([&](const Seen& seen) -> Reaction {
        switch (calls++) {
        case 0:
            return {503, "{\"error\":\"starting\"}", {{"Retry-After", "2"}}, false};
        case 1:
            return {500, "{\"error\":\"pool\"}", {}, false};
        case 2:
            return drop_connection();
        case 3:
            return {429, "{}", {}, false};
        default:
            return all_messages(seen);
        }
    });
    const Outcome outcome = push_to(server, {}, "1\n2\n");
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out, "queued 2, duplicate 0, failed 0\n");
    EXPECT_THAT(outcome.pauses, ElementsAre(2s, 4s, 5s, 5s)); // asked for, doubled, bounded
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 5u);
    for (const Seen& each : seen) {
        EXPECT_EQ(each.body, seen[0].body);
    }
    const auto ids = transactions(seen[0].body);
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_THAT(ids[0], ::testing::MatchesRegex("[0-9a-f-]{36}"));
}

TEST(PushCommand, AFirstTryThatWasStoredAfterAllIsNotCountedAsADuplicateOfOthers) {
    int calls = 0;
    const auto script = [&](const Seen& seen) {
        return calls++ == 0 ? drop_connection() : all_messages(seen, "duplicate");
    };
    {
        ScriptedServer server(script);
        EXPECT_EQ(push_to(server, {}, "1\n2\n").out, "queued 2, duplicate 0, failed 0\n");
    }
    calls = 0;
    {
        // Ids of the caller's may have been there before.
        ScriptedServer server(script);
        EXPECT_EQ(push_to(server, {"--txn-line"}, "1\n2\n").out,
                  "queued 0, duplicate 2, failed 0\n");
    }
}

TEST(PushCommand, FailedItemsAreRetriedAloneBeforeTheNextBatch) {
    int calls = 0;
    ScriptedServer server([&](const Seen& seen) -> Reaction {
        if (calls++ == 0) {
            return {201,
                    R"([{"status":"queued"},{"status":"error","error":"database away"},)"
                    R"({"status":"duplicate"}])",
                    {},
                    false};
        }
        return all_messages(seen);
    });
    const Outcome outcome = push_to(server, {"--batch", "3", "--partition", "p"}, "1\n2\n3\n4\n");
    EXPECT_EQ(outcome.exit, Exit::ok);
    EXPECT_EQ(outcome.out, "queued 3, duplicate 1, failed 0\n");
    EXPECT_THAT(batches(server), ElementsAre(ElementsAre("p/1", "p/2", "p/3"), ElementsAre("p/2"),
                                             ElementsAre("p/4")));
    EXPECT_EQ(transactions(server.seen()[0].body)[1], transactions(server.seen()[1].body)[0]);
}

TEST(PushCommand, ItemsThatKeepFailingAreCountedAndNamedByTheirLine) {
    ScriptedServer server([&](const Seen& seen) -> Reaction {
        const bool both = transactions(seen.body).size() == 2;
        return both ? Reaction{201,
                               R"([{"status":"queued"},{"status":"error","error":"no \u001b[2J"}])",
                               {},
                               false}
                    : all_messages(seen, "error");
    });
    const Outcome outcome = push_to(server, {"--retries", "1"}, "\n1\n2\n");
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "queued 1, duplicate 0, failed 1\n");
    EXPECT_EQ(outcome.err, "line 3: the broker answered error\n");
}

TEST(PushCommand, ABrokerThatKeepsFailingStopsTheInput) {
    ScriptedServer server(in_order({{500, "{\"error\":\"pop\\u001b[2Jped\"}", {}, false}}));
    const Outcome outcome = push_to(server, {"--batch", "1", "--retries", "2"}, "1\n2\n3\n");
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(server.seen().size(), 3u); // one message, three tries
    EXPECT_EQ(outcome.out, "queued 0, duplicate 0, failed 1\n");
    // Text from the network does not reach the terminal raw.
    EXPECT_EQ(outcome.err,
              "line 1: the broker answered 500: pop\\x1b[2Jped\n"
              "queenctl push: stopped at line 1: the broker answered 500: pop\\x1b[2Jped\n");
    const Outcome going =
        push_to(server, {"--batch", "1", "--retries", "0", "--keep-going"}, "1\n2\n");
    EXPECT_EQ(going.out, "queued 0, duplicate 0, failed 2\n");
    EXPECT_EQ(going.exit, Exit::failed);
}

TEST(PushCommand, ABatchRefusedForOneMessageIsHalvedUntilItStandsAlone) {
    ScriptedServer server([](const Seen& seen) -> Reaction {
        if (seen.body.find("\"bad\"") != std::string::npos) {
            return {400, R"({"error":"bad body: control characters"})", {}, false};
        }
        return all_messages(seen);
    });
    const Outcome outcome = push_to(server, {}, "1\n2\n\"bad\"\n4\n5\n");
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "queued 4, duplicate 0, failed 1\n");
    EXPECT_EQ(outcome.err, "line 3: the broker answered 400: bad body: control characters\n");
    std::vector<std::string> stored;
    for (const auto& batch : batches(server)) {
        const bool refused = std::any_of(batch.begin(), batch.end(), [](const std::string& m) {
            return m.find("bad") != std::string::npos;
        });
        if (!refused) {
            stored.insert(stored.end(), batch.begin(), batch.end());
        }
    }
    EXPECT_THAT(stored, ElementsAre("/1", "/2", "/4", "/5")); // order kept
}

TEST(PushCommand, ARefusalThatIsNotAboutAMessageStopsAtOnce) {
    ScriptedServer server(in_order({{404, "not here", {}, false}}));
    const Outcome outcome = push_to(server, {}, "1\n2\n");
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(server.seen().size(), 1u);
    EXPECT_THAT(outcome.err, HasSubstr("stopped at line 1: the broker answered 404"));
}

TEST(PushCommand, AnAnswerThatIsNoPushResultStops) {
    for (const char* body : {"[]", "{}", "<html>", "[{\"status\":\"queued\"},{}]"}) {
        ScriptedServer server(in_order({{201, body, {}, false}}));
        const Outcome outcome = push_to(server, {}, "1\n");
        EXPECT_EQ(outcome.exit, Exit::failed) << body;
        EXPECT_THAT(outcome.err, HasSubstr("is this a broker?"));
    }
}

TEST(PushCommand, NoBrokerIsExitThree) {
    std::string url;
    {
        ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
        url = server.url();
    }
    const Outcome outcome = command_line({"push", "--url", url, "q", "--retries", "2"}, "1\n2\n");
    EXPECT_EQ(outcome.exit, Exit::unreachable);
    EXPECT_EQ(outcome.out, "queued 0, duplicate 0, failed 0\n");
    EXPECT_THAT(outcome.err, HasSubstr("queenctl push: stopped at line 1: " + url));
    EXPECT_THAT(outcome.pauses, ElementsAre(100ms, 200ms));
}

TEST(PushCommand, PartitionsAndTransactionIdsComeFromFieldsAndExpressions) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    const Outcome fields = push_to(
        server,
        {"--partition-field", "customer.id", "--partition-default", "none", "--txn-field", "id"},
        "{\"id\":\"a\",\"customer\":{\"id\":\"c1\"}}\n"
        "{\"id\":7,\"customer\":{}}\n"
        "{\"customer\":{\"id\":\"c1\"}}\n");
    EXPECT_EQ(fields.exit, Exit::failed);
    EXPECT_EQ(fields.err, "line 3: no transaction id: has no field id\n");
    const auto document = json::Document::parse(server.seen().at(0).body);
    const json::Value items = document->root()["items"];
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(items.at(0)["partition"].string(), "c1");
    EXPECT_EQ(items.at(0)["transactionId"].string(), "a");
    EXPECT_EQ(items.at(1)["partition"].string(), "none");
    EXPECT_EQ(items.at(1)["transactionId"].string(), "7");

    ScriptedServer second([](const Seen& seen) { return all_messages(seen); });
    const Outcome regex =
        push_to(second, {"--partition-regex", "host=(\\w+)", "--txn-line", "--txn-prefix", "log-"},
                "a host=x\nb host=y\nc\n");
    EXPECT_EQ(regex.exit, Exit::failed);
    EXPECT_EQ(regex.err, "line 3: no partition: does not match\n");
    EXPECT_EQ(regex.out, "queued 2, duplicate 0, failed 1\n");
    EXPECT_THAT(batches(second), ElementsAre(ElementsAre("x/\"a host=x\"", "y/\"b host=y\"")));
    EXPECT_THAT(transactions(second.seen()[0].body), ElementsAre("log-1", "log-2"));
}

TEST(PushCommand, ReadsAFileAndNamesItsLinesAfterIt) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    const std::string path = ::testing::TempDir() + "queenctl-push-lines.txt";
    std::ofstream(path) << "a\nb\n";
    const Outcome outcome = push_to(server, {path, "--txn-line", "--json"}, "");
    std::filesystem::remove(path);
    EXPECT_EQ(outcome.exit, Exit::ok) << outcome.err;
    EXPECT_EQ(outcome.out,
              "{\"lines\":2,\"queued\":2,\"duplicate\":0,\"buffered\":0,\"failed\":0}\n");
    EXPECT_THAT(transactions(server.seen()[0].body),
                ElementsAre("queenctl-push-lines.txt:1", "queenctl-push-lines.txt:2"));
    EXPECT_EQ(push_to(server, {"/nowhere"}, "").exit, Exit::usage);
    EXPECT_EQ(push_to(server, {::testing::TempDir()}, "").exit, Exit::usage);
}

TEST(PushCommand, BatchesAreBoundedInBytesToo) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    std::string input;
    for (int i = 0; i < 5; ++i) {
        input += std::string(2 << 20, 'x') + "\n"; // 2 MiB each, 4 MiB a request
    }
    EXPECT_EQ(push_to(server, {}, input).out, "queued 5, duplicate 0, failed 0\n");
    EXPECT_EQ(server.seen().size(), 3u);
}

TEST(PushCommand, BufferedMessagesAreSaidToBe) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen, "buffered"); });
    const Outcome outcome = push_to(server, {}, "1\n");
    EXPECT_EQ(outcome.exit, Exit::ok);
    EXPECT_EQ(outcome.out, "queued 0, duplicate 0, buffered 1, failed 0\n");
}

TEST(PushCommand, ProgressIsReportedOnceASecondWhenAsked) {
    // Only pauses move the clock here: the first batch is tried twice.
    int calls = 0;
    ScriptedServer server([&](const Seen& seen) -> Reaction {
        return calls++ == 0 ? Reaction{503, "{}", {{"Retry-After", "4"}}, false}
                            : all_messages(seen);
    });
    const Outcome outcome = push_to(server, {"--batch", "2", "--progress"}, "1\n2\n3\n4\n");
    EXPECT_EQ(outcome.exit, Exit::ok);
    EXPECT_EQ(outcome.err, "2 lines, 0/s\n");
}

TEST(PushCommand, ManyBadLinesAreNotAllListed) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    std::string input;
    for (int i = 0; i < 30; ++i) {
        input += "\xff\n";
    }
    const Outcome outcome = push_to(server, {}, input);
    EXPECT_EQ(outcome.exit, Exit::failed);
    EXPECT_EQ(outcome.out, "queued 0, duplicate 0, failed 30\n");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 21);
    EXPECT_THAT(outcome.err, HasSubstr("line 20: is not UTF-8\nmore lines failed"));
    EXPECT_THAT(server.seen(), IsEmpty());
}

TEST(PushCommand, UsageIsCheckedBeforeAnythingIsSent) {
    ScriptedServer server([](const Seen& seen) { return all_messages(seen); });
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{"--batch", "0"}, "--batch \"0\": allowed is a whole number from 1 to 10000"},
        {{"--partition", "a", "--partition-regex", "(a)"},
         "--partition and --partition-regex exclude each other"},
        {{"--txn-line", "--txn-field", "x"}, "--txn-field and --txn-line exclude each other"},
        {{"--partition-default", "x"},
         "--partition-default needs --partition-field or --partition-regex"},
        {{"--txn-prefix", "x"}, "--txn-prefix needs --txn-line"},
        {{"--partition-regex", "a"}, "the expression \"a\" has no (group)"},
        {{"--partition-regex", "("}, "the expression \"(\" does not compile"},
        {{"--partition-field", ""}, "--partition-field is empty"},
        {{"-", "more"}, "one word too many: \"more\""},
        {{"--request-timeout", "5"}, "has no unit"},
    };
    for (const auto& [words, message] : cases) {
        const Outcome outcome = push_to(server, words, "1\n");
        EXPECT_EQ(outcome.exit, Exit::usage) << message;
        EXPECT_THAT(outcome.err, HasSubstr("queenctl push: "));
        EXPECT_THAT(outcome.err, HasSubstr(message));
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    EXPECT_THAT(server.seen(), IsEmpty());
}

} // namespace
} // namespace queen::ctl::testing
