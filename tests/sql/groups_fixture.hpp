// What the tests of consumer groups share.
#pragma once
#include "sql/sql_fixture.hpp"

namespace queen::test {

inline constexpr std::string_view kOtherTenant = "00000000-0000-0000-0000-000000000002";

class GroupsTest : public SqlTest {
protected:
    explicit GroupsTest(Database database = Database::shared) : SqlTest(database) {
        sql.script("truncate queen.hotlist_repairs");
    }

    /// A moment as the tests' clock counts: this many seconds after it began.
    std::string moment(double seconds) {
        return sql.one("select queen._iso(timestamptz '2030-01-01 00:00:00+00' + "
                       "make_interval(secs => $1))",
                       {std::to_string(seconds)});
    }

    /// "moved <n>" or the refusal.
    std::string seek_end(const std::string& group = "g", const std::string& queue = "q",
                         SqlSession* session = nullptr) {
        return told(
            (session != nullptr ? *session : sql)
                .one("select queen.log_seek_consumer_group_v1($1, $2, true)", {group, queue}));
    }
    std::string seek(double seconds, const std::string& group = "g",
                     const std::string& queue = "q") {
        return told(sql.one("select queen.log_seek_consumer_group_v1($1, $2, false, $3)",
                            {group, queue, moment(seconds)}));
    }
    std::string seek_partition_end(const std::string& partition, const std::string& group = "g",
                                   const std::string& queue = "q") {
        return told(sql.one("select queen.log_seek_partition_v1($1, $2, $3, true)",
                            {group, queue, partition}));
    }
    std::string seek_partition(double seconds, const std::string& partition,
                               const std::string& group = "g", const std::string& queue = "q") {
        return told(sql.one("select queen.log_seek_partition_v1($1, $2, $3, false, $4)",
                            {group, queue, partition, moment(seconds)}));
    }
    std::string told(const std::string& answer) {
        return sql.one("select coalesce($1::jsonb ->> 'error', 'moved ' || ($1::jsonb ->> "
                       "'partitionsUpdated'))",
                       {answer});
    }

    /// "<cursors> <metadata removed?> <queues>"
    std::string remove(const std::string& group = "g", bool metadata = true,
                       const SqlArg& queue = nullptr) {
        return sql.one("select concat_ws(' ', d -> 'deletedPartitions', d -> 'metadataDeleted', d "
                       "-> 'queues') from queen.log_delete_consumer_group_v1($1, $2, $3, $4) d",
                       {group, metadata, kTenant, queue});
    }

    /// Cursors of a group, "partition=committed ...".
    std::string cursors(const std::string& group = "g", const std::string& queue = "q",
                        SqlSession* session = nullptr) {
        return (session != nullptr ? *session : sql)
            .query("select p.name || '=' || c.committed from queen.log_consumers c join "
                   "queen.log_partitions p on p.id = c.partition_id join queen.queues q on q.id = "
                   "p.queue_id where q.name = $1 and c.consumer_group = $2 order by 1",
                   {queue, group})
            .column(0);
    }
    /// "queue/group/partition reason", a partition of * means the whole queue.
    std::string repairs() {
        return sql
            .query("select queue_name || '/' || consumer_group || '/' || coalesce(partition_name, "
                   "'*') || ' ' || reason from queen.hotlist_repairs order by 1")
            .column(0);
    }
};

} // namespace queen::test
