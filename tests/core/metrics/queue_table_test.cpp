#include "metrics/queue_table.hpp"
#include "support/manual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::metrics {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr QueueFigures kOnePush{.push_requests = 1, .push_messages = 10};

class QueueTableTest : public testing::Test {
protected:
    std::vector<std::pair<std::string, std::uint64_t>> pushed() {
        std::vector<std::pair<std::string, std::uint64_t>> out;
        for (const auto& line : table_.last_minute().lines) {
            out.emplace_back(line.queue, line.figures.push_messages);
        }
        return out;
    }

    test::ManualClock clock_;
    QueueTable table_{clock_, 4};
};

// MET-3
TEST_F(QueueTableTest, AMinuteIsShownWhenItIsOver) {
    table_.add("a", kOnePush);
    EXPECT_THAT(pushed(), IsEmpty());
    EXPECT_EQ(table_.last_minute().age, std::nullopt) << "no minute is over";
    clock_.advance(59s);
    table_.add("a", kOnePush);
    EXPECT_THAT(pushed(), IsEmpty());
    clock_.advance(1s);
    EXPECT_EQ(table_.last_minute().age, 0s);
    EXPECT_THAT(pushed(), ElementsAre(Pair("a", 20)));
    table_.add("a", kOnePush);
    clock_.advance(59s);
    EXPECT_EQ(table_.last_minute().age, 59s);
    EXPECT_THAT(pushed(), ElementsAre(Pair("a", 20))) << "the running minute is not part of it";
    clock_.advance(1s);
    EXPECT_THAT(pushed(), ElementsAre(Pair("a", 10)));
    clock_.advance(60s);
    EXPECT_THAT(pushed(), IsEmpty());
}

TEST_F(QueueTableTest, AMinuteWithoutACallIsNotSkipped) {
    table_.add("a", kOnePush);
    clock_.advance(2min); // the full minute in between saw nothing
    EXPECT_THAT(pushed(), IsEmpty());
    table_.add("a", kOnePush);
    clock_.advance(10min);
    EXPECT_THAT(pushed(), IsEmpty());
    EXPECT_EQ(table_.size(), 0u);
}

TEST_F(QueueTableTest, FiguresAddUp) {
    table_.add(
        "a",
        {.pop_messages = 2, .pop_empty = 1, .acks = {1, 2, 3, 4, 5}, .lag_sum = 3s, .lag_max = 2s});
    table_.add("a", {.push_requests = 7,
                     .pop_messages = 1,
                     .acks = {1, 0, 0, 0, 0},
                     .lag_sum = 1s,
                     .lag_max = 1s});
    clock_.advance(1min);
    const auto minute = table_.last_minute();
    ASSERT_EQ(minute.lines.size(), 1u);
    EXPECT_EQ(minute.lines[0].figures, (QueueFigures{.push_requests = 7,
                                                     .pop_messages = 3,
                                                     .pop_empty = 1,
                                                     .acks = {2, 2, 3, 4, 5},
                                                     .lag_sum = 4s,
                                                     .lag_max = 2s}));
}

// MET-3: names come from clients.
TEST_F(QueueTableTest, NamesBeyondTheBoundAreSummedUp) {
    for (int i = 0; i < 1000; ++i) {
        table_.add("hostile-" + std::to_string(i), kOnePush);
    }
    EXPECT_EQ(table_.size(), 4u);
    clock_.advance(1min);
    const auto lines = pushed();
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_THAT(lines[0], Pair(std::string(kOtherQueues), 9960)) << "nothing is lost";
}

TEST_F(QueueTableTest, AnIdleNameLeavesItsPlace) {
    for (const char* name : {"a", "b", "c", "d"}) {
        table_.add(name, kOnePush);
    }
    clock_.advance(1min);
    table_.add("late", kOnePush);
    EXPECT_THAT(pushed(), ElementsAre(Pair("a", 10), Pair("b", 10), Pair("c", 10), Pair("d", 10)));
    clock_.advance(1min);
    EXPECT_THAT(pushed(), ElementsAre(Pair(std::string(kOtherQueues), 10)));
    EXPECT_EQ(table_.size(), 0u) << "what did nothing for a full minute is gone";
    table_.add("late", kOnePush);
    clock_.advance(1min);
    EXPECT_THAT(pushed(), ElementsAre(Pair("late", 10)));
}

TEST_F(QueueTableTest, AQueueCalledLikeTheRestIsPartOfIt) {
    table_.add(kOtherQueues, kOnePush);
    for (const char* name : {"a", "b", "c", "d", "e"}) {
        table_.add(name, kOnePush);
    }
    clock_.advance(1min);
    const auto lines = pushed();
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const auto& line) { return line.first == kOtherQueues; }),
              1);
    EXPECT_THAT(lines[0], Pair(std::string(kOtherQueues), 20));
}

TEST(QueueTableBound, NoneAtAllStillSumsUp) {
    test::ManualClock clock;
    QueueTable table(clock, 0);
    table.add("a", kOnePush);
    EXPECT_EQ(table.size(), 0u);
    clock.advance(1min);
    EXPECT_EQ(table.last_minute().lines.size(), 1u);
}

TEST(Bounded, KeepsTheLargestAndSumsUpTheRest) {
    EXPECT_THAT(bounded({{"a", 1}, {"b", 5}, {"c", 3}, {"a", 1}}, 2),
                ElementsAre(Pair("b", 5), Pair("c", 3), Pair(std::string(kOtherQueues), 2)));
    EXPECT_THAT(bounded({{"b", 5}, {"a", 1}}, 2), ElementsAre(Pair("a", 1), Pair("b", 5)));
    EXPECT_THAT(bounded({{std::string(kOtherQueues), 1}, {"b", 5}}, 2),
                ElementsAre(Pair("b", 5), Pair(std::string(kOtherQueues), 1)));
    EXPECT_THAT(bounded({}, 2), IsEmpty());
}

} // namespace
} // namespace queen::metrics
