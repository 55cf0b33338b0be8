// Random states against a list of single messages: what the browser shows by definition, in SQL
// that expands every segment and sorts it all (ST-5, K40, K41).
#include "sql/sql_fixture.hpp"

#include <algorithm>
#include <random>

namespace queen::test {
namespace {

/// Every message of tenant $1 in the order of the list, as "partition offset", its status, its
/// queue and its stamp.
constexpr const char* kListed = R"sql(
with parts as (select p.*, q.name as queue from queen.log_partitions p
               join queen.queues q on q.id = p.queue_id where q.tenant_id = $1),
msgs as (select s.partition_id as pid, p.queue, p.queue_id, o as off, s.created_at as at
         from queen.log_segments s join parts p on p.id = s.partition_id,
              generate_series(s.base_offset, s.end_offset) o),
named as (select c.partition_id as pid, c.consumer_group as grp from queen.log_consumers c
          where c.consumer_group <> '__QUEUE_MODE__'
          union select p.id, m.consumer_group from parts p
                join queen.consumer_groups_metadata m on m.queue_id = p.queue_id
                where m.consumer_group <> '__QUEUE_MODE__')
select m.pid || ' ' || m.off, m.queue,
       case when exists (select from queen.log_dlq d
                         where d.partition_id = m.pid and d."offset" = m.off) then 'dead_letter'
            when case when exists (select from named n where n.pid = m.pid)
                 then not exists (
                     select from named n
                     left join queen.log_consumers c
                         on c.partition_id = n.pid and c.consumer_group = n.grp
                     left join queen.consumer_groups_metadata r
                         on r.queue_id = m.queue_id and r.consumer_group = n.grp
                     where n.pid = m.pid
                       and case when c.partition_id is not null then m.off > c.committed
                                else m.at >= r.subscription_timestamp end)
                 else exists (select from queen.log_consumers c
                              where c.partition_id = m.pid and m.off <= c.committed) end
            then 'completed'
            when exists (select from queen.log_consumers c
                         where c.partition_id = m.pid and c.lease_expires_at >= queen._clock()
                           and m.off > c.committed and m.off <= c.batch_end) then 'processing'
            else 'pending' end,
       m.at
from msgs m
order by m.at desc, m.pid, m.off desc
)sql";

struct Row {
    std::string key, queue, status, at;
};

class MessagesProperty : public SqlTest {
protected:
    MessagesProperty() : SqlTest(Database::own) {}

    std::vector<Row> listed() {
        const auto rows = sql.query(kListed, {kTenant});
        std::vector<Row> all;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            all.push_back({rows.get(i, 0), rows.get(i, 1), rows.get(i, 2), rows.get(i, 3)});
        }
        return all;
    }

