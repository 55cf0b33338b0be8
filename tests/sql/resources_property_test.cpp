// Random states against a count of single messages: what the figures are by definition, in SQL that
// expands every segment (ST-1, ST-2, K40).
#include "sql/sql_fixture.hpp"

#include <random>

namespace queen::test {
namespace {

/// The figures of queue $2 of tenant $1 for group $3, null for the queue as a whole, as depth has
/// them.
constexpr const char* kCounted = R"sql(
with q as (select * from queen.queues where tenant_id = $1::uuid and name = $2::text),
parts as (select p.*, q.window_buffer, q.delayed_processing
          from queen.log_partitions p join q on q.id = p.queue_id),
msgs as (select s.partition_id as pid, o as off, s.created_at as at
         from queen.log_segments s join parts p on p.id = s.partition_id,
              generate_series(s.base_offset, s.end_offset) o),
regs as (select m.consumer_group as grp, m.subscription_timestamp as at
         from queen.consumer_groups_metadata m join q on m.queue_id = q.id),
cursors as (select c.*, c.lease_expires_at >= queen._clock() as live
            from queen.log_consumers c join parts p on p.id = c.partition_id
            where $3::text is null or c.consumer_group = $3),
named as (select partition_id as pid, consumer_group as grp from cursors
          where consumer_group <> '__QUEUE_MODE__'
          union select p.id, r.grp from parts p, regs r where r.grp <> '__QUEUE_MODE__'),
counting as (select p.id as pid, $3::text as grp from parts p where $3 is not null
             union select pid, grp from named where $3 is null
             union select partition_id, consumer_group from cursors c
                   where $3 is null and consumer_group = '__QUEUE_MODE__'
                     and not exists (select from named n where n.pid = c.partition_id)),
open as (
    select m.*
    from msgs m
    where not exists (select from counting g where g.pid = m.pid)
       or exists (select from counting g
                  left join cursors c on c.partition_id = g.pid and c.consumer_group = g.grp
                  left join regs r on r.grp = g.grp and r.grp <> '__QUEUE_MODE__'
                  where g.pid = m.pid
                    and case when c.partition_id is not null then m.off > c.committed
                             when r.grp is not null then m.at >= r.at
                             else true end)),
figures as (
    select p.name, b.backlog, least(l.leased, b.backlog) as processing,
           case when l.held then 0
                when p.window_buffer > 0 and (select max(m.at) from msgs m where m.pid = p.id) >
                     queen._clock() - make_interval(secs => p.window_buffer) then 0
                else b.visible end as ready
    from parts p
    cross join lateral (
        select count(*) as backlog, count(*) filter (where o.at <= queen._clock() -
                   make_interval(secs => p.delayed_processing)) as visible
        from open o where o.pid = p.id) b
    cross join lateral (
        select count(*) as leased,
               exists (select from cursors c where c.partition_id = p.id and c.live
                         and c.worker_id is not null) as held
        from cursors c join msgs m on m.pid = c.partition_id
        where c.partition_id = p.id and c.live and m.off > c.committed and m.off <= c.batch_end) l)
select jsonb_build_object(
    'queue', $2::text, 'group', $3::text, 'pending', coalesce(sum(backlog - processing), 0),
    'processing', coalesce(sum(processing), 0), 'ready', coalesce(sum(ready), 0),
    'partitionsPending', count(*) filter (where backlog > processing),
    'partitionsReady', count(*) filter (where ready > 0), 'conflation', false,
    'effectivePending', coalesce(sum(backlog - processing), 0),
    'effectiveReady', coalesce(sum(ready), 0), 'partitionCount', count(*), 'next', null,
    'partitions', coalesce(jsonb_agg(jsonb_build_object(
        'partition', name, 'pending', backlog - processing, 'processing', processing,
        'ready', ready) order by name), '[]'))
from figures
)sql";

/// Stored messages of a tenant.
constexpr const char* kTotals = R"sql(
select jsonb_build_object('total', count(*)) from queen.log_segments s
join queen.log_partitions p on p.id = s.partition_id join queen.queues q on q.id = p.queue_id,
     generate_series(s.base_offset, s.end_offset)
where q.tenant_id = $1
)sql";

