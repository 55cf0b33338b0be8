// The database of the first release under brokers of this version: its schema becomes that of a
// fresh one, its data is still what it was, and its own brokers go on working meanwhile.
#include "sql/sql_fixture.hpp"
#include "store/installer.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/postgres.hpp"
#include "support/sql_files.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

namespace queen::test {
namespace {

using testing::ElementsAre;

// What is in the dump.
constexpr const char* kPartitionA = "357ff118-0340-43dd-afb8-49aa3833e9c0"; ///< orders: a1 a2 a3
constexpr const char* kPartitionB = "d95985f5-c35e-4cca-aabe-056ec2fe5afb"; ///< orders: b1
constexpr const char* kAuditLease = "01a22a08-e17a-7152-b5d4-0837970db95c"; ///< of b, by audit

std::string text_of(const std::string& file) {
    std::ifstream in(std::string(QUEEN_UPGRADE_DIR "/") + file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Everything a broker relies on, but for the order of columns, which follows history.
std::string schema(SqlSession& session) {
    return session.one(
        "select string_agg(x, e'\\n' order by x) from ("
        // Columns: type, default, null, storage.
        "select concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, "
        "a.atttypmod), a.attnotnull, a.attstorage, a.attidentity, pg_get_expr(d.adbin, d.adrelid)) "
        "from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r' left join "
        "pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where c.relnamespace = "
        "'queen'::regnamespace and a.attnum > 0 and not a.attisdropped "
        "union all select concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid) "
        "from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = "
        "'queen'::regnamespace "
        "union all select concat_ws(' ', 'constraint', k.conrelid::regclass, k.conname, "
        "pg_get_constraintdef(k.oid)) from pg_constraint k where k.connamespace = "
        "'queen'::regnamespace "
        "union all select concat_ws(' ', 'options', c.relname, (select string_agg(o, ',' order by "
        "o) from unnest(c.reloptions) o), (select string_agg(o, ',' order by o) from pg_class t, "
        "unnest(t.reloptions) o where t.oid = c.reltoastrelid)) from pg_class c where "
        "c.relnamespace = 'queen'::regnamespace and c.relkind = 'r' "
        "union all select concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid)) from pg_trigger t "
        "join pg_class c on c.oid = t.tgrelid where c.relnamespace = 'queen'::regnamespace and not "
        "t.tgisinternal "
        "union all select concat_ws(' ', 'function', p.oid::regprocedure, "
        "pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), md5(p.prosrc), "
        "p.provolatile, p.proconfig) from pg_proc p where p.pronamespace = 'queen'::regnamespace "
        "union all select 'mark ' || obj_description('queen'::regnamespace, 'pg_namespace')) t "
        "(x)");
}

/// Runs at the end of the scope, however that is left.
class Finally {
public:
    explicit Finally(std::function<void()> run) : run_(std::move(run)) {}
    ~Finally() { run_(); }
    Finally(const Finally&) = delete;
    Finally& operator=(const Finally&) = delete;

private:
    std::function<void()> run_;
};

class Upgrade : public testing::Test {
protected:
    Upgrade() : database(server().create_database()), sql(server().conninfo(database)) {
        sql.script(text_of("release_1.sql"));
        sql.script("reset all");
        // As if its brokers had run a moment ago: the lease is open, the ids are in the window.
        sql.script(
            "update queen.log_consumers set lease_expires_at = now() + interval '1 hour' where "
            "worker_id is not null; "
            "update queen.log_segments set created_at = now() - interval '1 minute'; "
            "update queen.log_txns set created_at = now() - interval '1 minute'; "
            "update queen.log_partitions set newest_at = now() - interval '1 minute', "
            "last_write_at = now() - interval '1 minute'");
    }
    static TestPostgres& server() {
        static TestPostgres postgres(
            std::map<std::string, std::string>{{"max_connections", "160"}});
        return postgres;
    }
    /// The schema as it is made on an empty database.
    static std::string fresh_schema() {
        const auto name = server().create_database();
        EXPECT_TRUE(store::Installer(server().conninfo(name)).run());
        SqlSession session(server().conninfo(name));
        return schema(session);
    }

    const std::string database;
    SqlSession sql;
};

TEST_F(Upgrade, TheDumpIsThatOfAnOlderSchema) {
    EXPECT_NE(schema(sql), fresh_schema()) << "else nothing here is tested";
}

// K35: four brokers at once, clients on the first that is ready, and no call fails.
TEST_F(Upgrade, K35FourBrokersBringItUpAtOnceWhileClientsWork) {
    constexpr std::size_t kBrokers = 4;
    TempDirectory folder;
    std::mutex mutex;
    std::vector<std::unique_ptr<BrokerProcess>> ready;
    std::atomic<bool> over{false};
    std::latch booted(kBrokers);
    std::promise<void> end; // a broker ends with the thread that started it
    const auto ended = end.get_future().share();
    std::vector<std::jthread> boots;
    for (std::size_t i = 0; i < kBrokers; ++i) {
        boots.emplace_back([&, i, ended] {
            auto broker = std::make_unique<BrokerProcess>(BrokerOptions{
                .config = "database: {url: \"" + server().conninfo(database) + "\", sessions: 4}\n",
                .data_directory = folder.path() + "/" + std::to_string(i)});
            {
                const std::lock_guard lock(mutex);
                ready.push_back(std::move(broker));
            }
            booted.count_down();
            ended.wait();
        });
    }
    const auto let_go = Finally([&] { end.set_value(); });
    std::size_t pushed = 0, consumed = 0;
    std::thread client([&] {
        std::optional<Api> api;
        while (!api && !over) {
            const std::lock_guard lock(mutex);
            if (!ready.empty()) {
                api.emplace(ready.front()->port());
            }
        }
        for (bool last = false; api && !last;) {
            last = over; // at least once with all of them there
            const auto answer = api->push_ids("during", "p", {"d" + std::to_string(pushed)});
            ASSERT_EQ(answer.status, 201) << answer.body;
            ASSERT_THAT(column(answer, "status"), ElementsAre("queued")) << answer.body;
            ++pushed;
            const auto popped = api->pop("during", "consumerGroup=g");
            ASSERT_EQ(popped.status, 200) << popped.body;
            ASSERT_EQ(api->ack(popped.messages.at(0), "completed", "g"), "true");
            consumed += popped.messages.size();
        }
    });
    booted.wait();
    over = true;
    client.join();
    ASSERT_EQ(ready.size(), kBrokers);
    EXPECT_GT(pushed, 0u);
    EXPECT_EQ(consumed, pushed);
    EXPECT_EQ(schema(sql), fresh_schema());

    // What was there before.
    Api api(ready.back()->port());
    EXPECT_THAT(column(api.push_ids("orders", "a", {"a1", "a4", "a3"}), "status"),
                ElementsAre("duplicate", "queued", "duplicate"));
    const auto first = api.pop("orders", "consumerGroup=billing&partitions=5&batch=100");
    auto ids = first.ids();
    std::sort(ids.begin(), ids.end());
    EXPECT_THAT(ids, ElementsAre("a2", "a3", "a4", "b1")) << "its cursor stood behind a1";
    for (const auto& message : first.messages) {
        if (message.transaction_id == "a2") {
            EXPECT_EQ(message.data, R"({"n":2})");
        }
    }
    const auto audit = api.pop("orders", "consumerGroup=audit&partitions=5&batch=100");
    EXPECT_THAT(audit.ids(), ElementsAre("a1", "a2", "a3", "a4")) << "b is leased";
    Message leased;
    leased.transaction_id = "b1";
    leased.partition_id = kPartitionB;
    leased.lease_id = kAuditLease;
    EXPECT_EQ(api.ack(leased, "completed", "audit"), "true");
    EXPECT_EQ(api.pop("orders", "consumerGroup=audit&partitions=5").status, 204);
    EXPECT_THAT(api.pop("mail.send").ids(), ElementsAre("m1"));
}

/// The calls of a broker of the first release, each on its prepared statement.
std::vector<std::string> old_calls(int serial) {
    const auto id = "s" + std::to_string(serial);
    const std::string tenant = "'" + std::string(kTenant) + "'";
    const auto push = [&](const std::string& queue) {
        return "execute push_multi(array['" + queue + "'], array['p'], array[1], array['" +
               hash(id) + "'::bytea], array[-1::bigint], array['x'::bytea], array[" + tenant +
               "::uuid], array['00000000-0000-0000-0000-000000000000'::uuid], array[-1::bigint], "
               "array[-1::bigint], array[timestamptz 'epoch'])";
    };
    const std::string a = "'" + std::string(kPartitionA) + "'";
    return {
        push("orders"),
        push("new" + std::to_string(serial)),
        "execute segment_at(" + a + ", 0)",
        "execute window_hashes(" + a + ", 0, true, 1000)",
        "execute pop_list('orders', 'l', array['a', 'b'], 10, 60, '" + id +
            "', false, 5, 'all', '', false, " + tenant + ")",
        "execute pop_wildcard('orders', 'w', 10, 60, '" + id + "', true, 5, 'all', '', " + tenant +
            ")",
        "execute pop_specific('orders', 'p', 's', 10, 60, 'spec', false, 'all', '', " + tenant +
            ")",
        "execute pop_discover('mail', 'send', 'd', 10, 60, '" + id + "', true, 5, 'all', '', " +
            tenant + ")",
        "execute has_pending('orders', 'w', " + tenant + ")",
        "execute partition_has_pending('orders', 'a', 'w', " + tenant + ")",
        "execute discover_has_pending('mail', 'send', 'd', " + tenant + ")",
        "execute release_undelivered(" + a + ", 'l', '" + id + "')",
        "execute ack_by_hash(" + a + ", 'billing', '', array['" + hash("a1") +
            "'::bytea], array['completed'], " + tenant + ")",
        "execute ack_by_hash(" + a + ", 'billing', '', array['" + hash("a2") +
            "'::bytea], array['failed'], " + tenant + ")",
        "execute ack_multi(array[" + a + "::uuid], array['l'], array[0::bigint], array['" + id +
            "'], array[1::bigint])",
        "execute renew_lease('spec', 60)",
        "execute configure_queue('conf', '{\"leaseTime\": 30}', " + tenant + ")",
        "execute delete_queue(" + tenant + ", 'new" + std::to_string(serial) + "')",
        "execute queue_detail(" + tenant + ", 'orders', null, 100)",
        "execute queue_depth('orders', null, " + tenant + ", null, 100)",
        "execute queue_sizes(" + tenant + ", 'orders', null, 100)",
        "execute list_queues(" + tenant + ")",
        "execute list_labels(" + tenant + ", 'namespace')",
        "execute overview(" + tenant + ")",
        "execute reseed_page('orders', 'w', null, 100, " + tenant + ")",
        "execute reseed_window_page('orders', 'w', null, null, 100, 60000, " + tenant + ", null)",
    };
}

// A boot runs each statement in a transaction of its own, so between any two of them brokers of the
// first release find a schema that is neither the old nor the new one. Some of their sessions have
// prepared their statements before; others are opened at that moment, and look the names up anew.
TEST_F(Upgrade, BrokersOfTheFirstReleaseWorkBetweenAnyTwoStatements) {
    SqlSession broker(server().conninfo(database));
    broker.script(text_of("release_1_statements.sql"));
    int serial = 0;
    const auto all_work = [&](const std::string& where) {
        SqlSession late(server().conninfo(database));
        ASSERT_NO_THROW(late.script(text_of("release_1_statements.sql"))) << where;
        for (SqlSession* session : {&broker, &late}) {
            for (const auto& call : old_calls(serial++)) {
                try {
                    session->query(call);
                } catch (const SqlError& e) {
                    ADD_FAILURE() << where << (session == &late ? ", on a new session" : "") << ": "
                                  << call << ": " << e.what();
                }
            }
        }
    };
    all_work("before");
    const auto before = sql.integer("select last_offset from queen.log_partitions p join "
                                    "queen.queues q on q.id = p.queue_id where q.name = 'orders' "
                                    "and p.name = 'p'");
    int statements = 0;
    for (const auto& file : read_sql_files()) {
        for (const auto& statement : file.statements) {
            sql.script(statement);
            ++statements;
            all_work(file.name + " after '" + statement.substr(0, 80) + "'");
            if (HasFailure()) {
                return; // one is enough to read
            }
        }
    }
    EXPECT_EQ(sql.integer("select last_offset from queen.log_partitions p join queen.queues q on "
                          "q.id = p.queue_id where q.name = 'orders' and p.name = 'p'"),
              before + 2 * statements)
        << "each push was stored";
    sql.script("comment on schema queen is 'queen broker schema, version " + // the installer's last
               std::to_string(store::kSchemaVersion) + "'");
    EXPECT_EQ(schema(sql), fresh_schema());
}

// K35: a report that reads the tables all day. The boot needs them for itself for a moment; while
// it stands in line nobody behind it gets in, so it gives way after its slice and comes again.
TEST_F(Upgrade, K35ALongReadHoldsUpTheBootAndNobodyElse) {
    SqlSession reader(server().conninfo(database));
    reader.script("begin; select count(*) from queen.log_partitions, queen.log_consumers, "
                  "queen.consumer_groups_metadata");
    std::atomic<bool> finished{false};
    Result<store::InstallReport> report;
    std::thread boot([&] {
        store::Installer installer(server().conninfo(database), {.attempts = 1000});
        report = installer.run();
        finished = true;
    });
    SqlSession broker(server().conninfo(database));
    broker.script(text_of("release_1_statements.sql"));
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
        sql.wait_for("exists (select from pg_locks where not granted and mode = "
                     "'AccessExclusiveLock' and relation = 'queen.log_partitions'::regclass)");
        // Behind the boot in the line, or past it: it comes to its end while the reader reads.
        EXPECT_NO_THROW(broker.query(old_calls(round)[0]));
        EXPECT_FALSE(finished) << "the reader still holds what the boot needs";
    }
    reader.script("commit");
    boot.join();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GE(report->retries, kRounds - 1) << "it gave way";
    EXPECT_EQ(schema(sql), fresh_schema());
}

} // namespace
} // namespace queen::test