    /// What the function answers for one random question, held against all there is. @return "" or
    /// where they part
    std::string ask(const std::vector<Row>& all, std::mt19937& random) {
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        static const std::vector<std::string> statuses{"pending", "processing", "completed",
                                                       "dead_letter"};
        const int chosen = pick(0, 6);
        const SqlArg status =
            chosen < 4 ? SqlArg(statuses[static_cast<std::size_t>(chosen)]) : SqlArg(nullptr);
        const SqlArg queue = pick(0, 2) == 0 ? SqlArg(nullptr) : SqlArg("a.x");
        const SqlArg part = queue.text() && pick(0, 3) == 0 ? SqlArg("p") : SqlArg(nullptr);
        const int want = pick(0, 3) == 0 ? pick(9, 200) : pick(1, 8);
        const auto stamp = [&](int odds) {
            return pick(0, odds) != 0 || all.empty()
                       ? SqlArg(nullptr)
                       : SqlArg(all[static_cast<std::size_t>(
                                        pick(0, static_cast<int>(all.size()) - 1))]
                                    .at);
        };
        const SqlArg from = stamp(5);
        const SqlArg to = stamp(5);
        const int after =
            all.empty() || pick(0, 1) == 0 ? -1 : pick(0, static_cast<int>(all.size()) - 1);
        SqlArg after_pid = nullptr, after_at = nullptr, after_offset = nullptr;
        if (after >= 0) {
            const Row& row = all[static_cast<std::size_t>(after)];
            after_at = row.at;
            after_pid = row.key.substr(0, row.key.find(' '));
            after_offset = row.key.substr(row.key.find(' ') + 1);
        }
        const std::string part_id = part.text() ? pid("p", "a.x") : "";

        std::vector<std::string> wanted;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Row& row = all[i];
            if (static_cast<int>(i) > after && (!queue.text() || row.queue == *queue.text()) &&
                (!part.text() || row.key.starts_with(part_id + " ")) &&
                (!from.text() || row.at >= *from.text()) && (!to.text() || row.at < *to.text()) &&
                (!status.text() || row.status == *status.text())) {
                wanted.push_back(row.key);
            }
        }
        const auto answer = sql.one(
            "select queen.log_messages_v1($1, $2, $3, null, null, $4, coalesce($5, "
            "timestamptz '2029-01-01'), $6, $7, $8, $9, $10)",
            {kTenant, queue, part, status, from, to, after_at, after_pid, after_offset, want});
        const auto got = sql.query(
            "select ($1::jsonb #>> array['places', s ->> 0, 'id']) || ' ' || o from "
            "jsonb_array_elements($1::jsonb -> 'slices') with ordinality as t (s, n), "
            "generate_series((s ->> 4)::bigint, (s ->> 3)::bigint, -1) o order by n, o desc",
            {answer});
        std::vector<std::string> shown;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const std::string key = got.get(i, 0);
            const auto row = std::find_if(
                all.begin(), all.end(), [&](const Row& candidate) { return candidate.key == key; });
            if (row == all.end()) {
                return "there is no " + key;
            }
            if (!status.text() || row->status == *status.text()) {
                shown.push_back(key);
            }
        }
        const bool whole = got.size() < static_cast<std::size_t>(want);
        const bool begins =
            shown.size() <= wanted.size() && std::equal(shown.begin(), shown.end(), wanted.begin());
        if (member(answer, "complete") != "true" || !begins ||
            (whole && shown.size() != wanted.size())) {
            std::string text =
                "status " + status.text().value_or("any") + " queue " +
                queue.text().value_or("any") + " partition " + part.text().value_or("any") +
                " want " + std::to_string(want) + " after " + std::to_string(after) + " from " +
                from.text().value_or("-") + " to " + to.text().value_or("-") + "\nall:";
            for (const Row& row : all) {
                text += "\n  " + row.key + " " + row.status + " " + row.at;
            }
            text += "\nwanted:";
            for (const auto& key : wanted) {
                text += "\n  " + key;
            }
            return text + "\ngot: " + answer;
        }
        return dead_ones(all, answer);
    }

    /// The list of dead letters is that of the slices.
    std::string dead_ones(const std::vector<Row>& all, const std::string& answer) {
        const auto told = sql.query("select ($1::jsonb #>> array['places', d ->> 0, 'id']) || ' ' "
                                    "|| (d ->> 1) from jsonb_array_elements($1::jsonb -> 'dead') d",
                                    {answer});
        std::size_t dead = 0;
        const auto slices =
            sql.query("select ($1::jsonb #>> array['places', s ->> 0, 'id']) || ' ' || o from "
                      "jsonb_array_elements($1::jsonb -> 'slices') s, generate_series((s ->> "
                      "3)::bigint, (s ->> 4)::bigint) o",
                      {answer});
        for (std::size_t i = 0; i < slices.size(); ++i) {
            for (const Row& row : all) {
                dead += row.key == slices.get(i, 0) && row.status == "dead_letter" ? 1 : 0;
            }
        }
        return dead == told.size() ? "" : "dead letters: " + answer;
    }

    std::string story(unsigned seed) {
        sql.script("truncate queen.queues, queen.log_txns cascade");
        std::mt19937 random(seed);
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        const auto any = [&](const std::vector<std::string>& of) {
            return of[static_cast<std::size_t>(pick(0, static_cast<int>(of.size()) - 1))];
        };
        const std::vector<std::string> queues{"a.x", "a.x", "b"};
        std::vector<std::string> parts{"p", "r", "s"};
        for (int i = 0; i < 9; ++i) { // more partitions than are asked one by one
            parts.push_back("w" + std::to_string(i));
        }
        const std::vector<std::string> groups{"g", "h", "__QUEUE_MODE__"};
        double now = 0;
        int ids = 0;
        clock(0);
        push("a.x", "p", {"first"});
        for (int step = 0; step < 40; ++step) {
            const std::string queue = any(queues);
            const std::string part = any(parts);
            const std::string group = any(groups);
            now += pick(0, 2) == 0 ? 0.45 * pick(0, 8) : 0;
            clock(now);
            switch (pick(0, 9)) {
            case 0:
            case 1:
            case 2:
            case 3: {
                std::vector<std::string> batch;
                for (int i = pick(1, 4); i > 0; --i) {
                    batch.push_back("m" + std::to_string(ids++));
                }
                push(queue, part, batch);
                break;
            }
            case 4:
            case 5:
                wildcard({.queue = queue,
                          .group = group,
                          .budget = pick(1, 6),
                          .lease = pick(1, 20),
                          .auto_ack = pick(0, 2) == 0,
                          .partitions = pick(1, 4),
                          .mode = any({"all", "new"})});
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
            case 8:
                sql.query("insert into queen.log_dlq (queue_id, partition_id, consumer_group, "
                          "\"offset\") select p.queue_id, p.id, $2, $3 from queen.log_partitions p "
                          "where p.name = $1",
                          {part, group, pick(0, 8)});
                break;
            case 9: // a cursor that was never made, or was deleted with its group
                sql.query("delete from queen.log_consumers c using queen.log_partitions p where "
                          "c.partition_id = p.id and p.name = $1 and c.consumer_group = $2",
                          {part, group});
                break;
            }
            if (step % 5 != 4) {
                continue; // looking costs more than doing
            }
            const auto all = listed();
            for (int question = 0; question < 6; ++question) {
                if (const auto fault = ask(all, random); !fault.empty()) {
                    return "seed " + std::to_string(seed) + " step " + std::to_string(step) + ": " +
                           fault;
                }
            }
        }
        return {};
    }

    static constexpr unsigned kSeeds = 12;
};