/// Dead letters of queue $2, and how many stored messages below the backlog are among them.
constexpr const char* kLetters = R"sql(
with figures as (select f.* from queen.queues q, queen._queue_figures(array[q.id], queen._clock()) f
                 where q.tenant_id = $1 and q.name = $2)
select jsonb_build_object(
    'all', (select count(*) from queen.log_dlq d join figures f on f.pid = d.partition_id),
    'kept', (select count(*) from queen.log_segments s
             join figures f on f.pid = s.partition_id,
                  generate_series(s.base_offset, s.end_offset) o
             where o <= f.done and exists (select from queen.log_dlq d
                                           where d.partition_id = f.pid and d."offset" = o)))
)sql";

constexpr const char* kOther = "00000000-0000-0000-0000-000000000002";

class ResourcesProperty : public SqlTest {
protected:
    ResourcesProperty() : SqlTest(Database::own) {}

    /// Makes random things happen and compares after each. @return "" or where they part.
    std::string story(unsigned seed) {
        sql.script("truncate queen.queues, queen.log_txns cascade");
        std::mt19937 random(seed);
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        const auto any = [&](const std::vector<std::string>& of) {
            return of[static_cast<std::size_t>(pick(0, static_cast<int>(of.size()) - 1))];
        };
        const std::vector<std::string> queues{"a.x", "b"};
        const std::vector<std::string> parts{"p", "r", "s", "t"};
        const std::vector<std::string> groups{"g", "h", "stray", "__QUEUE_MODE__"};
        double now = 0;
        int ids = 0;
        clock(0);
        for (const auto& queue : queues) {
            configure(queue, R"({"namespace": ")" + any({"", "n", "m"}) +
                                 R"(", "delayedProcessing": )" + std::to_string(pick(0, 1) * 7) +
                                 R"(, "windowBuffer": )" + std::to_string(pick(0, 2) / 2 * 3) +
                                 "}");
        }
        for (int step = 0; step < 30; ++step) {
            const std::string queue = any(queues);
            const std::string part = any(parts);
            const std::string group = any(groups);
            now += pick(0, 4);
            clock(now);
            switch (pick(0, 9)) {
            case 0:
            case 1:
            case 2: {
                std::vector<std::string> batch;
                for (int i = pick(1, 4); i > 0; --i) {
                    batch.push_back("m" + std::to_string(ids++));
                }
                push(queue, part, batch);
                break;
            }
            case 3:
            case 4:
                wildcard({.queue = queue,
                          .group = group,
                          .budget = pick(1, 6),
                          .lease = pick(1, 20),
                          .auto_ack = pick(0, 2) == 0,
                          .partitions = pick(1, 4),
                          .mode = any({"all", "new"})});
                break;
            case 5:
                pop({.queue = queue,
                     .partition = part,
                     .group = group,
                     .budget = pick(1, 6),
                     .lease = pick(1, 20),
                     .auto_ack = pick(0, 2) == 0});
                break;
            case 6:
                sql.query("select queen.log_ack_v1($1, $2, $3, 'w', $4)",
                          {queue, part, group, pick(0, 12)});
                break;
            case 7: // retention takes the oldest segment
                sql.query("with gone as (delete from queen.log_segments s using "
                          "queen.log_partitions p, queen.queues q where q.name = $1 and p.name = "
                          "$2 and p.queue_id = q.id and s.partition_id = p.id and s.base_offset = "
                          "p.log_start returning s.partition_id, s.end_offset, "
                          "octet_length(s.blob) as bytes) update queen.log_partitions p set "
                          "log_start = g.end_offset + 1, segment_count = segment_count - 1, "
                          "stored_bytes = stored_bytes - g.bytes from gone g where p.id = "
                          "g.partition_id",
                          {queue, part});
                break;
            case 9: // a group gave a message up
                sql.query("insert into queen.log_dlq (queue_id, partition_id, consumer_group, "
                          "\"offset\") select p.queue_id, p.id, g, $4 from queen.log_partitions p "
                          "join queen.queues q on q.id = p.queue_id, unnest(array[$3, 'h']) g "
                          "where q.name = $1 and p.name = $2 and p.last_offset >= $4",
                          {queue, part, group, pick(0, 12)});
                break;
            case 8: // a cursor that was never made, or was deleted with its group
                sql.query("delete from queen.log_consumers c using queen.log_partitions p where "
                          "c.partition_id = p.id and p.name = $1 and c.consumer_group = $2",
                          {part, group});
                break;
            }
            if (step % 3 != 2) {
                continue; // looking costs more than doing
            }
            auto fault = compare(queues, groups);
            if (fault.empty() && step % 6 == 5) {
                fault = compare_statistics();
            }
            if (!fault.empty()) {
                return "seed " + std::to_string(seed) + " step " + std::to_string(step) + ": " +
                       fault;
            }
        }
        return {};
    }

    std::string compare(const std::vector<std::string>& queues,
                        const std::vector<std::string>& groups) {
        for (const auto& queue : queues) {
            std::vector<SqlArg> asked{nullptr, "nobody"};
            asked.insert(asked.end(), groups.begin(), groups.end());
            for (const auto& group : asked) {
                const auto rows =
                    sql.query(std::string("select c, d, c = d from queen.") +
                                  "log_queue_depth_v1($2, $3) d, (" + kCounted + ") m (c)",
                              {kTenant, queue, group});
                const std::string want = rows.get(0, 0);
                const std::string got = rows.get(0, 1);
                if (rows.get(0, 2) != "t") {
                    return "depth of " + group.text().value_or("all") + "\nwant " + want +
                           "\ngot  " + got;
                }
                if (group.text()) {
                    continue;
                }
                const auto detail = sql.one("select d -> 'totals' from queen.queue_detail_v1($1, "
                                            "$2) d",
                                            {kTenant, queue});
                const auto list = sql.one("select q -> 'messages' from jsonb_array_elements("
                                          "queen.list_queues_v1($1) -> 'queues') q where q ->> "
                                          "'name' = $2",
                                          {kTenant, queue});
                const auto letters = sql.one(kLetters, {kTenant, queue});
                for (const auto& text : {detail, list}) {
                    const auto all = std::stol(member(text, "total"));
                    const auto rest = std::stol(member(text, "pending")) +
                                      std::stol(member(text, "processing")) +
                                      std::stol(member(text, "completed"));
                    if (member(text, "deadLetter") != member(letters, "all") ||
                        all - rest != std::stol(member(letters, "kept"))) {
                        return queue + " dead letters\nwant " + letters + "\ngot  " + text;
                    }
                }
                for (const std::string figure : {"pending", "processing"}) {
                    for (const auto& text : {detail, list}) {
                        if (member(text, figure) != member(want, figure)) {
                            return queue + " " + figure + "\nwant " + want + "\ngot  " + text;
                        }
                    }
                }
            }
        }
        return compare_sums();
    }

    /// The views over several queues, held against the sums of the list.
    std::string compare_sums() {
        const auto overview = sql.one("select queen.resources_overview_v1($1)", {kTenant});
        const auto total = sql.one(kTotals, {kTenant});
        const auto by_list =
            sql.one("select jsonb_build_object('queues', count(*), 'partitions', "
                    "coalesce(sum((q ->> 'partitions')::int), 0), 'namespaces', count(distinct "
                    "nullif(q ->> 'namespace', '')), 'tasks', count(distinct nullif(q ->> 'task', "
                    "'')), 'total', coalesce(sum((q #>> '{messages,total}')::int), 0), 'pending', "
                    "coalesce(sum((q #>> '{messages,pending}')::int), 0)) from "
                    "jsonb_array_elements(queen.list_queues_v1($1) -> 'queues') q",
                    {kTenant});
        const auto by_overview =
            sql.one("select ($1::jsonb - 'messages' - 'lag' - 'throughput' - 'timestamp' - "
                    "'statsAge') || jsonb_build_object('total', $1::jsonb #> '{messages,total}', "
                    "'pending', $1::jsonb #> '{messages,pending}')",
                    {overview});
        if (!same(by_list, by_overview) || member(by_list, "total") != member(total, "total")) {
            return "overview\nwant " + by_list + " " + total + "\ngot  " + by_overview;
        }
        const auto labels = sql.one("select queen.list_labels_v1($1, 'namespace')", {kTenant});
        const auto grouped =
            sql.one("select jsonb_build_object('namespaces', coalesce(jsonb_agg(n order by n ->> "
                    "'namespace'), '[]'), 'namespaceCount', count(*)) from (select "
                    "jsonb_build_object('namespace', q ->> 'namespace', 'queues', count(*), "
                    "'partitions', sum((q ->> 'partitions')::int), 'messages', "
                    "jsonb_build_object('total', sum((q #>> '{messages,total}')::int), 'pending', "
                    "sum((q #>> '{messages,pending}')::int))) as n from jsonb_array_elements("
                    "queen.list_queues_v1($1) -> 'queues') q where q ->> 'namespace' <> '' group "
                    "by q ->> 'namespace') l",
                    {kTenant});
        return same(labels, grouped) ? "" : "labels\nwant " + grouped + "\ngot  " + labels;
    }

    /// What a refresh remembers is what counting finds (ST-1, ST-2, ST-3, F-61).
    std::string compare_statistics() {
        sql.query("select queen.refresh_stats_step_v1(null, 100)");
        const auto live = sql.one("select queen.list_queues_v1($1) - 'statsAge'", {kTenant});
        const auto cached =
            sql.one("select queen.list_queues_cached_v1($1) - 'statsAge'", {kTenant});
        if (!same(live, cached)) {
            return "cached list\nwant " + live + "\ngot  " + cached;
        }
        // Medians over several queues are near, not the same.
        const std::string overview = "- 'statsAge' - 'throughput' #- '{lag,time,median}' #- "
                                     "'{lag,offset,median}'";
        const auto now = sql.one("select queen.resources_overview_v1($1) " + overview, {kTenant});
        const auto then =
            sql.one("select queen.resources_overview_cached_v1($1) " + overview, {kTenant});
        if (!same(now, then)) {
            return "cached overview\nwant " + now + "\ngot  " + then;
        }
        const auto group = sql.one(
            "with wanted as (select m.queue_id, m.consumer_group from "
            "queen.consumer_groups_metadata m where m.queue_id is not null and m.consumer_group <> "
            "'__QUEUE_MODE__' union select p.queue_id, c.consumer_group from queen.log_consumers c "
            "join queen.log_partitions p on p.id = c.partition_id) select "
            "coalesce(min(concat_ws(' ', q.name, consumer_group, g.backlog, d)), '') from wanted w "
            "full join queen.group_stats g using (queue_id, consumer_group) join queen.queues q on "
            "q.id = queue_id, queen.log_queue_depth_v1(q.name, consumer_group, $1) d where "
            "g.backlog is distinct from (d ->> 'pending')::bigint + (d ->> 'processing')::bigint "
            "or w is null",
            {kTenant});
        return group.empty() ? "" : "group " + group;
    }

    bool same(const std::string& one, const std::string& other) {
        return sql.yes("select $1::jsonb = $2::jsonb", {one, other});
    }

    static constexpr unsigned kSeeds = 6;
};

