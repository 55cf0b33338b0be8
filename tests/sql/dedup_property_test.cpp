// The property of tests/core/broker/dedup_property_test.cpp over the procedures themselves, and
// over broken ones: QUEEN_BREAK names a condition of the vouch that is left out of `_append`.
#include "base/text.hpp"
#include "core/broker/dedup_world.hpp"
#include "sql/property_session.hpp"

#include <sstream>

namespace queen::test {
namespace {

// Leaving out the id alone changes nothing here, since no two segments bear one stamp: that both
// are asked for is tested in push_vouch_test.cpp.
const Breaks kBreaks{
    {"from", {"p_vouch_from < v_part.txns_start", "true"}},
    {"end", {"v_bound := greatest(v_bound, p_vouch_upto)", "v_bound := v_part.last_offset"}},
    {"stamp", {"p_vouch_at = (CASE", "p_vouch_at IS NOT NULL OR p_vouch_at = (CASE"}},
};

SqlSession& session() {
    static SqlSession session = property_session(kBreaks, "epoch", "1 microsecond");
    return session;
}

class SqlDatabase final : public broker::DedupDatabase {
public:
    SqlDatabase() { remove(); }

    PushOutcome push(const PushSegment& segment) override {
        const auto vouch = segment.vouch.value_or(Vouch{});
        const auto row = session().query(
            "select a ->> 'status', a ->> 'partitionId', a ->> 'window', a ->> 'probed', "
            "coalesce(a ->> 'baseOffset', '-1'), "
            "coalesce(extract(epoch from (a ->> 'createdAt')::timestamptz) * 1000000, 0)::bigint, "
            "coalesce(extract(epoch from (a ->> 'after')::timestamptz) * 1000000, 0)::bigint, "
            "coalesce((select string_agg((d ->> 'i') || ' ' || (d ->> 'off'), ' ' order by "
            "(d ->> 'i')::int) from jsonb_array_elements(a -> 'dups') d), '') "
            "from queen.log_push_one_v1('q', 'p', $1, $2, -1, 'x', p_vouch_pid => $3, "
            "p_vouch_from => $4, p_vouch_upto => $5, p_vouch_at => timestamptz 'epoch' + "
            "$6::bigint * interval '1 microsecond') a",
            {std::int64_t{segment.count}, "\\x" + to_hex(segment.hashes),
             to_string(vouch.partition_id), vouch.from.value(), vouch.upto.value(),
             std::int64_t{vouch.at.time_since_epoch().count()}});
        PushOutcome out;
        out.duplicate = row.get(0, 0) == "duplicate";
        out.partition_id = *parse_uuid(row.get(0, 1));
        out.window = std::chrono::seconds(row.integer(0, 2));
        out.probed = row.integer(0, 3);
        out.base = Offset{row.integer(0, 4)};
        out.created_at = WallTime{std::chrono::microseconds(row.integer(0, 5))};
        out.after = WallTime{std::chrono::microseconds(row.integer(0, 6))};
        std::istringstream repeats(row.get(0, 7));
        for (std::int64_t i = 0, offset = 0; repeats >> i >> offset;) {
            out.repeats.push_back({static_cast<std::uint32_t>(i), Offset{offset}});
        }
        return out;
    }
    std::vector<HashRow> page(const HashPage& page) override {
        const auto rows = session().query(
            "select base_offset, end_offset, (extract(epoch from created_at) * 1000000)::bigint, "
            "encode(hashes, 'hex') from queen.log_window_hashes_v1($1, $2, $3, $4)",
            {to_string(page.partition_id), page.edge.value(), page.downwards, page.bytes});
        std::vector<HashRow> out;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            out.push_back({Offset{rows.integer(i, 0)}, Offset{rows.integer(i, 1)},
                           WallTime{std::chrono::microseconds(rows.integer(i, 2))},
                           *from_hex(rows.get(i, 3))});
        }
        return out;
    }
    void clock(std::chrono::microseconds now) override {
        session().query("select set_config('test.now', $1, false)", {std::to_string(now.count())});
    }
    void window(std::chrono::seconds window) override {
        window_ = window;
        session().query("select queen.configure_queue_v1('q', jsonb_build_object("
                        "'dedupWindowSeconds', $1::int))",
                        {std::int64_t{window.count()}});
    }
    void remove() override {
        session().query("select queen.delete_queue_v1($1, 'q')", {kDefaultTenant});
        window(window_);
    }
    void purge(std::chrono::microseconds before) override {
        session().query("delete from queen.log_txns where created_at < timestamptz 'epoch' + "
                        "$1::bigint * interval '1 microsecond'",
                        {std::int64_t{before.count()}});
        session().script("update queen.log_partitions p set txns_start = coalesce((select "
                         "min(base_offset) from queen.log_txns), p.last_offset + 1)");
    }
    void set_back() override {
        session().script(
            "delete from queen.log_segments where base_offset = (select max(base_offset) from "
            "queen.log_txns having count(*) > 1); "
            "delete from queen.log_txns where base_offset = (select max(base_offset) from "
            "queen.log_txns having count(*) > 1); "
            "update queen.log_partitions p set last_offset = t.end_offset, newest_at = "
            "t.created_at from (select * from queen.log_txns order by base_offset desc limit 1) t");
    }

private:
    std::chrono::seconds window_{6};
};

RC_GTEST_PROP(DedupSql, F13_TheProceduresAnswerAVouchedPushLikeAnUnvouchedOne, ()) {
    SqlDatabase database;
    broker::DedupWorld world(database);
    for (const auto& step :
         *rc::gen::container<std::vector<broker::DedupStep>>(broker::dedup_step())) {
        world.run(step);
    }
    world.end();
}

} // namespace
} // namespace queen::test