TEST_F(MessagesProperty, APageIsWhatSortingEverySingleMessageGives) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        ASSERT_EQ(story(seed), "");
    }
}

// Each rule of the list broken once: the property must see it.
TEST_F(MessagesProperty, EveryBrokenVariantIsFalsified) {
    const Mutation mutations[] = {
        // where a position stands among equal stamps
        {"log_messages_v1", "WHEN l.id >= p_after_pid THEN", "WHEN l.id > p_after_pid THEN"},
        {"log_messages_v1", "ELSE p_after_at - interval '1 us' END", "ELSE p_after_at END"},
        {"log_messages_v1", "THEN p_after_offset - 1 END", "THEN p_after_offset END"},
        {"log_messages_v1", "p_to - interval '1 us'", "p_to"},
        // partitions left out too early
        {"log_messages_v1", "a.last_write_at >= v_edge - v_slack", "a.last_write_at >= v_edge"},
        {"log_messages_v1", "ORDER BY parts.newest_at DESC, parts.id", "ORDER BY parts.id"},
        {"log_messages_v1", "WHEN max(r.total) >= p_want THEN min(r.created_at)",
         "WHEN true THEN max(r.created_at)"},
        // what a status leaves out
        {"log_messages_v1", "greatest(s.done + 1, f.log_start)",
         "greatest(s.done + 2, f.log_start)"},
        {"log_messages_v1", "WHEN 'completed' THEN s.done", "WHEN 'completed' THEN s.done - 1"},
        {"log_messages_v1", "coalesce(s.lease_to, -1)", "coalesce(s.lease_to, -1) - 1"},
        {"log_messages_v1", "FILTER (WHERE g.name <> '__QUEUE_MODE__')", ""},
        {"_message_groups", "AND m.consumer_group <> '__QUEUE_MODE__'", "AND false"},
        {"_message_slices", "high := least(v_end, p_high);", "high := v_end;"},
        {"_message_slices", "v_left := v_left - (high - low + 1);", "v_left := v_left - 50;"},
        {"_message_round", "t.pid, s.high DESC", "t.pid DESC, s.high DESC"},
    };
    for (const auto& mutation : mutations) {
        const std::string original = mutate(mutation);
        std::string found;
        for (unsigned seed = 1; found.empty() && seed <= 40; ++seed) {
            found = story(seed);
        }
        EXPECT_NE(found, "") << mutation.from << " -> " << mutation.to << " was not noticed";
        sql.script(original);
    }
}

} // namespace
} // namespace queen::test
