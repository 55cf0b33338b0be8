// Pops, acks, seeks, deletes and subscriptions in random order, against a model of what each cursor
// is afterwards and of the figures that follow from it (GRP-1 to GRP-7, K48).
#include "sql/groups_fixture.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>

namespace queen::test {
namespace {

using Offset = std::int64_t;

/// What the test knows of a partition: each message by its time. A segment is a push.
struct ModelPartition {
    std::vector<double> at;
    std::vector<Offset> ends; ///< of the stored segments
    Offset start = 0;

    Offset last() const { return static_cast<Offset>(at.size()) - 1; }
    /// The cursor of who begins at a time.
    Offset before(double time) const {
        for (Offset i = start; i <= last(); ++i) {
            if (at[static_cast<std::size_t>(i)] >= time) {
                return i - 1;
            }
        }
        return last();
    }
};

struct ModelCursor {
    Offset committed = -1;
    std::string worker;
    Offset batch_end = -1;
    double until = 0;
    bool live(double now) const { return !worker.empty() && until >= now; }
};

struct Lease {
    std::string partition, group, worker;
    Offset end;
};

constexpr double kBeginning = -1e9;
const std::string kQueueMode = "__QUEUE_MODE__";

class Model {
public:
    double now = 0;
    std::map<std::string, ModelPartition> partitions;
    std::map<std::string, double> records;                              ///< by group
    std::map<std::pair<std::string, std::string>, ModelCursor> cursors; ///< partition, group

    ModelCursor& create(const std::string& partition, const std::string& group) {
        const auto [at, made] = cursors.try_emplace({partition, group});
        if (made) {
            const auto record = records.find(group);
            at->second.committed = record == records.end() || group == kQueueMode
                                       ? -1
                                       : partitions[partition].before(record->second);
        }
        return at->second;
    }
    void enlist(const std::string& group, double from) {
        if (records.try_emplace(group, from).second) {
            for (const auto& [name, of] : partitions) {
                cursors.try_emplace({name, group}, ModelCursor{.committed = of.before(from)});
            }
        }
    }
    /// @return the lease, when the pop left one
    std::optional<Lease> pop(const std::string& partition, const std::string& group, Offset budget,
                             double lease, const std::string& worker, bool auto_ack) {
        const auto& from = partitions[partition];
        auto& cursor = create(partition, group);
        if (cursor.live(now) || cursor.committed >= from.last()) {
            return std::nullopt;
        }
        if (from.start > from.last()) {
            cursor.committed = from.last(); // nothing is left of it
            return std::nullopt;
        }
        const Offset end =
            std::min(from.last(), std::max(cursor.committed + 1, from.start) + budget - 1);
        if (auto_ack) {
            cursor = {.committed = end, .worker = {}, .batch_end = -1, .until = 0};
            return std::nullopt;
        }
        cursor.worker = worker;
        cursor.batch_end = end;
        cursor.until = now + lease;
        return Lease{partition, group, worker, end};
    }
    bool ack(const Lease& lease) {
        const auto at = cursors.find({lease.partition, lease.group});
        if (at == cursors.end() || at->second.worker != lease.worker || at->second.until <= now) {
            return false;
        }
        at->second = {.committed = lease.end, .worker = {}, .batch_end = -1, .until = 0};
        return true;
    }
    bool known(const std::string& group) const {
        return group == kQueueMode || records.contains(group) ||
               std::any_of(cursors.begin(), cursors.end(),
                           [&](const auto& c) { return c.first.second == group; });
    }
    void seek(const std::string& partition, const std::string& group, std::optional<double> to) {
        const auto& of = partitions[partition];
        cursors[{partition, group}] = {.committed = to ? of.before(*to) : of.last(),
                                       .worker = {},
                                       .batch_end = -1,
                                       .until = 0};
    }
    std::string dump() const {
        std::string out;
        for (const auto& [key, cursor] : cursors) {
            out += key.second + "/" + key.first + "=" + std::to_string(cursor.committed) +
                   (cursor.live(now) ? "(" + cursor.worker + ")" : "") + " ";
        }
        return out;
    }
    /// Each group's cursors, partitions that lag, lag and the age of it.
    std::string figures() const {
        std::map<std::string, std::array<Offset, 4>> groups;
        const auto count = [&](const std::string& partition, const std::string& group,
                               Offset committed, bool row) {
            const auto& of = partitions.at(partition);
            auto& figure = groups[group];
            const Offset done = std::max(committed, of.start - 1);
            figure[0] += row ? 1 : 0;
            if (of.last() > done) {
                figure[1] += 1;
                figure[2] += of.last() - done;
                figure[3] =
                    std::max(figure[3],
                             static_cast<Offset>(now - of.at[static_cast<std::size_t>(done + 1)]));
            }
        };
        for (const auto& [group, from] : records) {
            groups[group];
            for (const auto& [name, of] : partitions) {
                if (!cursors.contains({name, group})) {
                    count(name, group, of.before(from), false);
                }
            }
        }
        for (const auto& [key, cursor] : cursors) {
            count(key.first, key.second, cursor.committed, true);
        }
        std::string out;
        for (const auto& [name, figure] : groups) {
            out += name;
            for (const Offset value : figure) {
                out += "/" + std::to_string(value);
            }
            out += " ";
        }
        return out;
    }
};

class GroupsProperty : public GroupsTest {
protected:
    GroupsProperty() : GroupsTest(Database::own) {}

