// A loaded plugin that misbehaves: each fault is counted and turned into the safe answer.
#include "abi/host_fixture.hpp"

#include <queen/plugin/testing.hpp>

namespace queen::pluginhost {
namespace {

using namespace std::chrono_literals;
using plugin::NameList;
using plugin::Pick;
using plugin::ReadyState;
using plugin::Selection;
using plugin::Take;
using plugin::Verdict;
using plugin::VerdictKind;

Selection take(plugin::CandidateSource& source, plugin::Names& names, std::uint32_t round = 0,
               std::uint64_t limit = 16) {
    return source.take(Take{kScope, round, 1, 10, limit}, names);
}

class PluginFault : public HostTest {};

TEST_F(PluginFault, AGoodPluginHasNone) {
    const auto source = load("good");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready);
    NameList names(16);
    Selection made = take(*source, names);
    EXPECT_EQ(made.pick, Pick::names);
    EXPECT_EQ(names.partitions(), (std::vector<std::string>{"p1", "p2"}));
    EXPECT_EQ(names.entries()[1].token, 2u);
    const Verdict verdicts[] = {{1, "p1", {}, VerdictKind::took_acked, true, 3, {}},
                                {2, "p2", {}, VerdictKind::empty, false, 0, {}}};
    source->settle(kScope, std::move(made.cookie), verdicts);
    EXPECT_EQ(figures(*source)["settled"], 1.0);
    EXPECT_EQ(figures(*source)["verdicts"], 2.0);
    EXPECT_EQ(faults("good").total(), 0u);
}

TEST_F(PluginFault, AnErrorAnswerMeansAskTheStoreAndScan) {
    const auto source = load("bad_returns");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ask_store) << "it had written 'nothing'";
    NameList names(16);
    Selection made = take(*source, names);
    EXPECT_EQ(made.pick, Pick::scan);
    EXPECT_EQ(made.cookie, nullptr) << "a failed take hands nothing over";
    EXPECT_EQ(figures(*source)["settled"], 0.0);
    EXPECT_EQ(faults("bad_returns")[Fault::error_return], 2u);
}

TEST_F(PluginFault, AFailedMarkMakesTheSourceForgetTheQueue) {
    const auto source = load("bad_returns");
    const plugin::Mark mark{"p1", {}, 1};
    source->mark(kOrders, "", plugin::Origin::push, {&mark, 1});
    EXPECT_EQ(figures(*source)["forgotten"], 1.0);
    EXPECT_EQ(faults("bad_returns")[Fault::error_return], 1u);
}

TEST_F(PluginFault, AFailedSettleIsNotRepeated) {
    const auto source = load("bad_settle");
    NameList names(16);
    Selection made = take(*source, names);
    source->settle(kScope, std::move(made.cookie), {});
    EXPECT_EQ(figures(*source)["settled"], 1.0);
    EXPECT_EQ(faults("bad_settle")[Fault::error_return], 1u);
    EXPECT_EQ(faults("bad_settle")[Fault::unsettled], 0u);
}

TEST_F(PluginFault, ExceptionsEndInsideTheLibrary) {
    const auto source = load("bad_throws");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ask_store);
    NameList names(16);
    EXPECT_EQ(take(*source, names).pick, Pick::scan);
    const plugin::Mark mark{"p1", {}, 1};
    source->mark(kOrders, "", plugin::Origin::push, {&mark, 1}); // two: it forgets as well
    source->released(kOrders, "g", {}, true);                    // two
    source->learn(kOrders, "p1", {});
    source->forget("tenant", "orders", "");
    source->configured(kOrders, {});
    const plugin::ReseedRow row{"p1", {}};
    EXPECT_FALSE(source->reseed_page(kScope, 1, {&row, 1}));
    source->reseed_done(kScope, 1, true);
    EXPECT_TRUE(figures(*source).empty());
    const SteadyTime now = clock_.now();
    EXPECT_EQ(source->tick(now), now + 1s) << "a tick that fails is asked again";
    EXPECT_EQ(faults("bad_throws")[Fault::error_return], 11u);
    EXPECT_EQ(faults("bad_throws")[Fault::exception], 0u);
}

