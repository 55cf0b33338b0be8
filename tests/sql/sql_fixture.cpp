#include "sql/sql_fixture.hpp"

#include "base/text.hpp"
#include "model/hash.hpp"
#include "support/postgres.hpp"
#include "support/sql_files.hpp"

#include <cstring>
#include <stdexcept>

namespace queen::test {
namespace {

TestPostgres& server() {
    // Room for a hundred consumers at once beside the watchers.
    static TestPostgres postgres({{"max_connections", "160"}, {"deadlock_timeout", "100ms"}});
    return postgres;
}

std::string new_database() {
    const std::string name = server().create_database();
    SqlSession session(server().conninfo(name));
    install_schema(session);
    return name;
}

/// Emptied, with every statement of the test before it gone.
std::string shared_database() {
    static const std::string name = new_database();
    SqlSession session(server().conninfo(name));
    session.wait_for("count(pg_terminate_backend(pid)) = 0 from pg_stat_activity where datname = "
                     "current_database() and pid <> pg_backend_pid() and backend_type = "
                     "'client backend'");
    session.script("truncate queen.queues, queen.log_txns, queen.log_timers cascade");
    return name;
}

} // namespace

std::string hash_hex(std::string_view id) {
    return to_hex(hash_transaction_id(id).view());
}

std::string hash(std::string_view id) {
    return "\\x" + hash_hex(id);
}

SqlTest::SqlTest(Database database)
    : database_name(database == Database::own ? new_database() : shared_database()),
      sql(connect()) {
    clock(0);
}

SqlSession SqlTest::connect() const {
    return SqlSession(server().conninfo(database_name));
}

void SqlTest::clock(double seconds) {
    sql.script("CREATE OR REPLACE FUNCTION queen._clock() RETURNS timestamptz LANGUAGE sql "
               "VOLATILE AS $$ SELECT timestamptz '2030-01-01 00:00:00+00' + interval '" +
               std::to_string(seconds) + " s' $$");
}

void SqlTest::run_clock() {
    sql.script("CREATE OR REPLACE FUNCTION queen._clock() RETURNS timestamptz LANGUAGE sql "
               "VOLATILE AS $$ SELECT clock_timestamp() $$");
}

std::string SqlTest::push(const std::string& queue, const std::string& partition,
                          const std::vector<std::string>& ids, std::int64_t verified) {
    std::string hashes = "\\x";
    for (const std::string& id : ids) {
        hashes += hash_hex(id);
    }
    const std::string answer =
        sql.one("select queen.log_push_one_v1($1, $2, $3, $4, $5, $6)",
                {queue, partition, ids.size(), hashes, verified, "\\x" + to_hex(ids.front())});
    return sql.one(
        "select ($1::jsonb ->> 'status') || coalesce(' ' || ($1::jsonb ->> 'baseOffset'), '') || "
        "coalesce((select ' ' || string_agg((d ->> 'i') || ':' || (d ->> 'off'), ' ') from "
        "jsonb_array_elements($1::jsonb -> 'dups') d), '')",
        {answer});
}

void SqlTest::configure(const std::string& queue, const std::string& options) {
    const std::string answer = sql.one("select queen.configure_queue_v1($1, $2)", {queue, options});
    ASSERT_EQ(member(answer, "configured"), "true") << answer;
}

std::string SqlTest::pop(const PopCall& what, SqlSession* session) {
    return (session != nullptr ? *session : sql)
        .query("select r_base || '+' || r_start_idx || '*' || r_take "
               "from queen.log_pop_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
               {what.queue, what.partition, what.group, what.budget, what.lease, what.worker,
                what.auto_ack, what.mode, what.from, what.skip_window})
        .column(0);
}

std::string SqlTest::wildcard(const WildcardCall& what, SqlSession* session) {
    return (session != nullptr ? *session : sql)
        .query("select (p ->> 'partition') || ':' || (s ->> 'seq') || '+' || (s ->> 'startOff') || "
               "'*' || (s ->> 'take') "
               "from queen.log_pop_wildcard_bin_v1($1, $2, $3, $4, $5, $6, $7, $8, $9) b, "
               "jsonb_array_elements(b.meta -> 'partitions') p, "
               "jsonb_array_elements(p -> 'segments') s order by 1",
               {what.queue, what.group, what.budget, what.lease, what.worker, what.auto_ack,
                what.partitions, what.mode, what.from})
        .column(0);
}

std::string SqlTest::list(const std::vector<std::string>& names, const PopCall& what,
                          SqlSession* session, int partitions) {
    return (session != nullptr ? *session : sql)
        .query("select (s ->> 'p') || '=' || (s ->> 's') || coalesce('(' || (s ->> 'leftMs') || "
               "')', '') from queen.log_pop_list_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) "
               "b, jsonb_array_elements(b.states) with ordinality as t (s, n) order by n",
               {what.queue, what.group, names, what.budget, what.lease, what.worker, what.auto_ack,
                partitions, what.mode, what.from, what.skip_window})
        .column(0);
}

std::string SqlTest::pid(const std::string& partition, const std::string& queue) {
    return sql.one("select p.id from queen.log_partitions p join queen.queues q on q.id = "
                   "p.queue_id where q.name = $1 and p.name = $2",
                   {queue, partition});
}

std::string SqlTest::cursor(const std::string& column, const std::string& partition,
                            const std::string& group, const std::string& queue) {
    return sql.one("select " + column +
                       " from queen.log_consumers c where c.partition_id = (select p.id from "
                       "queen.log_partitions p join queen.queues q on q.id = p.queue_id where "
                       "q.name = $1 and p.name = $2) and c.consumer_group = $3",
                   {queue, partition, group});
}

std::string SqlTest::ack(const std::vector<std::pair<std::string, std::string>>& items,
                         const std::string& worker, const std::string& partition,
                         const std::string& group) {
    std::vector<std::string> hashes;
    std::vector<std::string> statuses;
    for (const auto& [id, status] : items) {
        hashes.push_back(hash(id));
        statuses.push_back(status);
    }
    return sql.one("select queen.log_ack_by_hash_v1($1, $2, $3, $4, $5)",
                   {pid(partition), group, worker, hashes, statuses});
}

std::string SqlTest::mutate(const Mutation& mutation) {
    const std::string whole =
        sql.one("select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = "
                "'queen'::regnamespace and p.proname = $1",
                {mutation.function});
    const std::size_t at = whole.find(mutation.from);
    if (at == std::string::npos) {
        throw std::runtime_error(std::string(mutation.from) + " is not in " + whole);
    }
    if (whole.find(mutation.from, at + 1) != std::string::npos) {
        throw std::runtime_error(std::string(mutation.from) + " is twice in " + whole);
    }
    sql.script(std::string(whole).replace(at, std::strlen(mutation.from), mutation.to));
    return whole;
}

void SqlTest::await_lock(const SqlSession& session) {
    sql.wait_for("exists (select from pg_stat_activity where pid = $1::int and wait_event_type = "
                 "'Lock')",
                 {session.pid()});
}

std::int64_t SqlTest::deadlocks() {
    sql.script("select pg_stat_force_next_flush()");
    return sql.integer("select deadlocks from pg_stat_database where datname = "
                       "current_database()");
}

std::vector<std::string> SqlTest::nested_plans(SqlSession& session,
                                               const std::function<void()>& call) {
    session.script("load 'auto_explain'; set auto_explain.log_nested_statements = on; "
                   "set auto_explain.log_analyze = on; set auto_explain.log_timing = off; "
                   "set auto_explain.log_format = json; set auto_explain.log_level = notice; "
                   "set client_min_messages = notice");
    session.take_notices();
    session.script("set auto_explain.log_min_duration = 0");
    call();
    session.script("set auto_explain.log_min_duration = -1");
    std::vector<std::string> plans;
    for (const std::string& notice : session.take_notices()) {
        if (const auto at = notice.find('{'); at != std::string::npos) {
            plans.push_back(notice.substr(at));
        }
    }
    return plans;
}

std::string SqlTest::member(const std::string& json, const std::string& name) {
    return sql.one("select $1::jsonb ->> $2::text", {json, name});
}

} // namespace queen::test
