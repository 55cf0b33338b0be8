#include "agenda.hpp"

#include <gtest/gtest.h>

namespace queen::hotlist {
namespace {

using namespace std::chrono_literals;

struct Thing final : Agenda::Item {
    Thing() : Item(Agenda::Kind::ring) {}
};

class AgendaTest : public testing::Test {
protected:
    std::shared_ptr<Thing> thing() { return std::make_shared<Thing>(); }
    /// A tick in which nobody is listed anew.
    SteadyTime tick() {
        agenda.begin(now);
        return agenda.end();
    }
    SteadyTime now{1000s};
    Agenda agenda;
};

TEST_F(AgendaTest, WithoutItemsNoTickIsDue) {
    EXPECT_EQ(tick(), SteadyTime::max());
}

TEST_F(AgendaTest, TheFirstItemAsksForATick) {
    const auto one = thing();
    EXPECT_EQ(agenda.note(*one, now + 1s), now + 1s);
    EXPECT_EQ(one->scheduled(), now + 1s);
}

TEST_F(AgendaTest, ATickIsAskedForOnlyWhenItIsEarlierThanWhatTheHostKnows) {
    const auto one = thing(), two = thing();
    agenda.note(*one, now + 1s);
    EXPECT_EQ(agenda.note(*two, now + 2s), std::nullopt);
    EXPECT_EQ(agenda.note(*one, now + 3s), std::nullopt) << "it is looked at earlier anyway";
    EXPECT_EQ(agenda.note(*two, now + 500ms), now + 500ms);
}

TEST_F(AgendaTest, TicksKeepTheirDistance) {
    const auto one = thing();
    tick();
    EXPECT_EQ(agenda.note(*one, now + 1ms), now + Agenda::kSpacing);
    now += Agenda::kSpacing;
    ASSERT_EQ(agenda.begin(now).size(), 1u);
    agenda.note(*one, now);
    EXPECT_EQ(agenda.end(), now + Agenda::kSpacing);
}

TEST_F(AgendaTest, DuringATickNobodyAsksForAnother) {
    const auto one = thing(), two = thing();
    ASSERT_EQ(tick(), SteadyTime::max());
    EXPECT_TRUE(agenda.begin(now).empty());
    EXPECT_EQ(agenda.note(*two, now + 1s), std::nullopt);
    EXPECT_EQ(agenda.end(), now + 1s) << "the tick's answer says it";
    EXPECT_EQ(agenda.note(*one, now + 2s), std::nullopt);
}

TEST_F(AgendaTest, ATickTouchesWhatIsDueAndNothingElse) {
    const auto early = thing(), late = thing();
    agenda.note(*late, now + 1s);
    agenda.note(*early, now);
    const auto due = agenda.begin(now);
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0], early);
    EXPECT_EQ(early->scheduled(), SteadyTime::max());
    EXPECT_EQ(agenda.end(), now + 1s);
}

TEST_F(AgendaTest, WhatIsTooMuchForOneTickComesInTheNext) {
    std::vector<std::shared_ptr<Thing>> things;
    for (std::size_t i = 0; i < Agenda::kMostPerTick + 1; ++i) {
        things.push_back(thing());
        agenda.note(*things.back(), now);
    }
    EXPECT_EQ(agenda.begin(now).size(), Agenda::kMostPerTick);
    EXPECT_EQ(agenda.end(), now + Agenda::kSpacing);
    EXPECT_EQ(agenda.begin(now).size(), 1u);
}

TEST_F(AgendaTest, ARemovedItemIsNeverListedAgain) {
    const auto one = thing();
    agenda.note(*one, now + 1s);
    agenda.remove(*one);
    EXPECT_EQ(agenda.note(*one, now), std::nullopt);
    now += 2s;
    EXPECT_TRUE(agenda.begin(now).empty());
    agenda.remove(*one);
}

TEST_F(AgendaTest, AnItemThatIsGoneIsPassedOver) {
    auto one = thing();
    agenda.note(*one, now);
    one.reset();
    EXPECT_TRUE(agenda.begin(now).empty());
    EXPECT_EQ(agenda.end(), SteadyTime::max());
}

} // namespace
} // namespace queen::hotlist
