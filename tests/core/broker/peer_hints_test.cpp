#include "broker/peer_hints.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_workers.hpp"
#include "support/recording_mesh.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using plugin::HintKind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kDefault{kDefaultTenant};
const std::string kFirst = "11111111-1111-1111-1111-111111111111";
const std::string kSecond = "22222222-2222-2222-2222-22222222222a";

plugin::Hint hint_of(HintKind kind, std::string_view tenant, std::string_view queue,
                     std::string_view partition = {}, std::string_view group = {}) {
    return {.kind = kind,
            .tenant = tenant,
            .queue = queue,
            .partition = partition,
            .group = group,
            .subject = {}};
}

class PeerHintsTest : public BrokerParts {
protected:
    struct Listener final : test::IdleSource {
        explicit Listener(std::vector<std::string>& log) : log_(log) {}
        void mark(const plugin::Queue& queue, std::string_view group, plugin::Origin origin,
                  std::span<const plugin::Mark> marks) override {
            EXPECT_EQ(origin, plugin::Origin::peer);
            EXPECT_EQ(group, "");
            EXPECT_EQ(queue.key, queue_key(queue.tenant, queue.name));
            std::string line = "mark " + place(queue.tenant, queue.name);
            for (const auto& mark : marks) {
                line.append(" ").append(mark.partition);
            }
            log_.push_back(line);
        }
        void forget(std::string_view tenant, std::string_view queue, std::string_view) override {
            say("forget " + place(tenant, queue));
        }
        void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override {
            say("configured " + place(queue.tenant, queue.name) +
                " delay=" + std::to_string(config.delay / 1s) +
                " window=" + std::to_string(config.window / 1s));
        }
        static std::string place(std::string_view tenant, std::string_view queue) {
            return std::string(tenant.substr(0, 1)) + "/" + std::string(queue);
        }

        void say(const std::string& line) {
            if (line == fails) {
                throw std::runtime_error(line);
            }
            log_.push_back(line);
        }
        std::string fails{}; ///< what it throws at

    private:
        std::vector<std::string>& log_;
    };

    void park(const std::string& name, const std::string& gate, const std::string& group = "g",
              std::optional<std::string> partition = {}) {
        WaitScope scope{
            .gate = gate, .group = group, .partition = std::move(partition), .labels = {}};
        if (gate.back() == kKeySeparator) {
            scope.labels = std::pair{"n", ""};
        }
        BrokerParts::park(log_, "wake " + name, scope);
    }
    PeerHints& make(PeerHints::Options options = {}) {
        hints_ = std::make_unique<PeerHints>(
            store_, pops_, announcer_, parking_, encryption_, workers_, clock_,
            PeerHints::Told{.moved = [this] { log_.emplace_back("read repairs"); },
                            .switched = [this] { log_.emplace_back("read switches"); },
                            .missed = [this] { log_.emplace_back("missed"); }},
            options);
        return *hints_;
    }
    void hear(std::vector<plugin::Hint> hints) {
        hints_->heard(hints);
        workers_.run_all();
    }
    /// Runs every task. @return how many threw
    int run_all_that_throw() {
        int thrown = 0;
        while (workers_.pending() > 0) {
            try {
                workers_.run_one();
            } catch (const std::runtime_error&) {
                ++thrown;
            }
        }
        return thrown;
    }

    std::vector<std::string> log_;
    std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(log_);
    Sources listening_{{{"ring", listener_}, {"other", listener_}}, "ring"};
    std::shared_ptr<test::RecordingMesh> mesh_ = std::make_shared<test::RecordingMesh>();
    Meshes meshes_{{{"mesh", mesh_}}};
    Announcer announcer_{listening_, parking_, &meshes_};
    test::ManualWorkers workers_;
    Pop pops_{store_, listening_, announcer_, parking_, workers_, ticker_, clock_, {}};
    Encryption encryption_;
    std::unique_ptr<PeerHints> hints_;
};

TEST_F(PeerHintsTest, StoredMarksEverySourceAndWakesAtOnceOnAWorker) {
    make();
    park("wildcard", queue_key(kDefault, "q"));
    park("pinned", queue_key(kDefault, "q"), "g", "p");
    park("elsewhere", queue_key(kDefault, "q"), "g", "x");
    park("discovery", discovery_gate(kDefault));
    {
        std::string queue = "q"; // the names are the caller's until it returns, no longer
        hints_->heard({{hint_of(HintKind::stored, kDefault, queue, "r"),
                        hint_of(HintKind::stored, kDefault, queue, "p"),
                        hint_of(HintKind::stored, "", queue, "p")}});
        queue = "X";
    }
    EXPECT_THAT(log_, IsEmpty()) << "nothing happens on the mesh's thread";
    workers_.run_all();
    EXPECT_THAT(log_, ElementsAre("mark 0/q p r", "mark 0/q p r", "wake wildcard", "wake pinned",
                                  "wake discovery"));
    EXPECT_EQ(hints_->stats().heard.value(HintKind::stored), 3u);
    EXPECT_EQ(mesh_->calls, 0) << "what a peer said goes no further";
}

