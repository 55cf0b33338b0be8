#include "mesh/outbox.hpp"
#include "plugins/mesh/mesh_fixture.hpp"
#include "shared/hint_json.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {
thread_local std::size_t allocations = 0;
}

// Counts for ME10_WithoutPeersNothingIsAllocated.
void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size)) {
        return memory;
    }
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace queen::mesh {
namespace {

class OutboxTest : public testing::Test {
protected:
    OutboxTest() {
        options_.peers = {{"a", 1}, {"b", 2}};
        options_.send_queue = 4;
        options_.dirty = 5;
        options_.dirty_frame = 3;
    }
    Outbox& outbox() {
        if (!outbox_) {
            outbox_.emplace(options_, figures_, [this] { ++wakes_; });
        }
        return *outbox_;
    }
    void publish(const Hint& hint) { outbox().publish(std::span(&hint, 1)); }
    /// Types of the frames that wait for a peer.
    std::string types(std::size_t peer) {
        std::vector<OutFrame> frames;
        outbox().take(peer, 1'000, frames);
        std::string out;
        for (const OutFrame& frame : frames) {
            out += std::to_string(int{(*frame.bytes)[4]}) + " ";
        }
        return out;
    }

    Options options_;
    Figures figures_;
    std::atomic<int> wakes_{0};
    std::optional<Outbox> outbox_;
};

TEST_F(OutboxTest, ME10_WithoutPeersNothingIsAllocatedOrLocked) {
    EXPECT_FALSE(outbox().listened());
    const Hint hint = stored("q", "p");
    const std::size_t before = allocations;
    for (int i = 0; i < 1'000; ++i) {
        outbox().publish(std::span(&hint, 1));
    }
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(wakes_, 0);
    EXPECT_EQ(outbox().dirty_size(), 0u);

    outbox().set_connected(1, true);
    EXPECT_TRUE(outbox().listened());
    publish(hint);
    EXPECT_GT(allocations, before) << "the counter counts";
    outbox().set_connected(1, false);
    EXPECT_FALSE(outbox().listened());
}

TEST_F(OutboxTest, ME11_AvailabilityGoesAtOnceAndTheDirtyHintWithTheNextFlush) {
    outbox().set_connected(0, true);
    publish(stored("q", "p"));
    EXPECT_EQ(types(0), "2 ");
    EXPECT_EQ(types(1), "") << "which is not connected";
    EXPECT_TRUE(outbox().dirty());
    EXPECT_FALSE(outbox().flush_dirty());
    EXPECT_EQ(types(0), "5 ");
}

TEST_F(OutboxTest, APartitionOfAGroupIsTwoFramesAndAWholeGroupOne) {
    outbox().set_connected(0, true);
    publish(moved("q", "", "g"));
    EXPECT_FALSE(outbox().dirty());
    publish(moved("q", "p", "g"));
    outbox().flush_dirty();
    EXPECT_EQ(types(0), "64 64 5 ");
}

TEST_F(OutboxTest, ME9_AFullQueueDropsAndCounts) {
    outbox().set_connected(0, true);
    outbox().set_connected(1, true);
    for (int i = 0; i < 6; ++i) {
        publish(moved("q", "", "g"));
        if (i < 3) {
            types(1); // b keeps up
        }
    }
    EXPECT_EQ(outbox().dropped(0), 2u);
    EXPECT_EQ(outbox().dropped(1), 0u);
    EXPECT_EQ(figures_.dropped_full.value(), 2u);
    EXPECT_EQ(outbox().queued(0), 4u);
    EXPECT_EQ(outbox().queued(), 7u);
    EXPECT_EQ(types(1), "64 64 64 ");
    EXPECT_EQ(types(0), "64 64 64 64 68 ") << "MESH-4: the peer hears that there was more";
    EXPECT_EQ(types(0), "") << "once";
}

TEST_F(OutboxTest, AQueueIsBoundedInBytesToo) {
    options_.send_queue_bytes = 150; // a frame of these has 106
    outbox().set_connected(0, true);
    publish(moved("a queue with quite a long name", "", "g"));
    EXPECT_EQ(outbox().queued(0), 1u);
    publish(moved("a queue with quite a long name", "", "g"));
    EXPECT_EQ(outbox().queued(0), 1u);
    EXPECT_EQ(outbox().dropped(0), 1u);
}

TEST_F(OutboxTest, ME8_WhatWaitedIsDiscardedWhenTheConnectionChanges) {
    outbox().set_connected(0, true);
    publish(moved("q", "", "g"));
    outbox().set_connected(0, false);
    EXPECT_EQ(figures_.dropped_stale.value(), 1u);
    outbox().set_connected(0, true);
    EXPECT_EQ(types(0), "");
}

TEST_F(OutboxTest, ME10_DirtyHintsCoalesceByTenantQueuePartitionAndGroup) {
    outbox().set_connected(0, true);
    for (int i = 0; i < 1'000; ++i) {
        publish(stored("q", "p"));
        types(0);
    }
    EXPECT_EQ(outbox().dirty_size(), 1u);
    publish(stored("q", "p2"));
    publish(stored("q2", "p"));
    publish(moved("q", "p", "g"));
    Hint other = stored("q", "p");
    other.tenant = "another";
    publish(other);
    EXPECT_EQ(outbox().dirty_size(), 5u);
    publish(stored("q", "p3"));
    EXPECT_EQ(outbox().dirty_size(), 5u);
    EXPECT_EQ(figures_.dropped_dirty.value(), 1u) << "the set is full";
    types(0);
    EXPECT_TRUE(outbox().flush_dirty()) << "three of five";
    publish(stored("q", "p4"));
    EXPECT_EQ(outbox().dirty_size(), 3u);
    EXPECT_TRUE(outbox().flush_dirty());
    EXPECT_FALSE(outbox().flush_dirty());
    EXPECT_EQ(types(0), "5 2 5 5 ");
}

TEST_F(OutboxTest, ADirtyHintKeepsEveryName) {
    outbox().set_connected(0, true);
    publish(moved("q", "p", "g"));
    types(0);
    outbox().flush_dirty();
    std::vector<OutFrame> frames;
    outbox().take(0, 1, frames);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].bytes->substr(5), "{\"items\":[{\"queue\":\"q\",\"partition\":\"p\","
                                          "\"tenant\":\"" +
                                              std::string(kTenant) + "\",\"group\":\"g\"}]}");
}

TEST_F(OutboxTest, ThousandsOfPushesWakeTheThreadOnce) {
    outbox().set_connected(0, true);
    for (int i = 0; i < 100; ++i) {
        publish(stored("q", "p"));
    }
    EXPECT_EQ(wakes_, 1);
    outbox().awake();
    publish(stored("q", "p"));
    EXPECT_EQ(wakes_, 2);
}

TEST_F(OutboxTest, WorkersPublishWhileTheThreadTakesAndPeersComeAndGo) {
    options_.send_queue = 64;
    options_.dirty = 100;
    outbox();
    std::atomic<int> running{4};
    std::vector<std::thread> workers;
    for (int w = 0; w < 4; ++w) {
        workers.emplace_back([&, w] {
            const std::string partition = "p" + std::to_string(w);
            for (int i = 0; i < 2'000; ++i) {
                publish(stored("q", partition));
            }
            --running;
        });
    }
    std::vector<OutFrame> frames;
    for (int i = 0; running > 0; ++i) {
        outbox().set_connected(0, i % 3 != 0);
        outbox().take(0, 16, frames);
        outbox().flush_dirty();
        EXPECT_LE(outbox().queued(0), 64u);
        frames.clear();
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    while (outbox().flush_dirty()) {
    }
    EXPECT_EQ(outbox().dirty_size(), 0u);
}

} // namespace
} // namespace queen::mesh