TEST_F(PluginFault, AnExceptionThatLeavesTheLibraryIsCaughtByTheHost) {
    const auto source = load("bad_leaks_exception");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ask_store);
    NameList names(16);
    EXPECT_EQ(take(*source, names).pick, Pick::scan);
    EXPECT_EQ(faults("bad_leaks_exception")[Fault::exception], 2u);
    EXPECT_EQ(logged("fault=exception count=1 in=\"peek: out of peek\""), 1u);
}

TEST_F(PluginFault, UnfitNamesAreLeftOut) {
    const auto source = load("bad_names");
    NameList names(100);
    Selection made = take(*source, names, 0, 16);
    EXPECT_EQ(made.pick, Pick::names);
    ASSERT_EQ(names.entries().size(), 16u) << "the limit of the take, not of the core's list";
    EXPECT_EQ(names.entries()[0].partition, std::string(255, 'x'));
    EXPECT_EQ(names.entries()[1].partition, "twice");
    EXPECT_EQ(names.entries()[1].token, 6u) << "the first of two counts";
    EXPECT_EQ(names.entries()[2].partition, "n00");
    EXPECT_EQ(faults("bad_names")[Fault::bad_name], 4u);
    EXPECT_EQ(faults("bad_names")[Fault::repeated_name], 1u);
    EXPECT_EQ(faults("bad_names")[Fault::too_many_names], 2u);
    source->settle(kScope, std::move(made.cookie), {});
}

TEST_F(PluginFault, AHugeLimitIsCutToWhatAPopTakes) {
    const auto source = load("bad_names");
    NameList names(1000);
    Selection made = take(*source, names, 0, 1'000'000);
    // 2 good ones before the numbered, of which "n00" to "n99" and what follows '9' are distinct.
    EXPECT_EQ(names.entries().size(), kMostNames);
    source->settle(kScope, std::move(made.cookie), {});
}

TEST_F(PluginFault, ValuesOutsideTheirEnumerationAreTheSafeAnswer) {
    const auto source = load("bad_pick");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ask_store);
    NameList names(16);
    Selection made = take(*source, names);
    EXPECT_EQ(made.pick, Pick::scan);
    EXPECT_EQ(made.cookie, nullptr);
    EXPECT_EQ(figures(*source)["settled"], 1.0) << "its cookie came back at once";
    EXPECT_EQ(faults("bad_pick")[Fault::bad_answer], 2u);
}

TEST_F(PluginFault, NamesWithoutNamesIsAScan) {
    const auto source = load("bad_no_names");
    NameList names(16);
    EXPECT_EQ(take(*source, names).pick, Pick::scan);
    EXPECT_EQ(figures(*source)["settled"], 1.0);
    EXPECT_EQ(faults("bad_no_names")[Fault::no_names], 1u);
}

TEST_F(PluginFault, ALostSelectionIsGivenBackOnce) {
    const auto source = load("good");
    NameList names(16);
    Selection made = take(*source, names);
    ASSERT_NE(made.cookie, nullptr);
    made.cookie.reset(); // a pop that died without a word
    EXPECT_EQ(figures(*source)["settled"], 1.0);
    EXPECT_EQ(figures(*source)["verdicts"], 0.0);
    EXPECT_EQ(faults("good")[Fault::unsettled], 1u);
}

TEST_F(PluginFault, ASelectionKeepsItsInstanceAlive) {
    auto source = load("good");
    NameList names(16);
    Selection made = take(*source, names);
    ASSERT_TRUE(host().unload("good"));
    EXPECT_TRUE(host().status().empty());
    EXPECT_EQ(host().source("good"), nullptr);
    EXPECT_FALSE(host().unload("good"));
    source.reset();
    EXPECT_EQ(logged("destroyed"), 0u);
    // Another instance under the old name: the selection settles with the one that made it.
    const auto newer = load("good");
    newer->settle(kScope, std::move(made.cookie), {});
    EXPECT_EQ(logged("destroyed"), 1u);
    EXPECT_EQ(figures(*newer)["settled"], 0.0);
}

