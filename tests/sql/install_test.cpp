#include "sql/sql_fixture.hpp"
#include "support/sql_files.hpp"

namespace queen::test {
namespace {

class Install : public SqlTest {
protected:
    Install() : SqlTest(Database::own) {}
    /// Everything the catalog says about the schema, as one text.
    std::string catalog() {
        return sql.one(
            "select string_agg(x, e'\\n' order by x) from ("
            "select 'f ' || p.oid || p.oid::regprocedure || md5(p.prosrc) from pg_proc p where "
            "pronamespace = 'queen'::regnamespace union all "
            "select 'c ' || c.oid || c.relname || c.relfilenode || coalesce(c.reloptions::text, "
            "'') || coalesce((select t.reloptions::text from pg_class t where t.oid = "
            "c.reltoastrelid), '') from pg_class c where relnamespace = 'queen'::regnamespace "
            "union all select 'a ' || attrelid || attname || atttypid || attstorage::text from "
            "pg_attribute where attrelid in (select oid from pg_class where relnamespace = "
            "'queen'::regnamespace)) t (x)");
    }
    std::string options(const std::string& table) {
        return sql.one("select array_to_string(reloptions, ' ') from pg_class where oid = "
                       "$1::regclass",
                       {"queen." + table});
    }
};

TEST_F(Install, ASecondRunChangesNothing) {
    install_schema(sql); // puts the real clock back
    const std::string before = catalog();
    install_schema(sql);
    EXPECT_EQ(catalog(), before);
}

// A boot under load must not queue behind, or block, those who use the tables (F-25).
TEST_F(Install, ASecondRunTakesNoLockThatPushesAndPopsConflictWith) {
    push("q", "p", {"a"});
    SqlSession user = connect();
    user.script("begin");
    user.query("select queen.log_push_one_v1('q', 'p', 1, $1, -1, 'x')", {hash("b")});
    user.query("select queen.log_pop_wildcard_bin_v1('q', 'g', 1, 0, 'w')");
    sql.script("set lock_timeout = '5s'");
    EXPECT_NO_THROW(install_schema(sql));
    user.script("commit");
}

TEST_F(Install, StatementsEndWhereTheSeparatorSays) {
    for (const SqlFile& file : read_sql_files()) {
        EXPECT_GT(file.statements.size(), 1u) << file.name;
        for (const std::string& statement : file.statements) {
            EXPECT_NE(statement.find(';'), std::string::npos) << file.name << ": " << statement;
        }
    }
}

// F-18, F-20
TEST_F(Install, HotTablesHaveRoomAndAreVacuumedEarlyWithoutTruncation) {
    const std::string tail = " autovacuum_vacuum_scale_factor=0 autovacuum_vacuum_threshold=500 "
                             "autovacuum_vacuum_cost_delay=0 vacuum_truncate=false";
    EXPECT_EQ(options("log_partitions"), "fillfactor=70" + tail);
    EXPECT_EQ(options("log_consumers"), "fillfactor=50" + tail);
}

// F-18, F-19
TEST_F(Install, AppendedTablesAreVacuumedByLargeSharesWithoutTruncation) {
    for (const std::string table : {"log_segments", "log_txns"}) {
        const std::string toast =
            sql.one("select reltoastrelid::regclass::text from pg_class where oid = $1::regclass",
                    {"queen." + table});
        for (const std::string option :
             {"autovacuum_vacuum_scale_factor=0.1", "autovacuum_vacuum_insert_scale_factor=0.3",
              "autovacuum_vacuum_cost_delay=0", "vacuum_truncate=false"}) {
            EXPECT_NE(options(table).find(option), std::string::npos) << table << option;
            EXPECT_TRUE(sql.yes("select $2 = any (reloptions) from pg_class where oid = "
                                "$1::regclass",
                                {toast, option}))
                << table << option;
        }
    }
    EXPECT_EQ(sql.query("select attstorage from pg_attribute where (attrelid, attname) in "
                        "(('queen.log_segments'::regclass, 'blob'), "
                        "('queen.log_txns'::regclass, 'hashes'))")
                  .column(0),
              "e e");
}

TEST_F(Install, AStorageOptionThatSomebodyChangedComesBack) {
    sql.script("alter table queen.log_partitions reset (fillfactor)");
    sql.script("alter table queen.log_segments reset (toast.vacuum_truncate)");
    const std::string damaged = catalog();
    install_schema(sql);
    EXPECT_NE(options("log_partitions").find("fillfactor=70"), std::string::npos);
    EXPECT_NE(catalog(), damaged);
    EXPECT_TRUE(sql.yes("select 'vacuum_truncate=false' = any (t.reloptions) from pg_class c join "
                        "pg_class t on t.oid = c.reltoastrelid where c.oid = "
                        "'queen.log_segments'::regclass"));
}

TEST_F(Install, SegmentsHaveNoIndexButTheirKey) {
    EXPECT_EQ(sql.query("select c.relname || count(*) from pg_index i join pg_class c on c.oid = "
                        "i.indrelid where c.relname in ('log_segments', 'log_txns', "
                        "'log_consumers') group by c.relname order by 1")
                  .column(0),
              "log_consumers1 log_segments1 log_txns1");
}

// Walks over what was written lately end with the partition's id, which the index once lacked.
TEST_F(Install, AnIndexOfAnOlderShapeIsMadeAnew) {
    sql.script("drop index queen.log_partitions_written");
    sql.script("create index log_partitions_written on queen.log_partitions "
               "(queue_id, last_write_at)");
    install_schema(sql);
    EXPECT_TRUE(sql.yes("select pg_get_indexdef('queen.log_partitions_written'::regclass) like "
                        "'%(queue_id, last_write_at, id)'"));
}

// F-63: an older signature beside the new one would make calls ambiguous.
TEST_F(Install, AnOlderSignatureIsRemoved) {
    sql.script("create function queen.log_segment_at_v1(p uuid, o bigint, extra text default '') "
               "returns integer language sql as 'select 1'");
    sql.script("create function queen.log_pop_v1(q text, p text, g text, b integer, l integer, "
               "w text) returns integer language sql as 'select 1'");
    EXPECT_THROW(sql.query("select * from queen.log_segment_at_v1(gen_random_uuid(), 1)"),
                 SqlError);
    install_schema(sql);
    EXPECT_NO_THROW(sql.query("select * from queen.log_segment_at_v1(gen_random_uuid(), 1)"));
    EXPECT_EQ(sql.integer("select count(*) from pg_proc where pronamespace = 'queen'::regnamespace "
                          "and proname in ('log_segment_at_v1', 'log_pop_v1')"),
              2);
}

TEST_F(Install, EveryFunctionIsInAListOfItsFile) {
    std::string text;
    for (const SqlFile& file : read_sql_files()) {
        for (const std::string& statement : file.statements) {
            text += statement.find("_keep_only(ARRAY") != std::string::npos ? statement : "";
        }
    }
    for (const std::string shared :
         {"_clock", "_storage", "_keep_only", "_iso", "_iso_ms", "_add_column", "log_unnest_hashes",
          "_labels", "_queue_lock"}) {
        text += "'" + shared + "(";
    }
    const SqlRows names = sql.query("select distinct proname from pg_proc where pronamespace = "
                                    "'queen'::regnamespace");
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_NE(text.find("'" + names.get(i, 0) + "("), std::string::npos) << names.get(i, 0);
    }
}

// Four brokers boot on an empty database at once; the installer's lock keeps them apart. They try
// it as the installer does: who waits for it in the server keeps a snapshot, for which the index
// that the holder builds beside the traffic would wait in turn.
TEST_F(Install, FourSessionsAtOnceMakeOneSchema) {
    sql.script("drop schema queen cascade");
    std::vector<SqlSession> sessions;
    std::vector<std::string> steps;
    for (const SqlFile& file : read_sql_files()) {
        steps.insert(steps.end(), file.statements.begin(), file.statements.end());
    }
    const std::string take = "select pg_try_advisory_lock(778120010)";
    for (int i = 0; i < 4; ++i) {
        sessions.push_back(connect());
        sessions.back().send(take);
    }
    // Each runs one statement at a time once it has the lock, and gives it back at the end.
    std::vector<std::size_t> next(sessions.size(), 0);
    std::size_t done = 0;
    while (done < sessions.size()) {
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            if (next[i] > steps.size() || sessions[i].busy()) {
                continue;
            }
            const SqlRows answer = sessions[i].finish();
            if (next[i] == 0 && answer.get(0, 0) == "f") {
                sessions[i].send(take);
                continue;
            }
            if (next[i] == steps.size()) {
                sessions[i].script("select pg_advisory_unlock(778120010)");
                ++done;
            } else {
                sessions[i].send(steps[next[i]]);
            }
            ++next[i];
        }
    }
    EXPECT_EQ(push("q", "p", {"a"}), "queued 0");
    EXPECT_EQ(pop({}), "0+0*1");
}

} // namespace
} // namespace queen::test