TEST_F(PeerHintsTest, AHintForAllPartitionsMakesSourcesBeginAnew) {
    make();
    park("pinned", queue_key(kDefault, "q"), "g", "p");
    hear({hint_of(HintKind::stored, kDefault, "q", "r"), hint_of(HintKind::stored, kDefault, "q")});
    EXPECT_THAT(log_, ElementsAre("forget 0/q", "forget 0/q", "wake pinned"));
}

// ME-14
TEST_F(PeerHintsTest, MovedWakesTheGroupAloneAndReadsTheRepairsOnceABatch) {
    make();
    park("g", queue_key(kDefault, "q"));
    park("h", queue_key(kDefault, "q"), "h");
    park("p", queue_key(kDefault, "q"), "g", "p");
    park("r", queue_key(kDefault, "q"), "g", "r");
    hear({hint_of(HintKind::moved, kDefault, "q", "p", "g"),
          hint_of(HintKind::moved, kDefault, "s", "", "g")});
    EXPECT_THAT(log_, ElementsAre("wake g", "wake p", "read repairs"));
}

// ME-15
TEST_F(PeerHintsTest, ConfiguredReadsTheSettingsAndSourcesHearThem) {
    make();
    park("waiter", queue_key(kDefault, "q"));
    std::vector<std::pair<std::string, Done<ReseedPage>>> reads;
    store_.on_reseed_page = [&](const ReseedQuery& query, const Done<ReseedPage>& done) {
        EXPECT_EQ(query.partitions, 1u);
        reads.emplace_back(query.queue, done);
    };
    hear({hint_of(HintKind::configured, kDefault, "q"),
          hint_of(HintKind::configured, kDefault, "r"),
          hint_of(HintKind::configured, kDefault, "r"),
          hint_of(HintKind::configured, kDefault, "s")});
    ASSERT_EQ(reads.size(), 1u) << "one at a time";
    ReseedPage page;
    page.exists = true;
    page.delay_seconds = 3;
    page.window_seconds = 4;
    reads[0].second(page);
    EXPECT_THAT(log_, ElementsAre("configured 0/q delay=3 window=4",
                                  "configured 0/q delay=3 window=4", "wake waiter"));
    workers_.run_all();
    ASSERT_EQ(reads.size(), 2u);
    EXPECT_EQ(reads[1].first, "r");
    log_.clear();
    park("waiter", queue_key(kDefault, "r"));
    reads[1].second(fail(Errc::unavailable, "no database"));
    EXPECT_THAT(log_, ElementsAre("wake waiter")) << "its claim tells the settings";
    EXPECT_EQ(hints_->stats().config_reads_failed.value(), 1u);
    workers_.run_all();
    ASSERT_EQ(reads.size(), 3u);
    EXPECT_EQ(reads[2].first, "s");
    reads[2].second(ReseedPage{}); // there is none any more
    workers_.run_all();
    EXPECT_EQ(reads.size(), 3u);
    EXPECT_EQ(hints_->stats().config_reads_done.value(), 2u);
}

TEST_F(PeerHintsTest, DeletedVoidsWhatIsKnownAndStoredOfTheSameBatchIsKnownAfterwards) {
    make();
    park("waiter", queue_key(kDefault, "q"));
    hear(
        {hint_of(HintKind::stored, kDefault, "q", "p"), hint_of(HintKind::deleted, kDefault, "q")});
    EXPECT_THAT(log_,
                ElementsAre("forget 0/q", "forget 0/q", "wake waiter", "mark 0/q p", "mark 0/q p"));
}

TEST_F(PeerHintsTest, SwitchedIsNeverBelievedOnlyReadOnceABatch) {
    make();
    plugin::Hint on{.kind = HintKind::switched, .enabled = true};
    on.subject = "pop_maintenance";
    plugin::Hint strange{.kind = HintKind::switched, .enabled = true};
    strange.subject = "whatever";
    hear({on, strange, on});
    EXPECT_THAT(log_, ElementsAre("read switches"));
}

