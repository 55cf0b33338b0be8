#include "model/queue_options.hpp"
#include "sql/sql_fixture.hpp"

namespace queen::test {
namespace {

class Configure : public SqlTest {
protected:
    std::string set(const std::string& options, const std::string& queue = "q") {
        return sql.one("select queen.configure_queue_v1($1, $2)", {queue, options});
    }
    std::string option(const std::string& answer, const std::string& name) {
        return sql.one("select $1::jsonb -> 'options' ->> $2", {answer, name});
    }
};

TEST_F(Configure, EchoesEveryOptionAndCreatesNoPartition) {
    const std::string answer = set(R"({"namespace": "n", "task": "t", "leaseTime": 12})");
    EXPECT_EQ(sql.one("select $1::jsonb - 'queueId' - 'options'", {answer}),
              R"({"task": "t", "queue": "q", "storage": "segments", "namespace": "n", )"
              R"("configured": true, "partitionId": null})");
    EXPECT_EQ(member(answer, "queueId"), sql.one("select id from queen.queues"));
    EXPECT_EQ(option(answer, "leaseTime"), "12");
    EXPECT_EQ(sql.integer("select count(*) from queen.log_partitions"), 0);
}

// The broker's table and the procedure's are one contract.
TEST_F(Configure, OptionsAndDefaultsAreThoseOfTheModel) {
    const std::string answer = set("{}");
    EXPECT_EQ(sql.integer("select count(*) from jsonb_object_keys(($1::jsonb -> 'options') - "
                          "'maxQueueSize')",
                          {answer}),
              static_cast<std::int64_t>(queue_options().size()));
    for (const QueueOption& o : queue_options()) {
        const std::string name(o.name);
        const std::string want = o.type == QueueOption::Type::text ? ""
                                 : o.type == QueueOption::Type::boolean
                                     ? (o.fallback ? "true" : "false")
                                     : std::to_string(o.fallback);
        EXPECT_EQ(option(answer, name), want) << name;
        if (o.type == QueueOption::Type::integer) {
            const std::string low = set("{\"" + name + "\": " + std::to_string(o.min - 1) + "}");
            const std::string high = set("{\"" + name + "\": " + std::to_string(o.max + 1) + "}");
            if (name == "minPopWaitTime" || name == "dedupWindowSeconds") {
                EXPECT_EQ(option(low, name), std::to_string(o.min)) << low;
                EXPECT_EQ(option(high, name), std::to_string(o.max)) << high;
            } else {
                EXPECT_NE(member(low, "error"), "") << low;
                EXPECT_NE(member(high, "error"), "") << high;
            }
            EXPECT_EQ(option(set("{\"" + name + "\": " + std::to_string(o.max) + "}"), name),
                      std::to_string(o.max));
        }
    }
}

// OPT-3: nobody is left to believe that an option acts which is only kept.
TEST_F(Configure, TellsWhichOfTheGivenOptionsAreOnlyStored) {
    EXPECT_EQ(
        member(set(R"({"maxSize": 10, "leaseTime": 5, "priority": 0, "ttl": 9})"), "storedOnly"),
        R"(["maxSize", "priority"])");
    EXPECT_EQ(member(set(R"({"retentionSinkHold": "s", "retentionSinkHoldMaxSeconds": 60})"),
                     "storedOnly"),
              R"(["retentionSinkHold", "retentionSinkHoldMaxSeconds"])");
    for (const char* none : {"{}", R"({"leaseTime": 5, "maxSize": null})"}) {
        EXPECT_EQ(sql.one("select $1::jsonb ? 'storedOnly'", {set(none)}), "f") << none;
    }
    EXPECT_EQ(option(set(R"({"maxSize": 10})"), "maxQueueSize"), "10");
}

// K36
TEST_F(Configure, ReplaceResetsWhatIsAbsentAndMergeKeepsIt) {
    const std::string given =
        R"("leaseTime": 10, "retryLimit": 7, "windowBuffer": 2, "retentionEnabled": true,)"
        R"("completedRetentionSeconds": 5, "namespace": "n", "retentionSinkHold": "s3.a_b-c",)"
        R"("deadLetterQueue": false, "retryDelay": 50)";
    set("{" + given + "}");
    std::string answer = set(R"({"mode": "merge", "retryLimit": 9})");
    EXPECT_EQ(sql.one("select $1::jsonb -> 'options' @> ($2::jsonb - 'namespace' || "
                      "'{\"retryLimit\": 9}')",
                      {answer, "{" + given + "}"}),
              "t")
        << answer;
    EXPECT_EQ(member(answer, "namespace"), "n");
    answer = set(R"({"mode": "merge", "leaseTime": null, "namespace": null, "retryDelay": null})");
    EXPECT_EQ(option(answer, "leaseTime") + "," + option(answer, "retryLimit") + "," +
                  option(answer, "retryDelay") + "," + member(answer, "namespace"),
              "300,9,1000,");
    set(R"({"mode": "replace", "completedRetentionSeconds": 7})");
    answer = set(R"({"mode": "merge"})");
    EXPECT_EQ(sql.one("select $1::jsonb -> 'options' = ($2::jsonb -> 'options' || "
                      "'{\"completedRetentionSeconds\": 7}')",
                      {answer, set("{}", "fresh")}),
              "t")
        << answer;
}

TEST_F(Configure, MergingIntoAQueueThatAPushMadeKeepsItsLease) {
    push("a.b", "p", {"x"});
    const std::string answer = set(R"({"mode": "merge", "retryLimit": 1})", "a.b");
    EXPECT_EQ(option(answer, "leaseTime") + member(answer, "namespace") + member(answer, "task"),
              "60ab");
    EXPECT_EQ(option(set(R"({"mode": "merge"})", "new"), "leaseTime"), "300");
}

TEST_F(Configure, ANullObjectIsNoOptions) {
    EXPECT_EQ(member(set("null"), "configured"), "true");
    EXPECT_EQ(member(sql.one("select queen.configure_queue_v1('q', null)"), "configured"), "true");
}

// Whoever enforces them can tell a wish from a default.
TEST_F(Configure, RetryDelayAndTtlAreNullUntilTheyAreSet) {
    const auto stored = [&] {
        return sql.one("select coalesce(retry_delay::text, '-') || coalesce(ttl::text, '-') from "
                       "queen.queues");
    };
    set("{}");
    EXPECT_EQ(stored(), "--");
    set(R"({"retryDelay": 1000, "ttl": 5})");
    EXPECT_EQ(stored(), "10005");
    set(R"({"mode": "merge", "ttl": null})");
    EXPECT_EQ(stored(), "1000-");
    set(R"({"ttl": 6})");
    EXPECT_EQ(stored(), "-6");
}

// K37
TEST_F(Configure, UnknownOptionsAreNamedWithTheAllowedOnes) {
    const std::string answer = set(R"({"leasetime": 1, "retry_limit": 2, "leaseTime": 9})");
    EXPECT_EQ(member(answer, "invalid"), R"(["leasetime", "retry_limit"])");
    const std::string error = member(answer, "error");
    EXPECT_NE(error.find("\"leasetime\""), std::string::npos) << error;
    EXPECT_NE(error.find("leaseTime, retryLimit"), std::string::npos) << error;
    EXPECT_EQ(sql.integer("select count(*) from queen.queues"), 0);
}

TEST_F(Configure, WrongTypesAndRangesAreRefusedByName) {
    set(R"({"leaseTime": 10})");
    for (const auto& [options, name] : std::vector<std::pair<std::string, std::string>>{
             {R"({"leaseTime": "5"})", "leaseTime"},
             {R"({"leaseTime": 1.5})", "leaseTime"},
             {R"({"leaseTime": true})", "leaseTime"},
             {R"({"leaseTime": 0})", "leaseTime"},
             {R"({"leaseTime": 1e99})", "leaseTime"},
             {R"({"retryLimit": -1})", "retryLimit"},
             {R"({"deadLetterQueue": 1})", "deadLetterQueue"},
             {R"({"namespace": 5})", "namespace"},
             {R"({"retentionSinkHold": "a b"})", "retentionSinkHold"},
             {R"({"retentionSinkHold": ")" + std::string(65, 'x') + "\"}", "retentionSinkHold"},
             {R"({"retentionSinkHoldMaxSeconds": 59})", "retentionSinkHoldMaxSeconds"},
             {R"({"mode": "patch"})", "mode"},
             {R"([1])", "options"}}) {
        const std::string answer = set(options);
        EXPECT_EQ(member(answer, "invalid"), "[\"" + name + "\"]") << options << answer;
        EXPECT_NE(member(answer, "error").find(name), std::string::npos) << answer;
    }
    EXPECT_NE(member(set("{}", ""), "error"), "");
    EXPECT_EQ(option(set(R"({"mode": "merge"})"), "leaseTime"), "10");
    EXPECT_EQ(option(set(R"({"leaseTime": 2.0})"), "leaseTime"), "2");
}

TEST_F(Configure, TenantsHaveQueuesOfTheirOwn) {
    set(R"({"leaseTime": 10})");
    const std::string other = sql.one("select queen.configure_queue_v1('q', '{\"leaseTime\": 20}', "
                                      "'00000000-0000-0000-0000-000000000002')");
    EXPECT_EQ(option(other, "leaseTime"), "20");
    EXPECT_EQ(option(set(R"({"mode": "merge"})"), "leaseTime"), "10");
}

// A pop checks foreign keys against the queue's row; configure must not make it wait.
TEST_F(Configure, AnOpenConfigureDoesNotHoldUpAFirstPop) {
    push("q", "p", {"a"});
    SqlSession other = connect();
    other.script("begin; select queen.configure_queue_v1('q', '{\"leaseTime\": 33}')");
    sql.script("set statement_timeout = '20s'");
    EXPECT_EQ(wildcard({.lease = 0}), "p:0+0*1");
    other.script("commit");
}

} // namespace
} // namespace queen::test
