// The sweeper over the store that the installer made: what it claims, fires, hands back and files.
#include "broker/announce.hpp"
#include "broker/timer_firing.hpp"
#include "model/names.hpp"
#include "model/uuid7.hpp"
#include "store/conninfo.hpp"
#include "store/installer.hpp"
#include "store/pg_session.hpp"
#include "store/pg_timer_store.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/postgres.hpp"
#include "support/recording_source.hpp"
#include "support/sql_session.hpp"
#include "sweeper.hpp"

#include <gmock/gmock.h>

#include <condition_variable>
#include <future>
#include <thread>

namespace queen::timers {
namespace {

using namespace std::chrono_literals;
using queen::test::SqlSession;
using queen::test::TestPostgres;

/// A broker's part in firing. Cycles begin when the test says so.
class Firer final : public plugin::TimerHost {
public:
    explicit Firer(TimerStore& store, Options options = {}) {
        firing_ = std::make_shared<broker::TimerFiring>(store, announcer_, SystemClock::instance(),
                                                        broker::TimerFiring::Options{});
        sweeper_ = std::make_shared<Sweeper>(options, clock_, *this,
                                             [](plugin::LogLevel, std::string_view) {});
        firing_->serve(sweeper_);
    }
    ~Firer() override { sweeper_->stop(); }
    Firer(const Firer&) = delete;
    Firer& operator=(const Firer&) = delete;

    /// One cycle, to its end.
    void cycle() {
        clock_.advance(1h);
        {
            const std::lock_guard lock(mutex_);
            over_ = false;
        }
        sweeper_->tick(clock_.now());
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [this] { return over_; });
    }
    broker::TimerFiring::Stats stats() const { return firing_->stats(); }
    const std::vector<std::string>& marks() const { return source_->marks; }

    bool due(plugin::TimerCall call, plugin::TimerShards shards, std::uint32_t cap) override {
        return firing_->due(call, shards, cap);
    }
    bool claim(plugin::TimerCall call, plugin::TimerShards shards, Nanoseconds lease,
               std::uint32_t rows, std::uint32_t rows_per_tenant) override {
        return firing_->claim(call, shards, lease, rows, rows_per_tenant);
    }
    bool fire(plugin::TimerCall call, plugin::TimerBatch batch,
              std::span<const std::uint32_t> segments) override {
        return firing_->fire(call, batch, segments);
    }
    bool fail(plugin::TimerCall call, plugin::TimerBatch batch,
              std::span<const std::uint32_t> segments, Nanoseconds backoff, std::string_view error,
              bool counted, std::int32_t most) override {
        return firing_->fail(call, batch, segments, backoff, error, counted, most);
    }
    bool dead_letter(plugin::TimerCall call, plugin::TimerBatch batch, std::int32_t most) override {
        return firing_->dead_letter(call, batch, most);
    }
    void release(plugin::TimerBatch batch) override { firing_->release(batch); }
    void tick_at(SteadyTime) override { // a cycle is over
        const std::lock_guard lock(mutex_);
        over_ = true;
        ended_.notify_all();
    }

private:
    queen::test::ManualClock clock_;
    queen::test::ManualTicker ticker_{clock_};
    std::shared_ptr<queen::test::RecordingSource> source_ =
        std::make_shared<queen::test::RecordingSource>();
    broker::Sources sources_{{{"recording", source_}}, "recording"};
    broker::Parking parking_{ticker_, clock_, {}};
    broker::Announcer announcer_{sources_, parking_};
    std::shared_ptr<broker::TimerFiring> firing_;
    std::shared_ptr<Sweeper> sweeper_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
};

class FireSqlTest : public testing::Test {
protected:
    void SetUp() override {
        conninfo_ = *store::complete_conninfo(
            TestPostgres::shared().conninfo(TestPostgres::shared().create_database()));
        const auto installed = store::Installer(conninfo_).run();
        ASSERT_TRUE(installed) << installed.error().message;
        executor_ = std::make_unique<store::Executor>(
            store::Executor::Options{.sessions = 4, .spare_threads = 1}, [conninfo = conninfo_] {
                return std::make_unique<store::PgSession>(conninfo, store::StatementLimits{});
            });
        timers_ = std::make_unique<store::PgTimerStore>(store::Asker(*executor_));
        sql_ = std::make_unique<SqlSession>(conninfo_);
    }
    /// Timers of as many queues as there are names.
    void schedule(int count, std::chrono::microseconds delay,
                  const std::vector<std::string>& queues, const std::string& prefix = "k") {
        TimerCallOps call{std::string(kDefaultTenant), "", {}};
        for (int i = 0; i < count; ++i) {
            const auto key = prefix + std::to_string(i);
            call.ops.push_back({.queue = queues[static_cast<std::size_t>(i) % queues.size()],
                                .key = key,
                                .transaction_id = "t-" + key,
                                .partition = "p" + std::to_string(i % 7),
                                .delay = delay,
                                .message_id = ids_.next(),
                                .payload = "{}"});
        }
        std::promise<Result<std::vector<TimerVerdict>>> set;
        timers_->apply(SteadyTime::max(), call, [&](auto verdicts) { set.set_value(verdicts); });
        const auto verdicts = set.get_future().get();
        ASSERT_TRUE(verdicts) << verdicts.error().message;
    }
    std::int64_t number(const std::string& query) { return sql_->integer(query); }
    std::int64_t waiting() { return number("SELECT count(*) FROM queen.log_timers"); }
    std::int64_t stored() {
        return number("SELECT coalesce(sum(last_offset + 1), 0)::bigint FROM queen.log_partitions");
    }
    /// As if the time of every backoff were over.
    void end_backoffs() {
        sql_->script("UPDATE queen.log_timers SET claimed_until = NULL WHERE claim_token IS NULL");
    }
    /// From here on what is stored in this queue fails with that state; an empty one: nothing does.
    void refuse(const std::string& condition, const std::string& state) {
        sql_->script("DROP TRIGGER IF EXISTS refuse ON queen.log_segments");
        if (!state.empty()) {
            sql_->script(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
                "BEGIN IF " +
                condition + " THEN RAISE EXCEPTION 'refused' USING ERRCODE = '" + state +
                "'; END IF; RETURN NEW; END $$");
            sql_->script("CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments "
                         "FOR EACH ROW EXECUTE FUNCTION refuse()");
        }
    }
    static inline const std::string kOfBad =
        "EXISTS (SELECT FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id "
        "WHERE p.id = NEW.partition_id AND q.name = 'bad')";