TEST_F(PeerHintsTest, EncryptionIsForgottenOfQueuesThatWereConfiguredOrDeleted) {
    auto cipher = Cipher::from_hex(std::string(64, 'a'));
    ASSERT_TRUE(cipher);
    Encryption sealed(std::make_shared<const Cipher>(std::move(*cipher)));
    PeerHints hints(store_, pops_, announcer_, parking_, sealed, workers_, clock_,
                    {.moved = [] {}, .switched = [] {}}, {});
    for (const auto kind : {HintKind::configured, HintKind::deleted}) {
        sealed.learn(kDefault, "q", true);
        ASSERT_TRUE(sealed.wanted(kDefault, "q"));
        hints.heard({{hint_of(kind, kDefault, "q")}});
        workers_.run_all();
        EXPECT_FALSE(sealed.wanted(kDefault, "q"));
    }
}

// ---- whose it is: ME-13, F-42 -------------------------------------------------------------------

TEST_F(PeerHintsTest, F42_WithoutTenancyWhatNamesNoneIsTheDefaultTenantsAndAnothersIsNobodys) {
    make();
    park("default", queue_key(kDefault, "q"));
    park("other", queue_key(kFirst, "q"));
    hear({hint_of(HintKind::stored, kFirst, "q", "p"), hint_of(HintKind::deleted, kFirst, "q")});
    EXPECT_THAT(log_, IsEmpty());
    EXPECT_EQ(hints_->stats().foreign.value(), 2u);
    hear({hint_of(HintKind::stored, "no uuid", "q", "p")});
    EXPECT_THAT(log_, ElementsAre("mark 0/q p", "mark 0/q p", "wake default"));
}

TEST_F(PeerHintsTest, F42_WithTenancyATenantThatIsNamedAloneIsTold) {
    make({.tenants = true});
    park("first", queue_key(kFirst, "q"));
    park("second", queue_key(kSecond, "q"));
    std::string upper = kSecond;
    upper.back() = 'A';
    hear({hint_of(HintKind::stored, upper, "q", "p")});
    EXPECT_THAT(log_, ElementsAre("mark 2/q p", "mark 2/q p", "wake second"));
    EXPECT_EQ(hints_->stats().fanned_out.value(), 0u);
}

TEST_F(PeerHintsTest, F42_WithTenancyWhatNamesNoneIsEveryHoldersAndNeverTheDefaultTenants) {
    make({.tenants = true});
    park("first", queue_key(kFirst, "q"));
    park("elsewhere", queue_key(kFirst, "r"));
    park("discovery", discovery_gate(kFirst));
    pops_.configured(kSecond, "q", {}); // nobody waits, yet its next pop goes by what sources know
    for (const auto tenant : {"", "no uuid"}) {
        log_.clear();
        hear({hint_of(HintKind::stored, tenant, "q", "p")});
        std::vector<std::string> marks;
        for (const auto& line : log_) {
            EXPECT_NE(line, "wake elsewhere");
            EXPECT_NE(line.substr(0, 6), "mark 0");
            if (line.starts_with("mark")) {
                marks.push_back(line);
            }
        }
        EXPECT_THAT(marks,
                    UnorderedElementsAre("mark 1/q p", "mark 1/q p", "mark 2/q p", "mark 2/q p"));
    }
    EXPECT_EQ(hints_->stats().fanned_out.value(), 2u);
    log_.clear();
    hear({hint_of(HintKind::stored, "", "unknown", "p")});
    EXPECT_THAT(log_, IsEmpty());
    EXPECT_EQ(hints_->stats().nobody.value(), 1u);
}

// ---- what peers get wrong -----------------------------------------------------------------------

TEST_F(PeerHintsTest, NamesThatBreakOurLimitsAreLeftOutAndTheRestIsHeard) {
    make();
    const std::string control = "a\x1f"
                                "b";
    const std::string longest(256, 'n');
    const std::string much(250, 'n');
    hear({hint_of(HintKind::stored, kDefault, "", "p"),
          hint_of(HintKind::stored, kDefault, ".", "p"),
          hint_of(HintKind::stored, kDefault, control, "p"),
          hint_of(HintKind::stored, kDefault, longest, "p"),
          hint_of(HintKind::stored, kDefault, "q", longest),
          hint_of(HintKind::stored, kDefault, "q", "\xff"),
          hint_of(HintKind::stored, kDefault, much, much),
          hint_of(HintKind::stored, longest, "q", "p"),
          hint_of(HintKind::moved, kDefault, "q", "", control),
          hint_of(HintKind::moved, kDefault, "", "", "g"),
          hint_of(HintKind::configured, kDefault, ".."), hint_of(HintKind::deleted, kDefault, ""),
          hint_of(HintKind::stored, kDefault, "q", "p")});
    EXPECT_THAT(log_, ElementsAre("mark 0/q p", "mark 0/q p"));
    EXPECT_EQ(hints_->stats().malformed.value(), 12u);
    EXPECT_EQ(hints_->stats().heard.value(HintKind::stored), 9u);
}

