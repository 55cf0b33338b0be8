// What pops say of conflation (CF-1), and what is left to the broker to choose (PF-2).
#include "core/broker/pop_parts.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

class PopConflationTest : public PopParts {
protected:
    void store_says(bool conflates, bool conflict, bool seeded = true) {
        PopResult result;
        result.conflates = conflates;
        result.conflation_conflict = conflict;
        result.seeded = seeded;
        store_.on_pop_wildcard = [this, result](const PopArgs& args, const auto& done) {
            asked_.push_back(args);
            done(result);
        };
        store_.on_pop_list = [this, result](const PopArgs& args, const auto&, const auto& done) {
            asked_.push_back(args);
            done(result);
        };
    }
    std::string answer(PopRequest wanted) {
        std::string told = "none";
        pops_.pop(std::move(wanted), [&](Result<PopBatch> batch) {
            told = !batch ? batch.error().message
                          : std::string(batch->conflates ? "conflates" : "plain") +
                                (batch->conflict ? " conflict" : "");
        });
        return told;
    }
    static PopRequest asking(std::optional<bool> conflation) {
        auto wanted = request();
        wanted.conflation = conflation;
        return wanted;
    }

    std::vector<PopArgs> asked_;
};

TEST_F(PopConflationTest, TheStoreIsAskedWithWhatThePopSays) {
    store_says(true, false);
    EXPECT_EQ(answer(asking(true)), "conflates");
    EXPECT_EQ(asked_.back().conflate, std::optional(true));
    source_->readiness.state = plugin::ReadyState::cold;
    source_->empty_pick = plugin::Pick::scan;
    answer(asking(std::nullopt));
    EXPECT_EQ(asked_.back().conflate, std::nullopt);
}

// A quiet source costs no statement, and the answer has to say it all the same.
TEST_F(PopConflationTest, AnEmptyAnswerWithoutAStatementTellsWhatIsKnown) {
    store_says(true, false);
    answer(asking(true));
    store_.on_has_pending = [](const PendingQuery&, const auto& done) { done(false); };
    asked_.clear();
    EXPECT_EQ(answer(asking(true)), "conflates");
    EXPECT_EQ(answer(asking(std::nullopt)), "conflates");
    EXPECT_EQ(answer(asking(false)), "conflates conflict");
    EXPECT_EQ(asked_.size(), 0u);
}

TEST_F(PopConflationTest, TheStoredPolicyWins) {
    store_says(false, true);
    EXPECT_EQ(answer(asking(true)), "plain conflict");
    store_.on_has_pending = [](const PendingQuery&, const auto& done) { done(false); };
    EXPECT_EQ(answer(asking(true)), "plain conflict");
    EXPECT_EQ(answer(asking(std::nullopt)), "plain");
}

TEST_F(PopConflationTest, WhenNobodyCouldBeAskedTheRequestIsBelieved) {
    store_.on_pop_wildcard = [](const PopArgs&, const auto& done) {
        done(fail(Errc::unavailable, "away"));
    };
    auto wanted = asking(true);
    wanted.wait = true;
    wanted.timeout = 1s;
    std::string told;
    pops_.pop(wanted, [&](Result<PopBatch> batch) {
        told = batch && batch->conflates ? "conflates" : "else";
    });
    for (int i = 0; i < 20; ++i) {
        ticker_.advance(100ms);
        run_all();
    }
    EXPECT_EQ(told, "conflates");
}

// A partition gives one message, however many the source thinks it holds.
TEST_F(PopConflationTest, TheSourceIsNotStoppedByTheBatch) {
    struct Watch final : plugin::CandidateSource {
        plugin::Readiness peek(const plugin::Scope&) override {
            return {.state = plugin::ReadyState::ready, .partitions = 5, .messages = 500};
        }
        plugin::Selection take(const plugin::Take& take, plugin::Names&) override {
            messages = take.messages;
            return {};
        }
        void settle(const plugin::Scope&, std::unique_ptr<plugin::Cookie>,
                    std::span<const plugin::Verdict>) override {}
        std::uint64_t messages = 0;
    };
    const auto watch = std::make_shared<Watch>();
    Sources sources{{{"watch", watch}}, "watch"};
    Pop pops(store_, sources, announcer_, parking_, workers_, ticker_, clock_, {});
    store_says(true, false);
    pops.pop(asking(true), [](auto&&) {});
    pops.pop(asking(true), [](auto&&) {});
    EXPECT_EQ(watch->messages, std::numeric_limits<std::uint64_t>::max());
}

TEST_F(PopConflationTest, WhatIsLeftToTheBrokerIsChosenAnewForEachLook) {
    store_says(false, false);
    auto wanted = request();
    wanted.autopilot = Autopilot{true, true};
    std::optional<PopSize> chosen;
    const auto pop = [&] {
        pops_.pop(wanted, [&](Result<PopBatch> batch) { chosen = batch->chosen; });
        return chosen;
    };
    EXPECT_EQ(pop(), (PopSize{100, 8})) << "first contact: nobody was asked";
    EXPECT_EQ(asked_.back().budget, 100);
    EXPECT_EQ(asked_.back().max_partitions, 8);
    source_->readiness = {.state = plugin::ReadyState::ready, .partitions = 100, .messages = 200};
    source_->offers = [](std::uint32_t) { return std::vector<std::string>{"a"}; };
    store_.on_has_pending = [](const PendingQuery&, const auto& done) { done(false); };
    EXPECT_EQ(pop(), (PopSize{100, 50}));
    EXPECT_EQ(asked_.back().max_partitions, 50);
    wanted.autopilot = Autopilot{};
    EXPECT_EQ(pop(), (PopSize{200, 1})) << "what was given, told all the same";
    wanted.autopilot.reset();
    EXPECT_EQ(pop(), std::nullopt);
}

} // namespace
} // namespace queen::broker