    std::string conninfo_;
    std::unique_ptr<store::Executor> executor_;
    std::unique_ptr<store::PgTimerStore> timers_;
    std::unique_ptr<SqlSession> sql_;
    Uuid7 ids_;
};

TEST_F(FireSqlTest, FiresWhatIsDueNeverEarly) {
    schedule(250, -1s, {"a", "b"});
    schedule(50, 1h, {"a"}, "later");
    Firer firer(*timers_);
    firer.cycle();
    firer.cycle();
    EXPECT_EQ(stored(), 250);
    EXPECT_EQ(waiting(), 50);
    EXPECT_EQ(firer.stats().results[0], 250U);
    EXPECT_FALSE(firer.marks().empty());
}

TEST_F(FireSqlTest, SeveralBrokersFireEachTimerOnce) {
    std::vector<std::string> queues;
    for (int i = 0; i < 20; ++i) {
        queues.push_back("q" + std::to_string(i));
    }
    schedule(2000, -1s, queues);
    Firer one(*timers_), two(*timers_, {.parallelism = 2});
    const auto drain = [this](Firer& firer) {
        return [this, &firer] {
            SqlSession sql(conninfo_);
            for (int i = 0; i < 100 && sql.yes("SELECT EXISTS (SELECT FROM queen.log_timers)");
                 ++i) {
                firer.cycle();
            }
        };
    };
    std::thread first(drain(one)), second(drain(two));
    first.join();
    second.join();
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(stored(), 2000);
    EXPECT_EQ(one.stats().results[0] + two.stats().results[0], 2000U);
}

TEST_F(FireSqlTest, F40_OneInvalidDestinationAmongTwoHundredPaysAlone) {
    std::vector<std::string> queues{"bad"};
    for (int i = 1; i < 50; ++i) {
        queues.push_back("q" + std::to_string(i));
    }
    schedule(199, -1s, {queues.begin() + 1, queues.end()});
    schedule(1, -1s, {"bad"}, "poison");
    refuse(kOfBad, "22023");
    Firer firer(*timers_);
    firer.cycle();
    EXPECT_EQ(stored(), 199);
    EXPECT_EQ(number("SELECT attempts FROM queen.log_timers"), 1);
    for (int attempt = 1; attempt < 5; ++attempt) {
        end_backoffs();
        firer.cycle();
    }
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(number("SELECT count(*) FROM queen.log_dlq WHERE consumer_group = '__timer__'"), 1);
    EXPECT_EQ(firer.stats().dead_letters, 1U);
    EXPECT_EQ(firer.stats().poisoned, 5U);
}

TEST_F(FireSqlTest, F41_ADatabaseWithoutRoomForManyRetriesSpendsNoAttempts) {
    schedule(100, -1s, {"a", "b"});
    refuse("true", "53100");
    Firer firer(*timers_);
    for (int second = 0; second < 30; ++second) {
        firer.cycle();
        end_backoffs();
    }
    EXPECT_EQ(stored(), 0);
    EXPECT_EQ(number("SELECT max(attempts) FROM queen.log_timers"), 0);
    EXPECT_GE(firer.stats().failures[0], 30U);
    refuse("", "");
    firer.cycle();
    firer.cycle();
    EXPECT_EQ(stored(), 100);
    EXPECT_EQ(waiting(), 0);
}

TEST_F(FireSqlTest, APayloadThatCannotBeUnpackedBecomesADeadLetterAndHoldsNobodyUp) {
    schedule(10, -1s, {"a"});
    sql_->script("UPDATE queen.log_timers SET payload_zstd = true WHERE timer_key = 'k3'");
    Firer firer(*timers_);
    firer.cycle();
    EXPECT_EQ(stored(), 9);
    for (int attempt = 1; attempt < 5; ++attempt) {
        end_backoffs();
        firer.cycle();
    }
    EXPECT_EQ(waiting(), 0);
    EXPECT_EQ(firer.stats().dead_letters, 1U);
}

} // namespace
} // namespace queen::timers
