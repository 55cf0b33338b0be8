// F-13: whatever two brokers and their database do in whatever order, each push is answered as if
// every offset of the window had been compared under the lock.
#include "core/broker/dedup_world.hpp"

#include <gtest/gtest.h>

namespace queen::broker {
namespace {

RC_GTEST_PROP(Dedup, F13_TwoBrokersNeverAcceptADuplicateNorRefuseAnythingElse, ()) {
    DedupModel database;
    DedupWorld world(database);
    for (const auto& step : *rc::gen::container<std::vector<DedupStep>>(dedup_step())) {
        world.run(step);
    }
    world.end();
    const auto stats = world.brokers[0]->cache.stats();
    RC_CLASSIFY(stats.vouched > 0, "vouched");
    RC_CLASSIFY(stats.topups > 0, "read a gap");
    RC_CLASSIFY(stats.disbelieved > 0, "disbelieved");
    RC_CLASSIFY(stats.surprises > 0, "surprised");
}

// What happens every day must not cost an entry.
RC_GTEST_PROP(Dedup, NothingOrdinaryIsASurprise, ()) {
    DedupModel database;
    DedupWorld world(database);
    const auto ordinary = rc::gen::suchThat(
        dedup_step(), [](const DedupStep& step) { return step.kind < DedupStep::widen; });
    for (const auto& step : *rc::gen::container<std::vector<DedupStep>>(ordinary)) {
        world.run(step);
    }
    world.end();
    for (const auto& broker : world.brokers) {
        const auto stats = broker->cache.stats();
        RC_ASSERT(stats.surprises == 0u);
        RC_ASSERT(stats.disbelieved == 0u);
    }
}

} // namespace
} // namespace queen::broker