    std::string stored_cursors() {
        return sql.one("select coalesce(string_agg(c.consumer_group || '/' || p.name || '=' || "
                       "c.committed || coalesce('(' || case when c.lease_expires_at >= "
                       "queen._clock() then c.worker_id end || ')', '') || ' ', '' order by p.name "
                       "collate \"C\", c.consumer_group collate \"C\"), '') from "
                       "queen.log_consumers c join queen.log_partitions p on p.id = "
                       "c.partition_id");
    }
    std::string stored_figures() {
        return sql.one("select coalesce(string_agg(concat_ws('/', g ->> 'name', g -> "
                       "'partitionCursors', g -> 'partitionsWithLag', g -> 'totalLag', g -> "
                       "'maxTimeLag') || ' ', '' order by n), '') from "
                       "jsonb_array_elements(queen.get_consumer_groups_v4()) with ordinality t (g, "
                       "n)");
    }

    /// @return "" or where model and database part
    std::string story(unsigned seed) {
        sql.script("truncate queen.queues, queen.log_txns, queen.hotlist_repairs cascade");
        std::mt19937 random(seed);
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        const auto any = [&](const std::vector<std::string>& of) {
            return of[static_cast<std::size_t>(pick(0, static_cast<int>(of.size()) - 1))];
        };
        const std::vector<std::string> names{"a", "b", "c"};
        const std::vector<std::string> groups{"g", "h", kQueueMode};
        Model model;
        std::vector<double> pushed{-1};
        // Often that of a push, to the very moment.
        const auto some_time = [&]() -> double {
            return pick(0, 1) == 0 ? pick(-1, static_cast<int>(model.now) + 2)
                                   : pushed[static_cast<std::size_t>(
                                         pick(0, static_cast<int>(pushed.size()) - 1))];
        };
        std::vector<Lease> leases;
        std::string log;
        int ids = 0;
        for (int step = 0; step < 40; ++step) {
            // Sometimes long enough for a watermark to hide what nobody writes to.
            model.now += pick(0, 3) == 0 ? 200 : pick(0, 4);
            clock(model.now);
            const std::string partition = any(names);
            const std::string group = any(groups);
            const std::string worker = "w" + std::to_string(step);
            const bool is_known = model.known(group);
            const std::string what = std::to_string(step) + "@" +
                                     std::to_string(static_cast<int>(model.now)) + " " + group +
                                     "/" + partition + " ";
            const bool stored = model.partitions.contains(partition);
            switch (std::array{0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9, 10,
                               11}[static_cast<std::size_t>(pick(0, 13))]) {
            case 0:
            case 1:
            case 2: {
                std::vector<std::string> batch;
                auto& of = model.partitions[partition];
                for (int i = pick(1, 3); i > 0; --i) {
                    batch.push_back("m" + std::to_string(ids++));
                    of.at.push_back(model.now);
                }
                of.ends.push_back(of.last());
                pushed.push_back(model.now);
                push("q", partition, batch);
                log += what + "push\n";
                break;
            }
            case 3: {
                const bool auto_ack = pick(0, 1) == 0;
                const int budget = pick(1, 4);
                const int lease = pick(1, 20);
                pop({.queue = "q",
                     .partition = partition,
                     .group = group,
                     .budget = budget,
                     .lease = lease,
                     .worker = worker,
                     .auto_ack = auto_ack});
                if (stored) {
                    if (const auto left =
                            model.pop(partition, group, budget, lease, worker, auto_ack)) {
                        leases.push_back(*left);
                    }
                }
                log += what + "pop " + std::to_string(budget) + (auto_ack ? " auto\n" : "\n");
                break;
            }
            case 4:
            case 5: {
                const bool auto_ack = pick(0, 1) == 0;
                const bool fresh = pick(0, 1) == 0;
                const int lease = pick(1, 20);
                wildcard({.queue = "q",
                          .group = group,
                          .budget = 1000,
                          .lease = lease,
                          .worker = worker,
                          .auto_ack = auto_ack,
                          .mode = fresh ? "new" : "all"});
                model.enlist(group, fresh && group != kQueueMode ? model.now : kBeginning);
                for (const auto& [name, unused] : model.partitions) {
                    if (const auto left = model.pop(name, group, 1000, lease, worker, auto_ack)) {
                        leases.push_back(*left);
                    }
                }
                log += what + (fresh ? "wildcard new" : "wildcard") + (auto_ack ? " auto\n" : "\n");
                break;
            }
            case 6: {
                if (leases.empty()) {
                    break;
                }
                const auto& lease =
                    leases[static_cast<std::size_t>(pick(0, static_cast<int>(leases.size()) - 1))];
                const std::string done =
                    sql.one("select queen.log_ack_v1('q', $1, $2, $3, $4) ->> 'ok'",
                            {lease.partition, lease.group, lease.worker, lease.end});
                log += what + "ack of " + lease.worker + "\n";
                if (done != (model.ack(lease) ? "true" : "false")) {
                    return log + "the ack said " + done;
                }
                break;
            }
            case 7:
            case 8: {
                const bool end = pick(0, 2) == 0;
                const double to = some_time();
                const std::string said = end ? seek_end(group) : seek(to, group);
                log += what + "seek " + (end ? "end" : std::to_string(to)) + ": " + said + "\n";
                if (!model.partitions.empty() && is_known) {
                    for (const auto& [name, unused] : model.partitions) {
                        model.seek(name, group, end ? std::nullopt : std::optional(to));
                    }
                }
                break;
            }
            case 9: {
                const double to = some_time();
                const std::string said = seek_partition(to, partition, group);
                log += what + "seek of one " + std::to_string(to) + ": " + said + "\n";
                if (stored && is_known) {
                    model.seek(partition, group, to);
                }
                break;
            }
            case 10: {
                const bool metadata = pick(0, 1) == 0;
                log += what + "delete " + remove(group, metadata) + "\n";
                std::erase_if(model.cursors,
                              [&](const auto& c) { return c.first.second == group; });
                if (metadata) {
                    model.records.erase(group);
                }
                break;
            }
            case 11: {
                const double to = some_time();
                log += what + "subscription " + std::to_string(to) + ": " +
                       sql.one("select queen.update_consumer_group_subscription_v1($1, $2)",
                               {group, moment(to)}) +
                       "\n";
                const auto record = model.records.find(group);
                if (record != model.records.end() && group != kQueueMode) {
                    record->second = to;
                }
                break;
            }
            }
            if (pick(0, 7) == 0) { // retention
                for (auto& [name, of] : model.partitions) {
                    if (of.ends.empty()) {
                        continue;
                    }
                    sql.query("with gone as (delete from queen.log_segments where partition_id = "
                              "$1 and base_offset = $2) update queen.log_partitions set log_start "
                              "= $3, segment_count = segment_count - 1 where id = $1",
                              {pid(name), of.start, of.ends.front() + 1});
                    of.start = of.ends.front() + 1;
                    of.ends.erase(of.ends.begin());
                    log += "retention in " + name + "\n";
                    break;
                }
            }
            if (const std::string got = stored_cursors(); got != model.dump()) {
                return log + "cursors\nwant " + model.dump() + "\ngot  " + got;
            }
            if (const std::string got = stored_figures(); got != model.figures()) {
                return log + "figures\nwant " + model.figures() + "\ngot  " + got;
            }
        }
        return {};
    }

