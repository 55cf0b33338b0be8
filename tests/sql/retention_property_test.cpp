// Random pushes, pops, registrations, settings and steps over the procedures, against a model that
// says what a step may and must remove: nothing younger than the cutoff, nothing that a known group
// has not consumed, and everything else, up to the step's bound. QUEEN_BREAK names a condition that
// is taken out of the procedures.
#include "base/text.hpp"
#include "model/hash.hpp"
#include "sql/property_session.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace queen::test {
namespace {

const Breaks kBreaks{
    {"registered", {"WHERE p.id = p_pid AND m.partition_name = ''", "WHERE false"}},
    {"slowest", {"SELECT min(g.committed)", "SELECT max(g.committed)"}},
    {"whole", {"g.end_offset <= v_upto", "g.base_offset <= v_upto"}},
    {"younger", {"g.created_at < p_all_cutoff", "g.created_at <= p_all_cutoff"}},
    {"completed_younger", {"g.created_at < p_completed_cutoff", "true"}},
    {"bound", {"u.may AND u.n <= greatest(p_max_rows, 1)\n", "u.may\n"}},
    {"more", {"NOT v_walk.more,", "true,"}},
    {"oldest", {"oldest_live_at = v_walk.oldest\n", "oldest_live_at = p.oldest_live_at\n"}},
    {"hashes", {"AND s.end_offset < v_part.log_start", ""}},
    {"first_push", {"CASE WHEN p.segment_count = 0 THEN s.at", "CASE WHEN false THEN s.at"}},
    {"books", {"segment_count = p.segment_count - v_walk.segments", "segment_count = 0"}},
};

SqlSession& session() {
    static SqlSession session = [] {
        SqlSession fresh = property_session(kBreaks);
        fresh.script("SET synchronous_commit = off");
        return fresh;
    }();
    return session;
}

constexpr std::int64_t kNever = INT64_MIN;

struct Step {
    enum Kind { push, pop, enlist, forget, wait, settings, retain, evict, purge, kinds };
    int kind;
    int a, b;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"push",     "pop",    "enlist", "forget", "wait",
                                             "settings", "retain", "evict",  "purge"};
    return out << kNames[step.kind] << '(' << step.a << ' ' << step.b << ')';
}

class World {
public:
    World() {
        session().script("truncate queen.queues, queen.log_txns cascade; truncate "
                         "queen.retention_history; select set_config('test.now', '0', false)");
        session().script("insert into queen.queues (name, dedup_window_seconds) values ('q', 0); "
                         "insert into queen.log_partitions (queue_id, name) select id, 'p' from "
                         "queen.queues");
        pid_ = session().one("select id from queen.log_partitions");
    }

    void run(const Step& step) {
        switch (step.kind) {
        case Step::push:
            push(1 + step.a % 3);
            break;
        case Step::pop:
            session().query("select queen.log_pop_specific_bin_v1('q', 'p', $1, $2, 60, 'w', true)",
                            {group(step.a), 1 + step.b % 3});
            break;
        case Step::enlist: // a wildcard pop; with new, the group begins now
            session().query(
                "select queen.log_pop_wildcard_bin_v1('q', $1, 1, 60, 'w', true, 1, $2)",
                {group(step.a), step.b % 2 == 0 ? "all" : "new"});
            break;
        case Step::forget: // as a seeder leaves it that met a locked partition
            session().query("delete from queen.log_consumers where consumer_group = $1",
                            {group(step.a)});
            break;
        case Step::wait:
            now_ += 1 + step.a % 4;
            session().query("select set_config('test.now', $1, false)", {std::to_string(now_)});
            break;
        case Step::settings:
            session().query(
                "update queen.queues set retention_enabled = $1, retention_seconds = "
                "$2, completed_retention_seconds = $3",
                {step.a % 4 != 0, age_ = (step.a / 4 % 3) * 4, completed_age_ = (step.b % 3) * 2});
            enabled_ = step.a % 4 != 0;
            break;
        case Step::retain:
            retain(1 + step.a % 3);
            break;
        case Step::evict:
            remove(1 + step.a % 3, now_ - 2 - step.b % 6, kNever,
                   "queen.log_retention_step_v1($1, " + time(now_ - 2 - step.b % 6) +
                       ", null, $2, 'max_wait_time_eviction')");
            break;
        default:
            purge(1 + step.a % 3, now_ - 1 - step.b % 6);
        }
        check();
    }

private:
    struct Segment {
        std::int64_t base, end, at;
    };

