// MET-3 as a property: whatever is added when, a minute loses nothing, shows each queue once and
// grows no further than its bound.
#include "metrics/queue_table.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <ostream>
#include <set>

namespace queen::metrics {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 3;

struct Step {
    int kind = 0; ///< 0 to 5: a push, 6: time passes, 7: a look
    int queue = 0;
    int amount = 0;
};

void showValue(const Step& step, std::ostream& out) {
    out << step.kind << "/" << step.queue << "/" << step.amount;
}

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(rc::gen::set(&Step::kind, rc::gen::inRange(0, 8)),
                                rc::gen::set(&Step::queue, rc::gen::inRange(0, 6)),
                                rc::gen::set(&Step::amount, rc::gen::inRange(1, 100)));
}

/// What a table without any bound would know.
using Minute = std::map<std::string, std::uint64_t>;

void check(QueueTable& table, const std::map<std::int64_t, Minute>& minutes) {
    const auto now = table.minute();
    const auto seen = table.last_minute();
    RC_ASSERT(table.size() <= kMost);
    if (now == 0) {
        RC_ASSERT(!seen.age && seen.lines.empty());
        return;
    }
    const auto found = minutes.find(now - 1);
    const Minute truth = found == minutes.end() ? Minute{} : found->second;
    std::uint64_t all = 0, shown = 0;
    for (const auto& [queue, count] : truth) {
        all += count;
    }
    std::set<std::string> names;
    std::size_t own = 0;
    for (const auto& line : seen.lines) {
        RC_ASSERT(names.insert(line.queue).second);
        shown += line.figures.push_messages;
        if (line.queue != kOtherQueues) {
            ++own;
            RC_ASSERT(truth.contains(line.queue));
            RC_ASSERT(line.figures.push_messages <= truth.at(line.queue));
        }
    }
    RC_ASSERT(shown == all);
    RC_ASSERT(own <= kMost);
    // With room for all, each has its own line and its own figures.
    std::set<std::string> ever; // a name of the last minute still has its place in this one
    for (const auto& [minute, queues] : minutes) {
        for (const auto& [queue, count] : queues) {
            ever.insert(queue);
        }
    }
    ever.erase(std::string(kOtherQueues));
    const bool crowded = ever.size() > kMost;
    if (!crowded) {
        for (const auto& [queue, count] : truth) {
            const auto line = std::find_if(seen.lines.begin(), seen.lines.end(),
                                           [&](const auto& one) { return one.queue == queue; });
            RC_ASSERT(line != seen.lines.end());
            RC_ASSERT(line->figures.push_messages == count);
        }
    }
}

RC_GTEST_PROP(QueueTableProperty, LosesNothingAndStaysWithinItsBound, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    test::ManualClock clock;
    QueueTable table(clock, kMost);
    std::map<std::int64_t, Minute> minutes;
    for (const auto& step : steps) {
        if (step.kind < 6) {
            const std::string queue =
                step.queue == 5 ? std::string(kOtherQueues) : "q" + std::to_string(step.queue);
            table.add(queue, {.push_messages = static_cast<std::uint64_t>(step.amount)});
            minutes[table.minute()][queue] += static_cast<std::uint64_t>(step.amount);
        } else if (step.kind == 6) {
            clock.advance(std::chrono::seconds(step.amount * 2)); // within a minute, or over three
        } else {
            check(table, minutes);
        }
    }
    for (int i = 0; i < 3; ++i) {
        check(table, minutes);
        clock.advance(1min);
    }
    check(table, minutes);
    RC_ASSERT(table.size() == 0u);
}

} // namespace
} // namespace queen::metrics
