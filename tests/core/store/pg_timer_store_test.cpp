// Every call of the TimerStore port against the schema that the installer made.
#include "base/text.hpp"
#include "core/store/pg_port_fixture.hpp"
#include "store/pg_timer_store.hpp"
#include "support/sql_session.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::SqlSession;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimerShardSet kAll = ~TimerShardSet{0};
using Kind = TimerVerdict::Kind;

class PgTimerStoreTest : public PgPortTest {
protected:
    static Uuid id_of(unsigned char n) {
        Uuid id;
        id.bytes.fill(n);
        return id;
    }
    static TimerOp op(std::string key, std::chrono::microseconds delay) {
        return {.queue = "q",
                .key = key,
                .transaction_id = "t-" + key,
                .partition = "p",
                .delay = delay,
                .message_id = id_of(7),
                .payload = std::string("\0{}", 3),
                .payload_zstd = true,
                .encrypted = true};
    }
    Result<std::vector<TimerVerdict>> apply(std::vector<TimerOp> ops,
                                            const std::string& tenant = kTenant) {
        return wait_for<std::vector<TimerVerdict>>([&](auto done) {
            timers_.apply(kNever, {tenant, "sub", ops}, done);
        });
    }
    Result<std::vector<ClaimedTimer>> claim(TimerClaim what = {}) {
        return wait_for<std::vector<ClaimedTimer>>(
            [&](auto done) { timers_.claim(kNever, what, done); });
    }
    std::optional<WaitingTimer> peek(const std::string& key) {
        return *wait_for<std::optional<WaitingTimer>>(
            [&](auto done) { timers_.peek(kNever, kTenant, "q", key, done); });
    }
    Result<TimersDue> due() {
        return wait_for<TimersDue>([&](auto done) { timers_.due(kNever, kAll, 10, done); });
    }
    static TimerClaimKey key_of(const ClaimedTimer& timer) {
        return {timer.tenant, timer.queue, timer.key, timer.token};
    }
    static TimerFire::Segment segment_of(const std::vector<ClaimedTimer>& timers) {
        TimerFire::Segment segment{.tenant = timers[0].tenant,
                                   .queue = timers[0].queue,
                                   .partition = timers[0].partition,
                                   .count = static_cast<std::int32_t>(timers.size()),
                                   .hashes = {},
                                   .blob = std::string("\0blob", 5),
                                   .rows = {}};
        for (const auto& timer : timers) {
            segment.hashes += hash_transaction_id(timer.transaction_id).view();
            segment.rows.push_back(key_of(timer));
        }
        return segment;
    }
    Result<std::vector<TimerFired>> fire(std::vector<TimerFire::Segment> segments) {
        return wait_for<std::vector<TimerFired>>(
            [&](auto done) { timers_.fire(kNever, {segments}, done); });
    }

    PgTimerStore timers_{Asker(*executor_)};
};

TEST_F(PgTimerStoreTest, SetsReplacesAndCancels) {
    const auto set = apply({op("a", 1h), op("b", 2h)});
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_EQ(set->size(), 2u);
    EXPECT_EQ(set->at(0).kind, Kind::scheduled);
    EXPECT_EQ(set->at(0).transaction_id, "t-a");
    EXPECT_EQ(set->at(0).message_id, id_of(7));
    EXPECT_LE(set->at(0).left, 1h);
    EXPECT_GT(set->at(0).left, 30min) << "not a unit mistaken";
    EXPECT_EQ(set->at(1).deliver_at - set->at(0).deliver_at > 30min, true);

    TimerOp cancel{.kind = TimerOp::Kind::cancel, .queue = "q", .key = "b"};
    TimerOp missing{
        .kind = TimerOp::Kind::cancel, .queue = "q", .key = "c", .transaction_id = "mine"};
    auto again = op("a", -1h);
    again.kind = TimerOp::Kind::reschedule;
    const auto changed = apply({missing, cancel, again});
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(changed->at(0).kind, Kind::absent);
    EXPECT_EQ(changed->at(0).transaction_id, "mine");
    EXPECT_EQ(changed->at(1).kind, Kind::cancelled);
    EXPECT_EQ(changed->at(1).transaction_id, "t-b");
    EXPECT_EQ(changed->at(2).kind, Kind::rescheduled);
    EXPECT_LT(changed->at(2).left, -30min);
    EXPECT_THAT(*apply({}), IsEmpty());
}

TEST_F(PgTimerStoreTest, ShowsWhatWaits) {
    ASSERT_TRUE(apply({op("a", 1h), op("a2", 1h), op("b", 1h)}));
    const auto one = peek("a");
    ASSERT_TRUE(one);
    EXPECT_EQ(one->key, "a");
    EXPECT_EQ(one->partition, "p");
    EXPECT_EQ(one->transaction_id, "t-a");
    EXPECT_EQ(one->message_id, id_of(7));
    EXPECT_EQ(one->payload, std::string("\0{}", 3));
    EXPECT_TRUE(one->payload_zstd && one->encrypted);
    EXPECT_EQ(one->producer_sub, "sub");
    EXPECT_EQ(one->attempts, 0);
    EXPECT_FALSE(one->last_error);
    EXPECT_FALSE(one->claimed);
    EXPECT_EQ(one->created_at, one->updated_at);
    EXPECT_FALSE(peek("x"));

    const auto list = [&](std::string after, std::int32_t limit) {
        return *wait_for<TimerPage>(
            [&](auto done) { timers_.list(kNever, kTenant, "q", after, limit, done); });
    };
    const auto first = list("", 2);
    ASSERT_EQ(first.rows.size(), 2u);
    EXPECT_EQ(first.rows[1].key, "a2");
    EXPECT_EQ(first.rows[1].payload, "");
    EXPECT_TRUE(first.truncated);
    const auto second = list("a2", 2);
    ASSERT_EQ(second.rows.size(), 1u);
    EXPECT_FALSE(second.truncated);
    EXPECT_EQ(
        *wait_for<std::int64_t>([&](auto done) { timers_.count(kNever, kTenant, "q", "a", done); }),
        2);
}