TEST_F(ResourcesProperty, FiguresAreThoseOfSingleMessagesCounted) {
    // Somebody else's queues of the same names are never in them.
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        ASSERT_EQ(story(seed), "");
        EXPECT_EQ(sql.one("select concat_ws(' ', queen.resources_overview_v1($1) -> 'queues', "
                          "queen.log_queue_depth_v1('b', 'g', $1) is null)",
                          {kOther}),
                  "0 t");
    }
}

// Each rule of the figures broken once: the property must see it.
TEST_F(ResourcesProperty, EveryBrokenVariantIsFalsified) {
    const Mutation mutations[] = {
        // ST-2, F-34: the plain minimum over all groups
        {"_queue_figures", "FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__') AS named",
         "AS named"},
        // a registered group without a cursor row is forgotten
        {"_queue_figures", "least(k.named, r.seed)", "k.named"},
        // what retention took counts as waiting
        {"_queue_figures", "k.lowest, -1), p.log_start - 1)", "k.lowest, -1), -1)"},
        // expired leases hold messages
        {"_queue_figures", "FILTER (WHERE c.lease_expires_at >= p_now) AS leased", "AS leased"},
        {"_group_figures", "CASE WHEN c.lease_expires_at >= p_now", "CASE WHEN true"},
        // a cursor that is missing begins at the start whatever the subscription
        {"_group_figures", "WHEN g.at IS NOT NULL", "WHEN false"},
        {"_group_figures", "AND p_group <> '__QUEUE_MODE__'", "AND p_group = '__QUEUE_MODE__'"},
        // what is held, kept quiet or too young is offered as ready
        {"log_queue_depth_v1", "f.held OR f.backlog = 0", "f.backlog = 0"},
        {"log_queue_depth_v1", "OR f.newest_at > v_queue.quiet", ""},
        {"log_queue_depth_v1", "WHEN NOT v_queue.delays OR", "WHEN true OR"},
        {"_offset_until", "v_high := v_seg.base_offset - 1", "v_high := v_low"},
        // a dead letter is completed, counts for each group, or after retention took it
        {"_message_stats", "- p_dead_kept", ""},
        {"_queue_figures", "count(DISTINCT l.\"offset\")", "count(*)"},
        {"_queue_figures", "BETWEEN p.log_start AND", "BETWEEN -1 AND"},
        // statistics that forget a change, a group, or where a group begins
        {"refresh_stats_step_v1", "total = excluded.total, ", ""},
        {"refresh_stats_step_v1", "WHERE o.queue_id IS NULL\n           OR (o.partitions",
         "WHERE o.queue_id IS NULL\n           OR 1 < 0 AND (o.partitions"},
        {"refresh_stats_step_v1",
         "(o.backlog, o.waits_oldest) IS DISTINCT FROM (n.backlog, n.waits_oldest)", "false"},
        {"refresh_stats_step_v1", "WHERE w.partitions = q.partitions", ""},
        {"refresh_stats_step_v1", "greatest(l.committed, p.log_start - 1) AS done",
         "l.committed AS done"},
        {"refresh_stats_step_v1", "        UNION\n", "        INTERSECT\n"},
        {"refresh_stats_step_v1", "DELETE FROM queen.group_stats o\n        WHERE",
         "DELETE FROM queen.group_stats o\n        WHERE false AND"},
        {"resources_overview_cached_v1", "min(s.waits_oldest) AS oldest",
         "max(s.waits_oldest) AS oldest"},
        {"resources_overview_v1", "nullif(q.namespace, '')", "q.namespace"},
        {"list_labels_v1", "sum(f.backlog - f.processing)", "sum(f.backlog)"},
    };
    for (const auto& mutation : mutations) {
        const std::string original = mutate(mutation);
        std::string found;
        for (unsigned seed = 1; found.empty() && seed <= 20; ++seed) {
            found = story(seed);
        }
        EXPECT_NE(found, "") << mutation.from << " -> " << mutation.to << " was not noticed";
        sql.script(original);
    }
}

} // namespace
} // namespace queen::test
