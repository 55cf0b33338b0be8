// Every call of the GroupStore port against the schema that the installer made.
#include "base/json.hpp"
#include "core/store/pg_port_fixture.hpp"
#include "store/pg_group_store.hpp"
#include "store/pg_store.hpp"

#include <gmock/gmock.h>

namespace queen::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class PgGroupStoreTest : public PgPortTest {
protected:
    void push(const std::string& partition, const std::string& id) {
        PushSegment segment{.tenant = kTenant, .queue = "q", .partition = partition, .count = 1};
        segment.hashes = hash_transaction_id(id).view();
        segment.blob = "x";
        const auto pushed = wait_for<std::vector<PushOutcome>>(
            [&](auto done) { store_.push(kNever, {segment}, done); });
        ASSERT_TRUE(pushed) << pushed.error().message;
    }
    std::size_t pop(const std::string& group) {
        PopArgs args{.tenant = kTenant, .queue = "q", .group = group, .budget = 100};
        args.worker = "w";
        args.max_partitions = 10;
        const auto popped =
            wait_for<PopResult>([&](auto done) { store_.pop_wildcard(kNever, args, done); });
        return popped->partitions.size();
    }
    Result<SeekOutcome> seek(Seek where) {
        return wait_for<SeekOutcome>([&](auto done) { groups_.seek(kNever, where, done); });
    }
    std::vector<Repair> repairs() {
        return *wait_for<std::vector<Repair>>([&](auto done) { groups_.repairs(kNever, done); });
    }

    PgStore store_{Asker(*executor_)};
    PgGroupStore groups_{Asker(*executor_)};
};

TEST_F(PgGroupStoreTest, SeeksMoveAndLeaveRepairs) {
    push("p", "1");
    push("r", "2");
    ASSERT_EQ(pop("g"), 2u);
    EXPECT_THAT(repairs(), IsEmpty());
    const auto whole = seek({.tenant = kTenant, .queue = "q", .group = "g", .partition = {}});
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(whole->moved, 2);
    EXPECT_FALSE(whole->partition_id.known());
    EXPECT_FALSE(whole->waits);
    EXPECT_EQ(pop("g"), 0u);
    const auto after_whole = repairs();
    ASSERT_EQ(after_whole.size(), 1u);
    EXPECT_EQ(after_whole[0].tenant, kTenant);
    EXPECT_EQ(after_whole[0].queue + after_whole[0].group, "qg");
    EXPECT_FALSE(after_whole[0].partition || after_whole[0].partition_id.known());

    ASSERT_TRUE(wait_for<std::string>(
        [&](auto done) { store_.configure(kNever, kTenant, "q", R"({"windowBuffer":1})", done); }));
    ASSERT_EQ(pop("h"), 0u);
    const auto one = seek({.tenant = kTenant,
                           .queue = "q",
                           .group = "h",
                           .partition = "p",
                           .to = WallTime(std::chrono::seconds(1))});
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_EQ(one->moved, 1);
    EXPECT_TRUE(one->partition_id.known());
    EXPECT_TRUE(one->waits);
    for (const auto& repair : repairs()) {
        if (repair.group == "h") {
            EXPECT_EQ(repair.partition, "p");
            EXPECT_EQ(repair.partition_id, one->partition_id);
            EXPECT_TRUE(repair.waits);
            EXPECT_GE(repair.at, after_whole[0].at);
        }
    }
    const auto again = seek({.tenant = kTenant, .queue = "q", .group = "g", .partition = {}});
    ASSERT_TRUE(again);
    for (const auto& repair : repairs()) {
        EXPECT_TRUE(repair.group == "h" || repair.at > after_whole[0].at);
    }
}

TEST_F(PgGroupStoreTest, WhatASeekDoesNotFindIsNotFound) {
    push("p", "1");
    pop("g");
    const auto says = [&](Seek where) {
        const auto outcome = seek(std::move(where));
        if (outcome) {
            return std::string("moved");
        }
        EXPECT_EQ(outcome.error().code, Errc::not_found);
        return outcome.error().message;
    };
    EXPECT_EQ(says({.tenant = kTenant, .queue = "nope", .group = "g", .partition = {}}),
              "Queue not found or has no partitions");
    EXPECT_EQ(says({.tenant = kTenant, .queue = "q", .group = "g", .partition = "nope"}),
              "Partition not found");
    EXPECT_EQ(says({.tenant = kTenant, .queue = "q", .group = "nobody", .partition = {}}),
              "Consumer group not found");
    EXPECT_EQ(says({.tenant = kOtherTenant, .queue = "q", .group = "g", .partition = {}}),
              "Queue not found or has no partitions");
    EXPECT_EQ(seek({.tenant = "x", .queue = "q", .group = "g", .partition = {}}).error().code,
              Errc::invalid_argument);
}

TEST_F(PgGroupStoreTest, ListsAndDetailsAreTheProcedures) {
    push("p", "1");
    pop("g");
    const auto list =
        wait_for<std::string>([&](auto done) { groups_.list_groups(kNever, kTenant, done); });
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_EQ(json::Document::parse(*list)->root().at(0)["name"].string(), "g");
    EXPECT_EQ(
        *wait_for<std::string>([&](auto done) { groups_.list_groups(kNever, kOtherTenant, done); }),
        "[]");
    const auto lagging =
        wait_for<std::string>([&](auto done) { groups_.lagging(kNever, kTenant, 0s, 10, done); });
    ASSERT_TRUE(lagging) << lagging.error().message;
    EXPECT_EQ(json::Document::parse(*lagging)->root().at(0)["partition_name"].string(), "p");
    const auto detail = [&](const std::string& group, std::optional<std::string> queue) {
        return *wait_for<std::optional<std::string>>(
            [&](auto done) { groups_.group_detail(kNever, kTenant, group, queue, done); });
    };
    EXPECT_TRUE(detail("g", {}));
    EXPECT_TRUE(detail("g", "q"));
    EXPECT_FALSE(detail("g", "nope"));
    EXPECT_FALSE(detail("nobody", {}));
}

TEST_F(PgGroupStoreTest, SubscriptionsMoveAndGroupsGo) {
    push("p", "1");
    pop("g");
    const auto subscribe = [&](const std::string& group) {
        return *wait_for<std::int64_t>([&](auto done) {
            groups_.subscribe(kNever, kTenant, group, WallTime(std::chrono::seconds(7)), done);
        });
    };
    EXPECT_EQ(subscribe("g"), 1);
    EXPECT_EQ(subscribe("nobody"), 0);
    const auto remove = [&](const std::string& group, std::optional<std::string> queue,
                            bool subscriptions) {
        return *wait_for<RemovedGroup>([&](auto done) {
            groups_.remove_group(kNever, kTenant, group, queue, subscriptions, done);
        });
    };
    const auto kept = remove("g", "q", false);
    EXPECT_EQ(kept.cursors, 1);
    EXPECT_FALSE(kept.subscription);
    EXPECT_THAT(kept.queues, ElementsAre("q"));
    const auto gone = remove("g", {}, true);
    EXPECT_EQ(gone.cursors, 0);
    EXPECT_TRUE(gone.subscription);
    EXPECT_THAT(gone.queues, ElementsAre("q"));
    EXPECT_THAT(remove("g", {}, true).queues, IsEmpty());
}

} // namespace
} // namespace queen::store
