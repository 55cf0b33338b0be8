#include "core/store/fake_session.hpp"
#include "store/executor.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <future>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using queen::test::ManualClock;
using test::FakeDatabase;

class ExecutorOutage : public testing::Test {
protected:
    FakeDatabase database;
    ManualClock clock;
    Executor executor{{.sessions = 3, .spare_threads = 1}, test::fake_sessions(database), clock};

    Result<int> ask(std::function<Result<int>(Session&)> call, Repeat repeat = Repeat::never) {
        std::promise<Result<int>> promise;
        executor.submit<int>(
            Lane::push, SteadyTime::max(), std::move(call),
            [&](Result<int> outcome) { promise.set_value(std::move(outcome)); }, repeat);
        return promise.get_future().get();
    }
    Result<int> ask() {
        return ask([](Session&) -> Result<int> { return 1; });
    }
    void expect_refused(int times) {
        for (int i = 0; i < times; ++i) {
            const auto outcome = ask();
            ASSERT_FALSE(outcome);
            EXPECT_EQ(outcome.error().code, Errc::unavailable);
            EXPECT_EQ(outcome.error().message, "no answer from the fake");
        }
    }
};

TEST_F(ExecutorOutage, OneConnectPerBackoffAndRecoveryByItself) {
    database.up = false;
    expect_refused(20);
    EXPECT_EQ(database.connects, 1);
    EXPECT_TRUE(executor.statistics().outage);
    int attempts = 1;
    for (const auto backoff : {250ms, 500ms, 1000ms, 2000ms, 2000ms, 2000ms}) {
        clock.advance(backoff - 1ms);
        expect_refused(5);
        EXPECT_EQ(database.connects, attempts) << "still within the backoff";
        clock.advance(1ms);
        expect_refused(5);
        EXPECT_EQ(database.connects, ++attempts);
    }
    database.up = true;
    expect_refused(5); // nobody looked yet
    clock.advance(2s);
    EXPECT_EQ(ask(), 1);
    EXPECT_FALSE(executor.statistics().outage);
    EXPECT_EQ(executor.statistics().lanes[static_cast<std::size_t>(Lane::push)].running, 0u);
}

TEST_F(ExecutorOutage, TheBackoffStartsAnewAfterARecovery) {
    database.up = false;
    expect_refused(1);
    clock.advance(250ms);
    expect_refused(1);
    database.up = true;
    clock.advance(500ms);
    EXPECT_EQ(ask(), 1);
    database.up = false;
    expect_refused(2);
    const int attempts = database.connects;
    clock.advance(250ms);
    expect_refused(2);
    EXPECT_EQ(database.connects, attempts + 1);
}

/// While one job tries, the others do not queue up behind its connect.
TEST_F(ExecutorOutage, OneJobTriesForAll) {
    class SlowSession final : public Session {
    public:
        SlowSession(std::atomic<int>& attempts, test::Gate& second, test::Gate& let_go)
            : attempts_(attempts), second_(second), let_go_(let_go) {}
        Result<void> connect() override {
            if (++attempts_ == 2) {
                second_.open();
                let_go_.wait();
            }
            return fail(Errc::unavailable, "still away");
        }
        bool open() const noexcept override { return false; }
        bool check() override { return false; }
        Result<Rows> run(const Statement&, const Parameters&) override { return Rows{}; }
        void quarantine() noexcept override {}
        void interrupt() noexcept override {}

    private:
        std::atomic<int>& attempts_;
        test::Gate& second_;
        test::Gate& let_go_;
    };
    std::atomic<int> attempts{0};
    test::Gate second, let_go;
    Executor slow(
        {.sessions = 6, .spare_threads = 1},
        [&] { return std::make_unique<SlowSession>(attempts, second, let_go); }, clock);
    const auto submit = [&slow] {
        auto promise = std::make_shared<std::promise<Result<int>>>();
        slow.submit<int>(
            Lane::push, SteadyTime::max(), [](Session&) -> Result<int> { return 1; },
            [promise](Result<int> outcome) { promise->set_value(std::move(outcome)); });
        return promise->get_future();
    };
    EXPECT_FALSE(submit().get());
    clock.advance(1s);
    auto prober = submit();
    second.wait();
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(submit().get().error().code, Errc::unavailable);
    }
    EXPECT_EQ(attempts, 2);
    let_go.open();
    EXPECT_FALSE(prober.get());
}

/// PL-9: after a failover the idle links are dead, and no request pays for it.
TEST_F(ExecutorOutage, StaleLinksAreReplacedBeforeTheyAreUsed) {
    EXPECT_EQ(ask(), 1);
    ++database.generation; // the server was restarted: open links are dead
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(ask(), 1);
    }
    const auto statistics = executor.statistics();
    EXPECT_EQ(statistics.resets, 1u) << "one link was open, and it was opened anew";
    EXPECT_EQ(statistics.lanes[static_cast<std::size_t>(Lane::push)].failed, 0u);
}

TEST_F(ExecutorOutage, ALinkThatBreaksUnderAStatementFailsItAsTransient) {
    int runs = 0;
    const auto outcome = ask([&](Session& session) -> Result<int> {
        ++runs;
        session.quarantine();
        return fail(Errc::transient, "lost");
    });
    EXPECT_EQ(outcome.error().code, Errc::transient);
    EXPECT_EQ(runs, 1) << "it may have taken effect";
    EXPECT_EQ(executor.statistics().broken, 1u);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(ask(), 1);
    }
    EXPECT_EQ(executor.statistics().resets, 0u) << "the others are taken first";
}

TEST_F(ExecutorOutage, AReadIsRepeatedOnceOnAFreshLink) {
    int runs = 0;
    const auto breaks_first = [&](Session& session) -> Result<int> {
        if (++runs == 1) {
            session.quarantine();
            return fail(Errc::transient, "lost");
        }
        return 7;
    };
    EXPECT_EQ(ask(breaks_first, Repeat::once), 7);
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(executor.statistics().repeats, 1u);

    runs = 0;
    const auto breaks_always = [&](Session& session) -> Result<int> {
        ++runs;
        session.quarantine();
        return fail(Errc::transient, "lost");
    };
    EXPECT_EQ(ask(breaks_always, Repeat::once).error().code, Errc::transient);
    EXPECT_EQ(runs, 2);
}

TEST_F(ExecutorOutage, AReadThatFailsOnAGoodLinkIsNotRepeated) {
    int runs = 0;
    const auto outcome = ask(
        [&](Session&) -> Result<int> {
            ++runs;
            return fail(Errc::transient, "deadlock", "40P01");
        },
        Repeat::once);
    EXPECT_EQ(outcome.error().sqlstate, "40P01");
    EXPECT_EQ(runs, 1);
}

} // namespace
} // namespace queen::store