TEST_F(PgTimerStoreTest, ClaimsAndFires) {
    EXPECT_FALSE(due()->next_in) << "there are no timers";
    ASSERT_TRUE(apply({op("later", 1h)}));
    EXPECT_GT(due()->next_in.value(), 30min);
    EXPECT_EQ(due()->due, 0);
    ASSERT_TRUE(apply({op("a", -2s), op("b", -1s)}));
    EXPECT_EQ(due()->due, 2);
    EXPECT_FALSE(due()->capped);
    EXPECT_LE(due()->next_in.value(), -2s);
    EXPECT_GE(due()->late, 2s);

    const auto timers = claim();
    ASSERT_TRUE(timers) << timers.error().message;
    ASSERT_EQ(timers->size(), 2u);
    const auto& first = timers->at(0);
    EXPECT_EQ(first.tenant, kTenant);
    EXPECT_EQ(first.queue + first.key + first.partition, "qap");
    EXPECT_EQ(first.transaction_id, "t-a");
    EXPECT_EQ(first.message_id, id_of(7));
    EXPECT_EQ(first.payload, std::string("\0{}", 3));
    EXPECT_TRUE(first.payload_zstd && first.encrypted);
    EXPECT_EQ(first.producer_sub, "sub");
    EXPECT_GE(first.late, 2s);
    EXPECT_NE(first.token, timers->at(1).token);
    EXPECT_TRUE(peek("a")->claimed);
    EXPECT_EQ(apply({op("a", 1h)})->at(0).kind, Kind::too_late);
    EXPECT_THAT(*claim(), IsEmpty());

    auto stale = segment_of({timers->at(0)});
    stale.rows[0].token = id_of(1);
    EXPECT_EQ(fire({stale})->at(0).kind, TimerFired::Kind::stale);
    const auto fired = fire({segment_of(*timers)});
    ASSERT_TRUE(fired) << fired.error().message;
    EXPECT_EQ(fired->at(0).kind, TimerFired::Kind::fired);
    EXPECT_EQ(fired->at(0).first, Offset{0});
    EXPECT_TRUE(fired->at(0).partition_id.known());
    EXPECT_FALSE(peek("a"));
    SqlSession sql(conninfo_);
    EXPECT_EQ(sql.one("select p.id || ' ' || p.last_offset || ' ' || encode(s.blob, 'hex') from "
                      "queen.log_partitions p join queen.log_segments s on s.partition_id = p.id"),
              to_string(fired->at(0).partition_id) + " 1 00626c6f62");
    EXPECT_EQ(fire({})->size(), 0u);
}

TEST_F(PgTimerStoreTest, HandsBackAndFilesWhatIsExhausted) {
    ASSERT_TRUE(apply({op("a", 0s)}));
    const auto timers = claim({.lease = 10s, .rows = 1, .rows_per_tenant = 1});
    ASSERT_EQ(timers->size(), 1u);
    TimerFail what{.rows = {key_of(timers->at(0))},
                   .backoff = 0ms,
                   .error = "it does not fit",
                   .counted = true,
                   .attempts = 1};
    const auto failed = wait_for<TimerFailed>([&](auto done) { timers_.fail(kNever, what, done); });
    ASSERT_TRUE(failed) << failed.error().message;
    EXPECT_EQ(failed->failed, 1);
    ASSERT_EQ(failed->exhausted.size(), 1u);
    EXPECT_EQ(failed->exhausted[0].tenant, kTenant);
    EXPECT_EQ(failed->exhausted[0].queue + failed->exhausted[0].key, "qa");
    EXPECT_EQ(peek("a")->attempts, 1);
    EXPECT_EQ(peek("a")->last_error, "it does not fit");
    EXPECT_EQ(*wait_for<std::int64_t>(
                  [&](auto done) { timers_.dead_letter(kNever, failed->exhausted, 1, done); }),
              1);
    EXPECT_FALSE(peek("a"));
}

// The caller tells by the state whether an attempt counts: F-41.
TEST_F(PgTimerStoreTest, ErrorsKeepTheirState) {
    auto nameless = op("", 0s);
    const auto refused = apply({nameless});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().sqlstate, "22023") << refused.error().message;
    EXPECT_EQ(apply({op("a", 0s)}, "nobody").error().code, Errc::invalid_argument);

    ASSERT_TRUE(apply({op("a", 0s)}));
    const auto timers = claim();
    auto segment = segment_of(*timers);
    segment.rows[0].queue = "other";
    EXPECT_EQ(fire({segment}).error().code, Errc::invalid_argument);
    segment = segment_of(*timers);
    segment.count = 2;
    EXPECT_EQ(fire({segment}).error().sqlstate, "22023");
    SqlSession(conninfo_).script("alter function queen.log_timers_due_v1(bigint, integer) rename "
                                 "to gone");
    EXPECT_EQ(due().error().sqlstate, "42883");
}

TEST_F(PgTimerStoreTest, TenantsDoNotSeeEachOther) {
    ASSERT_TRUE(apply({op("a", 1h)}));
    ASSERT_TRUE(apply({op("a", 2h)}, kOtherTenant));
    EXPECT_EQ(
        apply({TimerOp{.kind = TimerOp::Kind::cancel, .queue = "q", .key = "a"}}, kOtherTenant)
            ->at(0)
            .kind,
        Kind::cancelled);
    EXPECT_TRUE(peek("a"));
}

} // namespace
} // namespace queen::store