TEST_F(PluginFault, ACookieHasOneOwnerAtAnyTime) {
    const auto source = load("good_cookies");
    NameList names(16);
    Selection made = take(*source, names);
    EXPECT_TRUE(made.holds_window);
    EXPECT_EQ(made.window, 5s);
    EXPECT_EQ(figures(*source)["cookies_out"], 1.0);
    source->settle({}, std::move(made.cookie), {}); // the scope is the selection's own
    EXPECT_EQ(figures(*source)["cookies_out"], 0.0);
    EXPECT_EQ(figures(*source)["cookies_returned"], 1.0);
    EXPECT_EQ(figures(*source)["scope_was_right"], 1.0);

    NameList failed(16);
    EXPECT_EQ(take(*source, failed, 9).pick, Pick::scan);
    EXPECT_EQ(figures(*source)["cookies_out"], 0.0) << "a take that throws keeps its cookie";

    NameList thrown(16);
    made = take(*source, thrown);
    const Verdict boom{7, "boom", {}, VerdictKind::empty, false, 0, {}};
    source->settle(kScope, std::move(made.cookie), {&boom, 1});
    EXPECT_EQ(figures(*source)["cookies_out"], 0.0) << "a settle that throws has it all the same";

    NameList lost(16);
    made = take(*source, lost);
    made.cookie.reset();
    EXPECT_EQ(figures(*source)["cookies_out"], 0.0);
    EXPECT_EQ(figures(*source)["cookies_returned"], 3.0);
}

TEST_F(PluginFault, ThreeSlowCallsInARowPauseThePlugin) {
    const auto source = load("bad_slow");
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready);
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready);
    EXPECT_FALSE(host().status()[0].paused);
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready) << "its answer is still good";
    EXPECT_TRUE(host().status()[0].paused);
    EXPECT_EQ(faults("bad_slow")[Fault::slow_call], 3u);
    EXPECT_EQ(faults("bad_slow")[Fault::paused], 1u);

    const std::size_t steps = logged("step");
    const SteadyTime end = clock_.now() + 10s;
    const auto cold = source->peek(kScope);
    EXPECT_EQ(cold.state, ReadyState::cold);
    EXPECT_EQ(cold.next_due, end);
    NameList names(16);
    EXPECT_EQ(take(*source, names).pick, Pick::scan);
    EXPECT_TRUE(names.entries().empty());
    const plugin::Mark mark{"p1", {}, 1};
    source->mark(kOrders, "", plugin::Origin::push, {&mark, 1});
    EXPECT_TRUE(figures(*source).empty()) << "nothing reaches it";
    EXPECT_EQ(logged("step"), steps);
}

TEST_F(PluginFault, AfterAPauseEachScopeForgetsOnce) {
    const auto source = load("bad_slow");
    for (int i = 0; i < 3; ++i) {
        source->peek(kScope);
    }
    clock_.advance(10s);
    step_ = 0ns; // cured
    EXPECT_FALSE(host().status()[0].paused);
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready);
    EXPECT_EQ(figures(*source)["forgotten"], 1.0);
    NameList names(16);
    EXPECT_EQ(take(*source, names).pick, Pick::names);
    source->peek(kScope);
    EXPECT_EQ(figures(*source)["forgotten"], 1.0) << "once";
    source->peek({kOrders, "others"});
    EXPECT_EQ(figures(*source)["forgotten"], 2.0) << "per scope";
}

// MESH-4
TEST_F(PluginFault, ASourceThatLooksByItselfIsToldThatMarksWereMissedAndForgetsNothing) {
    const auto source = load("good_missed");
    EXPECT_TRUE(source->missed());
    EXPECT_EQ(logged("missed"), 1u);
    source->peek(kScope);
    EXPECT_EQ(figures(*source)["forgotten"], 0.0);
    EXPECT_EQ(faults("good_missed").total(), 0u);
}

// MESH-4
TEST_F(PluginFault, OfASourceThatDoesNotEachScopeIsForgottenOnceWhenAPopComes) {
    for (const std::string fixture : {"good", "bad_missed"}) {
        const auto source = load(fixture);
        EXPECT_TRUE(source->missed());
        for (int again = 0; again < 2; ++again) {
            source->peek(kScope);
            source->peek({kOrders, "others"});
        }
        source->missed();
        source->peek(kScope);
        EXPECT_EQ(figures(*source)["forgotten"], 3.0) << fixture;
        EXPECT_EQ(faults(fixture).total(), fixture == "bad_missed" ? 2u : 0u) << fixture;
    }
    const auto source = load("good_short_table"); // has no forget either
    EXPECT_TRUE(source->missed());
    EXPECT_EQ(source->peek(kScope).state, ReadyState::ready);
}