    static std::string group(int n) { return "g" + std::to_string(n % 3); }
    static std::string time(std::int64_t seconds) {
        return seconds == kNever ? "null::timestamptz"
                                 : "timestamptz '2030-01-01 00:00:00+00' + interval '" +
                                       std::to_string(seconds) + " s'";
    }
    std::int64_t next() const { return last_ + 1; }

    void push(int count) {
        std::string hashes = "\\x";
        for (int i = 0; i < count; ++i) {
            hashes += to_hex(hash_transaction_id("m" + std::to_string(next() + i)).view());
        }
        session().query("select queen.log_push_one_v1('q', 'p', $1, $2, -1, $3)",
                        {count, hashes, std::string("\\x00")});
        segments_.push_back({next(), next() + count - 1, now_});
        hashes_.push_back(segments_.back());
        last_ += count;
    }

    /// Where every known group has come to; nullopt when none is known.
    std::optional<std::int64_t> consumed() {
        std::optional<std::int64_t> least;
        const auto count = [&](std::int64_t committed) {
            least = std::min(least.value_or(committed), committed);
        };
        std::vector<std::string> here;
        const SqlRows cursors =
            session().query("select consumer_group, committed from queen.log_consumers");
        for (std::size_t i = 0; i < cursors.size(); ++i) {
            here.push_back(cursors.get(i, 0));
            count(cursors.integer(i, 1));
        }
        const SqlRows registered = session().query(
            "select consumer_group, extract(epoch from subscription_timestamp - timestamptz "
            "'2030-01-01 00:00:00+00')::bigint from queen.consumer_groups_metadata");
        for (std::size_t i = 0; i < registered.size(); ++i) {
            if (std::ranges::find(here, registered.get(i, 0)) == here.end()) {
                const auto first = std::ranges::find_if(
                    segments_, [&](const Segment& s) { return s.at >= registered.integer(i, 1); });
                count(first == segments_.end() ? last_ : first->base - 1);
            }
        }
        return least;
    }

    void retain(int rows) {
        const std::int64_t cutoff = enabled_ && age_ > 0 ? now_ - age_ : kNever;
        const std::int64_t completed =
            enabled_ && completed_age_ > 0 ? now_ - completed_age_ : kNever;
        const std::int64_t oldest = segments_.empty() ? now_ : segments_.front().at;
        const bool due = oldest < std::max(cutoff, completed);
        RC_ASSERT(session().one("select count(*) from queen.log_due_v1('retention', null, null, "
                                "null, 10)") == (due ? "1" : "0"));
        remove(rows, cutoff, completed,
               "queen.log_retention_step_v1($1, " + time(cutoff) + ", " + time(completed) +
                   ", $2)");
    }

