#include "broker/admin.hpp"
#include "broker/announce.hpp"
#include "broker/groups.hpp"
#include "broker/push.hpp"
#include "broker/switches.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_workers.hpp"
#include "support/recording_mesh.hpp"
#include "support/scripted_group_store.hpp"
#include "support/scripted_system_store.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kTenant{kDefaultTenant};

/// Whoever does something that other brokers have to hear of, and what happens then, in order.
class AnnounceTest : public BrokerParts {
protected:
    struct Listener final : test::IdleSource {
        explicit Listener(std::vector<std::string>& log) : log_(log) {}
        void mark(const plugin::Queue&, std::string_view, plugin::Origin,
                  std::span<const plugin::Mark> marks) override {
            for (const auto& mark : marks) {
                log_.push_back("mark " + std::string(mark.partition));
            }
        }
        void forget(std::string_view, std::string_view queue, std::string_view) override {
            log_.push_back("forget " + std::string(queue));
        }
        void configured(const plugin::Queue& queue, const plugin::QueueConfig&) override {
            log_.push_back("configured " + std::string(queue.name));
        }

    private:
        std::vector<std::string>& log_;
    };

    AnnounceTest() {
        for (const auto& mesh : {mesh_, second_}) {
            mesh->told = [this](const std::string& line) { log_.push_back("tell " + line); };
        }
        second_->listening = false;
        park(log_, "wake",
             {.gate = queue_key(kTenant, "q"), .group = "g", .partition = {}, .labels = {}});
    }

    std::vector<std::string> log_;
    std::shared_ptr<test::RecordingMesh> mesh_ = std::make_shared<test::RecordingMesh>();
    std::shared_ptr<test::RecordingMesh> second_ = std::make_shared<test::RecordingMesh>();
    Meshes meshes_{{{"mesh", mesh_}, {"second", second_}}};
    Sources listening_{{{"ring", std::make_shared<Listener>(log_)}}, "ring"};
    Announcer announcer_{listening_, parking_, &meshes_};
    test::ManualWorkers workers_;
    Pop pops_{store_, listening_, announcer_, parking_, workers_, ticker_, clock_, {}};
};

// POST-3, ME-11
TEST_F(AnnounceTest, APushIsMarkedThenWakesThenIsToldBeforeItsAnswer) {
    store_.on_push = [](const std::vector<PushSegment>& segments, const auto& done) {
        std::vector<PushOutcome> outcomes(segments.size());
        for (auto& outcome : outcomes) {
            outcome.base = Offset{0};
        }
        done(std::move(outcomes));
    };
    Push push(store_, announcer_, clock_, {});
    PushRequest request;
    request.tenant = kTenant;
    for (const std::string partition : {"p", "r"}) {
        PushItem item;
        item.queue = "q";
        item.partition = partition;
        item.payload = "1";
        request.items.push_back(item);
    }
    push.push(request, [this](const auto&) { log_.emplace_back("answer"); });
    EXPECT_THAT(log_, ElementsAre("mark p", "mark r", "wake", "tell stored q p", "tell stored q r",
                                  "answer"));
    EXPECT_THAT(mesh_->tenants, Each(kTenant));
    EXPECT_EQ(mesh_->calls, 1) << "one call a queue";
}

TEST_F(AnnounceTest, TransactionsReplaysAndTimersAreToldToo) {
    for (const auto origin : {plugin::Origin::transaction, plugin::Origin::timer}) {
        announcer_.arrived(kTenant, "q", origin, {{Arrival{"p", {}, 1}}});
    }
    EXPECT_THAT(mesh_->lines, ElementsAre("stored q p", "stored q p"));
    EXPECT_EQ(meshes_.published().value(plugin::HintKind::stored), 2u);
}

// ME-12
TEST_F(AnnounceTest, WhatAPeerSaidMarksAndWakesAndGoesNoFurther) {
    announcer_.arrived(kTenant, "q", plugin::Origin::peer, {{Arrival{"p", {}, 1}}});
    EXPECT_THAT(log_, ElementsAre("mark p", "wake"));
}

// ME-10
TEST_F(AnnounceTest, AMeshThatNobodyListensToIsToldNothing) {
    mesh_->listening = false;
    announcer_.arrived(kTenant, "q", plugin::Origin::push, {{Arrival{"p", {}, 1}}});
    announcer_.tell_peers({.kind = plugin::HintKind::deleted});
    EXPECT_EQ(mesh_->calls, 0);
    second_->listening = true;
    announcer_.tell_peers({.kind = plugin::HintKind::deleted});
    EXPECT_EQ(mesh_->calls, 0);
    EXPECT_EQ(second_->calls, 1);
    EXPECT_EQ(meshes_.published().value(plugin::HintKind::deleted), 1u);
}