TEST_F(PluginFault, AFastCallBetweenSlowOnesPreventsAPause) {
    const auto source = load("bad_slow");
    for (int i = 0; i < 5; ++i) {
        step_ = 2ms;
        source->peek(kScope);
        source->peek(kScope);
        step_ = 1ms; // exactly the budget is not over it
        source->peek(kScope);
    }
    EXPECT_EQ(faults("bad_slow")[Fault::slow_call], 10u);
    EXPECT_EQ(faults("bad_slow")[Fault::paused], 0u);
}

TEST_F(PluginFault, ASelectionOfBeforeThePauseSettlesDuringIt) {
    const auto source = load("bad_slow");
    NameList names(16);
    Selection made = take(*source, names);
    for (int i = 0; i < 3; ++i) {
        source->peek(kScope);
    }
    ASSERT_TRUE(host().status()[0].paused);
    source->settle(kScope, std::move(made.cookie), {});
    clock_.advance(10s);
    EXPECT_EQ(figures(*source)["settled"], 1.0);
}

TEST_F(PluginFault, ATickInThePastDoesNotSpinTheTicker) {
    const auto source = load("bad_tick");
    const SteadyTime now = clock_.now();
    EXPECT_EQ(host().run_ticks(now), now + 1ms);
    EXPECT_EQ(logged("ticked"), 1u);
    EXPECT_EQ(host().run_ticks(now), now + 1ms) << "not due";
    EXPECT_EQ(logged("ticked"), 1u);
    EXPECT_EQ(host().run_ticks(now + 1ms), now + 2ms);
    EXPECT_EQ(logged("ticked"), 2u);
}

TEST_F(PluginFault, ASourceWithoutATickIsNeverDue) {
    const auto source = load("good");
    EXPECT_EQ(host().run_ticks(clock_.now()), SteadyTime::max());
}

TEST_F(PluginFault, TheCoreCanReportANameTheStoreDoesNotKnow) {
    load("good");
    host().report("good", Fault::unknown_name, "p-gone");
    host().report("nobody", Fault::unknown_name, "p-gone");
    EXPECT_EQ(faults("good")[Fault::unknown_name], 1u);
}

TEST_F(PluginFault, AFaultInEveryCallIsLoggedEverLessOften) {
    const auto source = load("bad_pick");
    for (int i = 0; i < 1000; ++i) {
        source->peek(kScope);
    }
    EXPECT_EQ(faults("bad_pick")[Fault::bad_answer], 1000u);
    EXPECT_EQ(log_.size(), 10u) << "1, 2, 4 ... 512";
    EXPECT_EQ(log_.front().plugin, "bad_pick");
    EXPECT_EQ(log_.front().level, QUEEN_LOG_WARNING);
    EXPECT_EQ(log_.front().text, "fault=bad_answer count=1 in=\"peek\"");
}

TEST_F(PluginFault, SqlscanAsksTheHostToWakeThePopsOfAReleasedPartition) {
    ASSERT_TRUE(host().load({named("sqlscan", QUEEN_PLUGIN_DIR "/sqlscan.so")}).empty());
    const auto source = host().source("sqlscan");
    const plugin::Mark mark{"p1", {}, 1};
    source->mark(kOrders, "", plugin::Origin::push, {&mark, 1});
    NameList names(16);
    Selection made = take(*source, names);
    ASSERT_EQ(made.pick, Pick::names);
    Uuid id;
    id.bytes.fill(7);
    const Verdict verdict{names.entries()[0].token, "p1", id, VerdictKind::leased, false, 0,
                          clock_.now() + 60s};
    source->settle(kScope, std::move(made.cookie), {&verdict, 1});
    source->released(kOrders, "workers", id, true);
    EXPECT_EQ(wakes_, std::vector<std::string>{"tenant\x1forders|workers|1"});
    EXPECT_EQ(faults("sqlscan").total(), 0u);
}

} // namespace
} // namespace queen::pluginhost
