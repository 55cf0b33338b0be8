#include "broker/admin.hpp"
#include "core/broker/broker_parts.hpp"
#include "model/names.hpp"
#include "support/idle_source.hpp"
#include "support/manual_workers.hpp"

#include <gmock/gmock.h>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kTenant{kDefaultTenant};

/// What a source is told of settings and of queues that are gone, and what else happened, in order.
class AdminTest : public BrokerParts {
protected:
    struct Listener final : test::IdleSource {
        explicit Listener(std::vector<std::string>& log) : log_(log) {}
        void configured(const plugin::Queue& queue, const plugin::QueueConfig& config) override {
            EXPECT_EQ(queue.key, queue_key(kTenant, queue.name));
            EXPECT_EQ(queue.tenant, kTenant);
            log_.push_back(std::string(queue.name) + " delay=" + std::to_string(config.delay / 1s) +
                           " window=" + std::to_string(config.window / 1s));
            read_at = config.read_at;
        }
        void forget(std::string_view tenant, std::string_view queue,
                    std::string_view group) override {
            EXPECT_EQ(tenant, kTenant);
            EXPECT_EQ(group, "") << "every group";
            log_.push_back("forget " + std::string(queue));
        }
        SteadyTime read_at{};

    private:
        std::vector<std::string>& log_;
    };

    void configure(const std::string& answer) {
        store_.on_configure = [&](const std::string&, const std::string&, const auto& done) {
            clock_.advance(1s);
            done(answer);
        };
        admin_.configure(kTenant, "q", "{}", [this](const Result<std::string>& said) {
            log_.push_back("done " + (said ? *said : said.error().message));
        });
    }

    std::vector<std::string> log_;
    std::shared_ptr<Listener> listener_ = std::make_shared<Listener>(log_);
    std::shared_ptr<Listener> other_ = std::make_shared<Listener>(log_);
    Sources both_{{{"ring", listener_}, {"other", other_}}, "ring"};
    Announcer announcer_{both_, parking_};
    test::ManualWorkers workers_;
    Pop pops_{store_, both_, announcer_, parking_, workers_, ticker_, clock_, {}};
    Admin admin_{store_, pops_, announcer_, clock_, 30s};
};

// A queue may have got the labels that a discovery waits for, and what was withheld may be free.
TEST_F(AdminTest, AConfigurationWakesOneWaiterOfTheQueueAndOneDiscovery) {
    int looked = 0;
    store_.on_pop_discover = [&](const auto&, const auto&, const auto&, const auto& done) {
        done(PopResult{});
    };
    store_.on_pop_specific = [](const auto&, const auto&, const auto& done) { done(PopResult{}); };
    store_.on_has_pending = [&](const PendingQuery&, const auto& done) {
        ++looked;
        done(false);
    };
    PopRequest discovery{.shape = PopRequest::Shape::discovery,
                         .tenant = kTenant,
                         .queue = {},
                         .partition = {},
                         .ns = "n",
                         .task = {},
                         .group = "g",
                         .wait = true};
    auto pinned = discovery;
    pinned.shape = PopRequest::Shape::pinned;
    pinned.queue = "q";
    pinned.partition = "p";
    for (const auto& wanted : {discovery, pinned}) {
        pops_.pop(wanted, [](auto&&) {});
    }
    ASSERT_EQ(parking_.parked(), 2u);
    configure(R"({"configured": true, "options": {"windowBuffer": 0, "delayedProcessing": 0}})");
    workers_.run_all();
    EXPECT_EQ(looked, 2);
    pops_.close();
    workers_.run_all();
}

TEST_F(AdminTest, EverySourceHearsTheNewSettingsBeforeTheAnswerGoesOut) {
    const std::string answer =
        R"({"configured": true, "options": {"windowBuffer": 2, "delayedProcessing": 30}})";
    configure(answer);
    EXPECT_THAT(log_, ElementsAre("q delay=30 window=2", "q delay=30 window=2", "done " + answer));
    EXPECT_EQ(listener_->read_at, clock_.now()) << "what was asked before may have read older ones";
}

TEST_F(AdminTest, AConfigureThatWasRefusedOrFailedTellsNoSource) {
    for (const std::string answer :
         {R"({"error": "priority must be an integer", "invalid": ["priority"]})",
          R"({"configured": true, "options": {"windowBuffer": 2}})",
          R"({"configured": true, "options": {"windowBuffer": "2", "delayedProcessing": 1}})",
          "no json"}) {
        log_.clear();
        configure(answer);
        EXPECT_THAT(log_, ElementsAre("done " + answer));
    }
    store_.on_configure = [](const std::string&, const std::string&, const auto& done) {
        done(fail(Errc::timeout, "late"));
    };
    log_.clear();
    admin_.configure(kTenant, "q", "{}", [this](const Result<std::string>& said) {
        log_.push_back("done " + said.error().message);
    });
    EXPECT_THAT(log_, ElementsAre("done late"));
}

TEST_F(AdminTest, WhatSourcesKnowOfADeletedQueueIsVoidBeforeTheAnswerGoesOut) {
    bool existed = true;
    store_.on_delete_queue = [&](const std::string&, const auto& done) { done(existed); };
    const auto remove = [&] {
        log_.clear();
        admin_.delete_queue(kTenant, "q", [this](const Result<bool>& deleted) {
            log_.push_back(*deleted ? "deleted" : "there was none");
        });
    };
    remove();
    EXPECT_THAT(log_, ElementsAre("forget q", "forget q", "deleted"));
    existed = false;
    remove();
    EXPECT_THAT(log_, ElementsAre("there was none"));
}

// The pop after a delete makes first contact again, instead of naming partitions of the old queue.
TEST_F(AdminTest, ThePopAfterADeleteMakesFirstContactAgain) {
    int contacts = 0;
    store_.on_pop_wildcard = [&](const PopArgs&, const auto& done) {
        ++contacts;
        done(PopResult{});
    };
    store_.on_has_pending = [](const PendingQuery&, const auto& done) { done(false); };
    store_.on_delete_queue = [](const std::string&, const auto& done) { done(true); };
    PopRequest request;
    request.tenant = kTenant;
    request.queue = "q";
    request.group = "g";
    const auto pop = [&] {
        const auto call = pops_.pop(request, [](const Result<PopBatch>&) {});
        workers_.run_all();
    };
    pop();
    ASSERT_EQ(contacts, 1);
    pop();
    ASSERT_EQ(contacts, 1) << "the source says that there is nothing";
    admin_.delete_queue(kTenant, "q", [](const Result<bool>&) {});
    pop();
    EXPECT_EQ(contacts, 2);
}

} // namespace
} // namespace queen::broker