TEST_F(AnnounceTest, ASeekIsToldAfterTheWakeAndBeforeTheAnswer) {
    test::ScriptedGroupStore store;
    MovedCursors moved(pops_, announcer_);
    FigureReads figures(clock_, 30s);
    Groups groups(store, moved, figures, clock_, 30s);
    store.on_seek = [](const Seek&, const auto& done) {
        done(SeekOutcome{.moved = 1, .partition_id = test::uuid_of(7)});
    };
    const auto seek = [&](std::optional<std::string> partition) {
        groups.seek({.tenant = kTenant,
                     .queue = "q",
                     .group = "g",
                     .partition = std::move(partition),
                     .to = {}},
                    [this](const auto&) { log_.emplace_back("answer"); });
    };
    seek({});
    EXPECT_THAT(log_, ElementsAre("forget q", "wake", "tell moved q g", "answer"));
    log_.clear();
    seek("p");
    EXPECT_THAT(log_, ElementsAre("mark p", "tell moved q p g", "answer"));
    log_.clear();
    store.on_seek = [](const Seek&, const auto& done) { done(fail(Errc::not_found, "no")); };
    seek("p");
    EXPECT_THAT(log_, ElementsAre("answer"));
    // What was read of another broker's repair stays here.
    log_.clear();
    moved.tell(
        {.tenant = kTenant, .queue = "q", .group = "g", .partition = {}, .partition_id = {}});
    EXPECT_THAT(log_, ElementsAre("forget q"));
}

TEST_F(AnnounceTest, ADeletedGroupIsToldForEachQueueThatHadIt) {
    test::ScriptedGroupStore store;
    MovedCursors moved(pops_, announcer_);
    FigureReads figures(clock_, 30s);
    Groups groups(store, moved, figures, clock_, 30s);
    store.on_remove = [](const std::string&, const std::optional<std::string>&, bool,
                         const auto& done) {
        done(RemovedGroup{.cursors = 1, .subscription = false, .queues = {"q", "s"}});
    };
    groups.remove(kTenant, "g", {}, false, [this](const auto&) { log_.emplace_back("answer"); });
    EXPECT_THAT(log_, ElementsAre("forget q", "wake", "tell moved q g", "forget s",
                                  "tell moved s g", "answer"));
}

TEST_F(AnnounceTest, SettingsAndTheEndOfAQueueAreTold) {
    Admin admin(store_, pops_, announcer_, clock_, 30s);
    store_.on_configure = [](const auto&, const auto&, const auto& done) {
        done(std::string(R"({"options": {"windowBuffer": 0, "delayedProcessing": 0}})"));
    };
    store_.on_delete_queue = [](const auto&, const auto& done) { done(true); };
    admin.configure(kTenant, "q", "{}", [this](const auto&) { log_.emplace_back("answer"); });
    EXPECT_THAT(log_, ElementsAre("configured q", "wake", "tell configured q", "answer"));
    log_.clear();
    admin.delete_queue(kTenant, "q", [this](const auto&) { log_.emplace_back("answer"); });
    EXPECT_THAT(log_, ElementsAre("forget q", "tell deleted q", "answer"));
    log_.clear();
    store_.on_configure = [](const auto&, const auto&, const auto& done) {
        done(std::string(R"({"error": "priority must be an integer"})"));
    };
    store_.on_delete_queue = [](const auto&, const auto& done) { done(false); };
    admin.configure(kTenant, "q", "{}", [](const auto&) {});
    admin.delete_queue(kTenant, "q", [](const auto&) {});
    EXPECT_THAT(log_, IsEmpty()) << "neither was done";
}

TEST_F(AnnounceTest, ASwitchIsToldWhenItHoldsHere) {
    test::ScriptedSystemStore store;
    bool works = true;
    store.on_set_switch = [&](SwitchKey, bool, const auto& done) {
        done(works ? Result<void>() : fail(Errc::unavailable, "no database"));
    };
    store.on_read_switches = [](const auto& done) { done(fail(Errc::unavailable, "no")); };
    std::unique_ptr<Switches> switches;
    switches =
        std::make_unique<Switches>(store, parking_, ticker_, clock_,
                                   Switches::Options{.was_set = [&](SwitchKey, bool enabled) {
                                       EXPECT_EQ(switches->pops_paused(), enabled);
                                       announcer_.tell_peers({.kind = plugin::HintKind::switched,
                                                              .enabled = enabled,
                                                              .tenant = {},
                                                              .queue = {},
                                                              .partition = {},
                                                              .group = {},
                                                              .subject = "pop_maintenance"});
                                   }});
    const auto set = [&](bool paused) {
        switches->pause_pops(paused, [this](const auto&) { log_.emplace_back("answer"); });
    };
    set(true);
    EXPECT_THAT(log_, ElementsAre("wake", "tell switched pop_maintenance on", "answer"));
    log_.clear();
    works = false;
    set(false);
    EXPECT_THAT(log_, ElementsAre("answer"));
}

} // namespace
} // namespace queen::broker