TEST_F(PeerHintsTest, MoreThanMayWaitIsDroppedAndCounted) {
    make({.waiting = 3});
    const std::vector<plugin::Hint> flood(10, hint_of(HintKind::stored, kDefault, "q", "p"));
    hints_->heard(flood);
    EXPECT_EQ(hints_->waiting(), 3u);
    EXPECT_EQ(workers_.pending(), 1u) << "one task at a time";
    EXPECT_EQ(hints_->stats().overflowed.value(), 7u);
    EXPECT_THAT(log_, ElementsAre("missed")) << "MESH-4: it is looked for instead";
    EXPECT_EQ(hints_->stats().missed.value(), 0u) << "no mesh said so";
    workers_.run_all();
    EXPECT_EQ(hints_->waiting(), 0u);
    hints_->heard(flood);
    EXPECT_EQ(hints_->waiting(), 3u);
    workers_.run_all();
    const auto bytes = kDefault.size() + 2;
    make({.waiting_bytes = bytes});
    hints_->heard(flood);
    EXPECT_EQ(hints_->waiting(), 1u);
    EXPECT_EQ(hints_->stats().overflowed.value(), 9u);
    workers_.run_all();
}

TEST_F(PeerHintsTest, OneTaskWorksHoweverManyFramesCome) {
    make();
    for (int i = 0; i < 5; ++i) {
        hints_->heard({{hint_of(HintKind::stored, kDefault, "q", "p")}});
    }
    EXPECT_EQ(workers_.pending(), 1u);
    workers_.run_all();
    EXPECT_EQ(hints_->waiting(), 0u);
    hints_->heard({{hint_of(HintKind::stored, kDefault, "q", "p")}});
    EXPECT_EQ(workers_.pending(), 1u) << "and the next one after it";
    workers_.run_all();
}

