#include "core/store/fake_session.hpp"
#include "store/statement_counters.hpp"
#include "support/manual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// Takes as long, and ends as, the test says.
class ScriptedSession final : public Session {
public:
    explicit ScriptedSession(queen::test::ManualClock& clock) : clock_(clock) {}
    Result<void> connect() override { return fail(Errc::unavailable, "the session's own"); }
    bool open() const noexcept override { return !quarantined_; }
    bool check() override { return !quarantined_; }
    Result<Rows> run(const Statement&, const Parameters&) override {
        clock_.advance(time);
        if (error) {
            return tl::unexpected(*error);
        }
        return Rows{};
    }
    void quarantine() noexcept override { quarantined_ = true; }
    void interrupt() noexcept override { interrupted = true; }

    Nanoseconds time{0};
    std::optional<Error> error;
    bool interrupted = false;

private:
    queen::test::ManualClock& clock_;
    bool quarantined_ = false;
};

class StatementCountersTest : public testing::Test {
protected:
    void fail_with(const std::string& sqlstate) {
        session_.error = Error{Errc::store_failed, "refused", sqlstate};
        EXPECT_FALSE(counted_.run(statements::kPing, {}));
    }

    queen::test::ManualClock clock_;
    ScriptedSession session_{clock_};
    StatementCounters counters_{clock_};
    CountedSession counted_{session_, counters_};
};

TEST_F(StatementCountersTest, EachStatementIsTimedUnderItsName) {
    EXPECT_THAT(counters_.statements(), IsEmpty());
    session_.time = 2ms;
    EXPECT_TRUE(counted_.run(statements::kPopList, {}));
    EXPECT_TRUE(counted_.run(statements::kPopList, {}));
    session_.time = 1s;
    EXPECT_TRUE(counted_.run(statements::kPushMulti, {}));
    const auto seen = counters_.statements();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].name, "push_multi");
    EXPECT_EQ(seen[1].name, "pop_list");
    EXPECT_EQ(seen[1].duration.count(), 2u);
    EXPECT_EQ(seen[1].duration.sum, 4ms);
    EXPECT_EQ(counters_.sent(statements::kPopList), 2u);
    EXPECT_EQ(counters_.sent(statements::kPopSpecific), 0u);
    EXPECT_THAT(counters_.errors(), IsEmpty());
}

TEST_F(StatementCountersTest, AStatementOfNobodysListCountsAsOther) {
    const Statement stranger{"stranger", "select 2"};
    EXPECT_TRUE(counted_.run(stranger, {}));
    const auto seen = counters_.statements();
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].name, "other");
}

TEST_F(StatementCountersTest, ErrorsCountByTheClassOfTheirState) {
    for (const char* state : {"40001", "40P01", "55P03", "ZZ999", "", "4", "x!zzz", "08006"}) {
        fail_with(state);
    }
    std::vector<std::pair<std::string, std::uint64_t>> seen;
    for (const auto& error : counters_.errors()) {
        seen.emplace_back(error.sqlstate_class, error.count);
    }
    EXPECT_THAT(seen,
                ElementsAre(testing::Pair("08", 1), testing::Pair("40", 2), testing::Pair("55", 1),
                            testing::Pair("ZZ", 1), testing::Pair("none", 3)));
    EXPECT_EQ(counters_.sent(statements::kPing), 8u) << "a failed one was sent as well";
}

TEST_F(StatementCountersTest, TheSessionIsTheOneBehind) {
    EXPECT_EQ(counted_.connect().error().message, "the session's own");
    EXPECT_TRUE(counted_.open());
    counted_.quarantine();
    EXPECT_FALSE(counted_.open());
    EXPECT_FALSE(counted_.check());
    counted_.interrupt();
    EXPECT_TRUE(session_.interrupted);
}

} // namespace
} // namespace queen::store
