#include "meshpg/options.hpp"
#include "meshpg/outbox.hpp"

#include <queen/plugin/common.hpp>

#include <gtest/gtest.h>

namespace queen::meshpg {
namespace {

using plugin::ConfigError;
using plugin::Hint;
using plugin::HintKind;
using Texts = std::vector<std::string>;

Hint stored(std::string_view queue, std::string_view partition) {
    Hint hint;
    hint.queue = queue;
    hint.partition = partition;
    return hint;
}

class MeshPgOutbox : public testing::Test {
protected:
    std::size_t publish(const Hint& hint) { return outbox_.publish(std::span(&hint, 1)); }
    Texts take(std::size_t bytes = 7'900, std::size_t most = 64) {
        Texts out;
        hints_ += outbox_.take("{\"items\":[", bytes, most, out);
        return out;
    }

    int wakes_ = 0;
    std::size_t hints_ = 0;
    Outbox outbox_{5, [this] { ++wakes_; }};
};

TEST_F(MeshPgOutbox, NothingIsKeptWhileNobodyListens) {
    EXPECT_EQ(publish(stored("q", "p")), 0u);
    EXPECT_EQ(outbox_.size(), 0u);
    EXPECT_EQ(wakes_, 0);
}

TEST_F(MeshPgOutbox, EachHintIsWrittenOnceAndSwitchesInTheirOrder) {
    outbox_.set_listened(true);
    Hint moved = stored("q", "");
    moved.kind = HintKind::moved;
    moved.group = "g";
    Hint on;
    on.kind = HintKind::switched;
    on.subject = "maintenance";
    on.enabled = true;
    Hint off = on;
    off.enabled = false;
    for (const Hint& hint : {on, stored("q", "p"), stored("q", "p"), moved, off, on}) {
        publish(hint);
    }
    EXPECT_EQ(wakes_, 1);
    EXPECT_EQ(take(),
              (Texts{R"({"items":[{"subject":"maintenance","enabled":true,"kind":"switched"},)"
                     R"({"queue":"q","partition":"p"},{"queue":"q","group":"g","kind":"moved"},)"
                     R"({"subject":"maintenance","enabled":false,"kind":"switched"},)"
                     R"({"subject":"maintenance","enabled":true,"kind":"switched"}]})"}));
    EXPECT_EQ(hints_, 5u);
    EXPECT_EQ(outbox_.size(), 0u);
    EXPECT_EQ(take(), Texts{});
}

TEST_F(MeshPgOutbox, WhatDoesNotFitIsDroppedAndCounted) {
    outbox_.set_listened(true);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(publish(stored("q", std::to_string(i))), 0u);
    }
    EXPECT_EQ(publish(stored("q", "5")), 1u);
    EXPECT_EQ(publish(stored("q", "0")), 0u) << "which waits already";
    EXPECT_EQ(outbox_.size(), 5u);
    EXPECT_EQ(outbox_.set_listened(false), 5u);
    EXPECT_EQ(outbox_.size(), 0u);
}

TEST_F(MeshPgOutbox, PayloadsKeepTheirBoundsAndTheRestWaits) {
    outbox_.set_listened(true);
    for (const char* partition : {"a", "b", "c", "d"}) {
        publish(stored("q", partition));
    }
    const std::string a = R"({"queue":"q","partition":"a"})";
    const std::size_t two = std::string("{\"items\":[]}").size() + 2 * a.size() + 1;
    Texts got = take(two, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].size(), two);
    EXPECT_EQ(outbox_.size(), 2u);
    publish(stored("q", "e"));
    got = take(two - 1, 64);
    EXPECT_EQ(got.size(), 2u) << "one hint each; what came meanwhile waits for the next";
    EXPECT_EQ(take(two - a.size() - 2), Texts{}) << "a hint that fits into no payload is left out";
    EXPECT_EQ(outbox_.size(), 0u);
    EXPECT_EQ(hints_, 4u);
}

TEST(MeshPgOptions, ContradictionsAreTold) {
    Options options;
    options.server_id = "a";
    options.conninfo = "dbname=x";
    EXPECT_NO_THROW(check(options));
    Options bad = options;
    for (const char* channel : {"", "Upper", "a b", "a\"b", "a;b"}) {
        bad.channel = channel;
        EXPECT_THROW(check(bad), ConfigError) << channel;
    }
    bad = options;
    bad.dead_threshold = bad.heartbeat;
    EXPECT_THROW(check(bad), ConfigError);
    bad = options;
    bad.server_id.clear();
    EXPECT_THROW(check(bad), ConfigError);
    bad = options;
    bad.conninfo.clear();
    EXPECT_THROW(check(bad), ConfigError);
}

} // namespace
} // namespace queen::meshpg