TEST_F(PeerHintsTest, ALongBatchIsWorkedInPartsSoThatOthersGetAWorkerInBetween) {
    make();
    hints_->heard(std::vector<plugin::Hint>(10'000, hint_of(HintKind::deleted, kDefault, "q")));
    EXPECT_EQ(workers_.pending(), 1u);
    EXPECT_TRUE(workers_.run_one());
    EXPECT_GT(hints_->waiting(), 0u);
    EXPECT_EQ(workers_.pending(), 1u);
    workers_.run_all();
    EXPECT_EQ(hints_->waiting(), 0u);
    EXPECT_EQ(log_.size(), 20'000u);
}

TEST_F(PeerHintsTest, SettingsThatWaitToBeReadHaveABound) {
    make({.config_reads = 1});
    std::vector<Done<ReseedPage>> reads;
    store_.on_reseed_page = [&](const ReseedQuery&, const auto& done) { reads.push_back(done); };
    hear({hint_of(HintKind::configured, kDefault, "q"),
          hint_of(HintKind::configured, kDefault, "r"),
          hint_of(HintKind::configured, kDefault, "r"),
          hint_of(HintKind::configured, kDefault, "s")});
    EXPECT_EQ(reads.size(), 1u);
    EXPECT_EQ(hints_->stats().overflowed.value(), 1u) << "r waits, s has no room";
}

// ---- what costs too much, and what goes wrong ---------------------------------------------------

TEST_F(PeerHintsTest, ME13_AFrameForThousandsOfTenantsIsNotMultipliedAndHoldsAWorkerForAPartOnly) {
    constexpr int kTenants = 5'000;
    constexpr int kPartitions = 20;
    make({.tenants = true});
    for (int i = 0; i < kTenants; ++i) {
        const auto digits = std::to_string(i);
        pops_.configured("11111111-1111-1111-1111-" + std::string(12 - digits.size(), '0') + digits,
                         "q", {});
    }
    std::vector<std::string> names;
    for (int i = 0; i < kPartitions; ++i) {
        names.push_back("p" + std::to_string(i));
    }
    std::vector<plugin::Hint> frame;
    for (const auto& name : names) {
        frame.push_back(hint_of(HintKind::stored, "", "q", name));
    }
    hints_->heard(frame);
    std::size_t most = 0;
    for (std::size_t before = 0; workers_.run_one(); before = log_.size()) {
        most = std::max(most, log_.size() - before);
    }
    EXPECT_THAT(log_, testing::Each("forget 1/q")) << "all of it is to be looked at";
    EXPECT_EQ(log_.size(), 2u * kTenants) << "once by each of the two sources";
    log_.clear();
    hear({hint_of(HintKind::stored, "", "q", "p"), hint_of(HintKind::stored, "", "q", "r")});
    EXPECT_THAT(log_, testing::Each("mark 1/q p r")) << "few are told one by one";
    EXPECT_EQ(log_.size(), 2u * kTenants);
    log_.clear();
    for (const auto kind : {HintKind::moved, HintKind::deleted}) {
        frame.clear();
        for (const auto& name : names) {
            const std::string_view group = kind == HintKind::moved ? name : std::string_view();
            frame.push_back(hint_of(kind, "", "q", name, group));
        }
        hints_->heard(frame);
        for (std::size_t before = log_.size(); workers_.run_one(); before = log_.size()) {
            most = std::max(most, log_.size() - before);
        }
    }
    EXPECT_EQ(log_.size(), 1u + 2u * kTenants) << "repairs are read, and each is told once";
    EXPECT_LE(most, 2u * 4'096) << "of one task";
}

TEST_F(PeerHintsTest, ASourceThatThrowsCostsItsOwnHintAndNothingAfterIt) {
    make();
    listener_->fails = "forget 0/bad";
    hints_->heard({{hint_of(HintKind::moved, kDefault, "m", "", "g"),
                    hint_of(HintKind::deleted, kDefault, "bad"),
                    hint_of(HintKind::deleted, kDefault, "good")}});
    EXPECT_THROW(workers_.run_one(), std::runtime_error);
    workers_.run_all();
    EXPECT_THAT(log_, ElementsAre("forget 0/good", "forget 0/good", "read repairs"));
    log_.clear();
    hints_->heard(std::vector(5'000, hint_of(HintKind::deleted, kDefault, "bad")));
    hints_->heard({{hint_of(HintKind::deleted, kDefault, "good")}});
    EXPECT_EQ(run_all_that_throw(), 5'000);
    EXPECT_THAT(log_, ElementsAre("forget 0/good", "forget 0/good"));
    hear({hint_of(HintKind::deleted, kDefault, "good")});
    EXPECT_EQ(log_.size(), 4u) << "and the next frame is heard";
}

TEST_F(PeerHintsTest, SettingsAreReadOnWhoeverThrows) {
    make();
    listener_->fails = "configured 0/b delay=0 window=0";
    std::vector<std::string> asked;
    store_.on_reseed_page = [&](const ReseedQuery& query, const Done<ReseedPage>& done) {
        asked.push_back(query.queue);
        if (query.queue == "a") {
            throw std::runtime_error("no memory");
        }
        ReseedPage page;
        page.exists = true;
        done(page);
    };
    hints_->heard({{hint_of(HintKind::configured, kDefault, "a"),
                    hint_of(HintKind::configured, kDefault, "b"),
                    hint_of(HintKind::configured, kDefault, "c")}});
    EXPECT_EQ(run_all_that_throw(), 2);
    EXPECT_THAT(asked, ElementsAre("a", "b", "c"));
    EXPECT_THAT(log_,
                ElementsAre("configured 0/c delay=0 window=0", "configured 0/c delay=0 window=0"));
    hear({hint_of(HintKind::configured, kDefault, "c")});
    EXPECT_EQ(asked.size(), 4u);
}

TEST_F(PeerHintsTest, AnAnswerThatIsDroppedDoesNotKeepOtherSettingsFromBeingRead) {
    make();
    int asked = 0;
    store_.on_reseed_page = [&](const ReseedQuery&, const auto&) { ++asked; };
    hear({hint_of(HintKind::configured, kDefault, "q"),
          hint_of(HintKind::configured, kDefault, "r")});
    EXPECT_EQ(asked, 2);
}

TEST_F(PeerHintsTest, NothingIsDoneAfterTheEnd) {
    make();
    hints_->heard({{hint_of(HintKind::stored, kDefault, "q", "p")}});
    hints_->stop();
    hints_->heard({{hint_of(HintKind::stored, kDefault, "q", "p")}});
    workers_.run_all();
    EXPECT_THAT(log_, IsEmpty());
}

// MESH-4
TEST_F(PeerHintsTest, WhatAMeshMayHaveLostIsCountedAndToldOnItsThread) {
    make();
    hints_->missed();
    EXPECT_THAT(log_, ElementsAre("missed"));
    EXPECT_EQ(hints_->stats().missed.value(), 1u);
}

} // namespace
} // namespace queen::broker
