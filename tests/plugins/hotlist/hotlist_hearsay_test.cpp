// Names that other brokers think of, and that nobody here has seen.
#include "hotlist_fixture.hpp"

namespace queen::hotlist {
namespace {

using plugin::ReadyState;
using plugin::VerdictKind;

class HotListHearsayTest : public HotListFixture {
protected:
    static constexpr std::size_t kMost = 100;
    void SetUp() override {
        Options options;
        options.hearsay = kMost;
        remake(options);
        warm();
    }
    void hear(int from, int to) {
        Names names;
        for (int i = from; i < to; ++i) {
            names.push_back("p" + std::to_string(i));
        }
        mark(names, kOrders, {}, 1, plugin::Origin::peer);
    }
    /// Claims everything that is ready: what the store says of it.
    void claim_all(Uuid id) {
        for (Taken taken = take(); !taken.names.empty(); taken = take()) {
            std::vector<plugin::Verdict> verdicts;
            for (const auto& entry : taken.offered) {
                verdicts.push_back(
                    {entry.token, entry.partition, id, VerdictKind::empty, true, 0, clock.now()});
            }
            settle(std::move(taken), verdicts);
        }
    }
};

TEST_F(HotListHearsayTest, HL27_APeersNamesHaveABoundAndBeyondItTheQueueIsWalkedSoon) {
    for (int i = 0; i < 100'000; i += 1'000) {
        hear(i, i + 1'000);
    }
    EXPECT_EQ(figure("partitions"), kMost);
    EXPECT_EQ(figure("marks_refused_total"), 100'000 - kMost);
    EXPECT_EQ(host.reseeds().size(), 1u);
    run_until(clock.now() + 4'900ms);
    EXPECT_EQ(host.reseeds().size(), 1u) << "no walk follows at the heels of another";
    run_until(clock.now() + 200ms);
    ASSERT_EQ(host.reseeds().size(), 2u);
    hear(200'000, 200'001); // while it walks: it may have passed there already
    page({"p5000"});
    done();
    EXPECT_EQ(figure("partitions"), kMost + 1) << "what was found there needs no room";
    run_until(clock.now() + 5s);
    ASSERT_EQ(host.reseeds().size(), 3u);
    page({});
    done();
    run_until(clock.now() + 10s);
    EXPECT_EQ(host.reseeds().size(), 3u) << "nobody said anything more";
}

TEST_F(HotListHearsayTest, HL27_NamesThatSomebodyHasSeenMakeRoom) {
    hear(0, kMost);
    mark({"p0"});
    list->learn(kOrders, "p1", id_of(1));
    EXPECT_EQ(figure("marks_refused_total"), 0);
    claim_all(id_of(7)); // empty, yet the store knows them
    hear(1'000, 1'000 + kMost);
    EXPECT_EQ(figure("marks_refused_total"), 0);
    hear(2'000, 2'001);
    EXPECT_EQ(figure("marks_refused_total"), 1);
    mark({"own"});
    EXPECT_EQ(take().names.size(), 16u);
    EXPECT_EQ(figure("partitions"), 2 * kMost + 1) << "our own need none";
}

TEST_F(HotListHearsayTest, HL27_NamesThatDoNotExistGoWithTheNextFullWalk) {
    hear(0, kMost);
    claim_all({}); // the store knows none of them
    clock.advance(46s);
    (void)state();
    tick();
    page({});
    done();
    EXPECT_EQ(figure("partitions"), 0);
    EXPECT_EQ(figure("renewals_total"), 1);
    EXPECT_EQ(state(), ReadyState::cold);
    ASSERT_FALSE(host.wakes().empty()) << "whoever waits makes a new ring";
    EXPECT_EQ(host.wakes().back().group, "a");
    warm();
    hear(0, kMost);
    EXPECT_EQ(figure("marks_refused_total"), 0);
}

TEST_F(HotListHearsayTest, HL27_AFewThatDoNotExistCostNoWalk) {
    hear(0, kMost - 1);
    claim_all({});
    clock.advance(46s);
    (void)state();
    tick();
    page({});
    done();
    EXPECT_EQ(figure("renewals_total"), 0);
    EXPECT_EQ(state(), ReadyState::nothing);
}

} // namespace
} // namespace queen::hotlist