    std::string broken(unsigned seeds) {
        for (unsigned seed = 1; seed <= seeds; ++seed) {
            if (const auto fault = story(seed); !fault.empty()) {
                return "seed " + std::to_string(seed) + "\n" + fault;
            }
        }
        return {};
    }
};

TEST_F(GroupsProperty, CursorsAndFiguresAreThoseOfTheModel) {
    EXPECT_EQ(broken(30), "");
}

// Each rule broken once: the property must see it.
TEST_F(GroupsProperty, EveryBrokenVariantIsFalsified) {
    const Mutation mutations[] = {
        // K48: what was stored at that very moment is skipped, or more than asked for is moved
        {"_seek", "p_at - interval '1 microsecond'", "p_at"},
        {"_seek", "p.newest_at < p_at THEN", "p.newest_at <= p_at THEN"},
        {"_seek", "AND p.id BETWEEN v_least AND v_most\n      AND c.partition_id",
         "AND c.partition_id"},
        // old leases live on
        {"_seek", "worker_id = NULL, lease_expires_at = NULL",
         "worker_id = c.worker_id, lease_expires_at = c.lease_expires_at"},
        // missing cursors stay missing
        {"_seek", "FROM unnest(v_new)", "FROM unnest(v_new[:0])"},
        // what retention took is sought
        {"_seek", "p.log_start - 1, p.last_offset)", "-1, p.last_offset)"},
        // anybody's name makes cursors
        {"_seek", "p_group <> '__QUEUE_MODE__'", "false"},
        // the scan goes on to look at what was written lately
        {"_seek", "DELETE FROM queen.consumer_watermarks w",
         "DELETE FROM queen.consumer_watermarks w USING (SELECT 1 WHERE false) f"},
        {"log_delete_consumer_group_v1", "DELETE FROM queen.consumer_watermarks w",
         "DELETE FROM queen.consumer_watermarks w USING (SELECT 1 WHERE false) f"},
        // the subscription survives its group, or goes though it was to be kept
        {"log_delete_consumer_group_v1", "IF p_metadata THEN", "IF NOT p_metadata THEN"},
        {"log_delete_consumer_group_v1", "m.queue_id = ANY (v_qids) OR", ""},
        // somebody else's subscription is moved, or none
        {"update_consumer_group_subscription_v1", "AND m.consumer_group = p_group\n", ""},
        {"update_consumer_group_subscription_v1", "subscription_timestamp = p_at",
         "subscription_timestamp = m.subscription_timestamp"},
        {"update_consumer_group_subscription_v1", "IF p_group = '__QUEUE_MODE__'", "IF false"},
        // figures
        {"_cursor_figures", "greatest(g.at, p.log_start - 1)", "g.at"},
        {"_cursor_figures", "s.base_offset <= d.done + 1", "s.base_offset <= d.done"},
        {"_cursor_figures", "WHERE m.queue_id = u.qid", "WHERE false"},
        {"get_consumer_groups_v4", "min(f.oldest_at)", "max(f.oldest_at)"},
        {"get_consumer_groups_v4", "count(*) FILTER (WHERE f.is_row)", "count(*)"},
    };
    for (const auto& mutation : mutations) {
        const std::string original = mutate(mutation);
        EXPECT_NE(broken(100), "") << mutation.function << ": " << mutation.from << " -> "
                                   << mutation.to << " was not noticed";
        sql.script(original);
    }
}

} // namespace
} // namespace queen::test