    void remove(int rows, std::int64_t cutoff, std::int64_t completed, const std::string& call) {
        const auto upto = completed == kNever ? std::nullopt : consumed();
        std::size_t may = 0;
        while (may < segments_.size() &&
               (segments_[may].at < cutoff ||
                (segments_[may].at < completed && upto && segments_[may].end <= *upto))) {
            ++may;
        }
        const std::size_t goes = std::min<std::size_t>(may, static_cast<std::size_t>(rows));
        std::int64_t messages = 0;
        for (std::size_t i = 0; i < goes; ++i) {
            messages += segments_[i].end - segments_[i].base + 1;
        }
        const SqlRows got = session().query(
            "select deleted, messages, done, new_log_start, coalesce((select sum(messages_deleted) "
            "from queen.retention_history), 0) from " +
                call,
            {pid_, rows});
        segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(goes));
        removed_ += messages;
        RC_ASSERT(got.integer(0, 0) == static_cast<std::int64_t>(goes));
        RC_ASSERT(got.integer(0, 1) == messages);
        RC_ASSERT(got.get(0, 2) == (goes == may ? "t" : "f"));
        RC_ASSERT(got.integer(0, 3) == (segments_.empty() ? next() : segments_.front().base));
    }

    void purge(int rows, std::int64_t cutoff) {
        const std::int64_t start = segments_.empty() ? next() : segments_.front().base;
        std::size_t may = 0;
        while (may < hashes_.size() && hashes_[may].at < cutoff && hashes_[may].end < start) {
            ++may;
        }
        const std::size_t goes = std::min<std::size_t>(may, static_cast<std::size_t>(rows));
        const SqlRows got = session().query(
            "select deleted, done from queen.log_txns_purge_step_v1($1, " + time(cutoff) + ", $2)",
            {pid_, rows});
        hashes_.erase(hashes_.begin(), hashes_.begin() + static_cast<std::ptrdiff_t>(goes));
        RC_ASSERT(got.integer(0, 0) == static_cast<std::int64_t>(goes));
        RC_ASSERT(got.get(0, 1) == (goes == may ? "t" : "f"));
    }

    /// The row of the partition and the tables against the model.
    void check() {
        const auto oldest = [](const std::vector<Segment>& all) {
            return all.empty() ? std::string("-") : std::to_string(all.front().at);
        };
        const auto start = [this](const std::vector<Segment>& all) {
            return std::to_string(all.empty() ? next() : all.front().base);
        };
        const std::string want = std::to_string(segments_.size()) + " " + start(segments_) + " " +
                                 oldest(segments_) + " " + start(hashes_) + " " + oldest(hashes_) +
                                 " " + std::to_string(segments_.size()) + " " +
                                 std::to_string(hashes_.size()) + " " + std::to_string(removed_);
        RC_ASSERT(
            session().one(
                "select concat_ws(' ', segment_count, log_start, coalesce(extract(epoch from "
                "oldest_live_at - timestamptz '2030-01-01 00:00:00+00')::bigint::text, '-'), "
                "txns_start, coalesce(extract(epoch from oldest_txn_at - timestamptz '2030-01-01 "
                "00:00:00+00')::bigint::text, '-'), (select count(*) from queen.log_segments), "
                "(select count(*) from queen.log_txns), (select coalesce(sum(messages_deleted), 0) "
                "from queen.retention_history)) from queen.log_partitions") == want);
    }

    std::string pid_;
    std::int64_t now_ = 0, last_ = -1, removed_ = 0;
    bool enabled_ = false;
    int age_ = 0, completed_age_ = 0;
    std::vector<Segment> segments_, hashes_;
};

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(
        rc::gen::set(&Step::kind, rc::gen::weightedElement<int>({{6, Step::push},
                                                                 {5, Step::pop},
                                                                 {2, Step::enlist},
                                                                 {1, Step::forget},
                                                                 {4, Step::wait},
                                                                 {2, Step::settings},
                                                                 {5, Step::retain},
                                                                 {1, Step::evict},
                                                                 {2, Step::purge}})),
        rc::gen::set(&Step::a, rc::gen::inRange(0, 12)),
        rc::gen::set(&Step::b, rc::gen::inRange(0, 12)));
}

RC_GTEST_PROP(RetentionProperty, AStepRemovesWhatItMayAndMustAndKeepsTheBooks, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    for (const Step& step : steps) {
        world.run(step);
    }
}

} // namespace
} // namespace queen::test
