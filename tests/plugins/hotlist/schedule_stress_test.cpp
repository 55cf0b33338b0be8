// Real threads on one hot-list: producers, consumers that die in every way, walks, ticks, forgotten
// groups. What the step-by-step schedules cannot show is a data race; what this run shows besides
// is that everything is delivered, once to whoever acks it. Time is virtual and moves with the
// work, so nobody sleeps and a slow machine (or a sanitizer) loses no lease.
#include "../../../plugins/hotlist/hotlist.hpp"
#include "schedule_store.hpp"

#include <queen/plugin/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace queen::hotlist::schedule {
namespace {

using namespace std::chrono_literals;

constexpr std::array<plugin::Queue, 4> kQueues{{{"acme\x1forders", "acme", "orders"},
                                                {"blue\x1forders", "blue", "orders"},
                                                {"acme\x1fjobs", "acme", "jobs"},
                                                {"blue\x1fjobs", "blue", "jobs"}}};
constexpr std::array<const char*, 2> kGroups{"g", "h"};
constexpr std::size_t kPartitions = 24;
constexpr std::size_t kPushesEach = 10000;
constexpr std::uint64_t kMostBacklog = 1000;
constexpr std::size_t kProducers = 2, kConsumers = 4;
constexpr Nanoseconds kActionTakes = 100us; ///< of virtual time
/// After the last push: some floors, each with its jitter, and the leases of the dead. On a busy
/// machine time may run ahead of the threads that walk, so it is not over before so many walks.
constexpr Nanoseconds kLongEnough = 100s;
constexpr std::uint64_t kEnoughWalks = 100;

class Stress final : public plugin::CandidateHost {
public:
    Stress() {
        for (const auto& queue : kQueues) {
            store_.add_queue(std::string(queue.tenant), std::string(queue.name));
        }
        store_.configure(2, 0s, 100ms);
        store_.configure(3, 200ms, 0s);
        Options options;
        options.shards = 3;
        options.reseed = 500ms;
        options.reseed_full = 2s;
        options.pad = 5ms;
        options.idle_sweep = 1s;
        options.unserved_trim = 1s;
        list_ = std::make_unique<HotList>(options, clock_, *this);
    }

    /// @return false when something is undelivered after long enough
    bool run(std::uint32_t seed) {
        std::vector<std::thread> threads;
        std::vector<std::thread> producers;
        for (std::size_t i = 0; i < kProducers; ++i) {
            producers.emplace_back([this, i, seed] { produce(std::mt19937(seed + 100 + i)); });
        }
        for (std::size_t i = 0; i < kConsumers; ++i) {
            threads.emplace_back([this, i, seed] { consume(std::mt19937(seed + 200 + i)); });
        }
        threads.emplace_back([this] { tick(); });
        threads.emplace_back([this, seed] { walk(std::mt19937(seed + 300)); });
        threads.emplace_back([this, seed] { disturb(std::mt19937(seed + 400)); });
        for (auto& producer : producers) {
            producer.join();
        }
        calm_ = true;
        const auto end = clock_.now() + kLongEnough;
        const auto last_walk = walked_ + kEnoughWalks;
        bool drained = false;
        while (!drained && (clock_.now() < end || walked_ < last_walk)) {
            {
                const std::lock_guard lock(mutex_);
                drained = all_drained();
            }
            std::this_thread::yield();
        }
        stop_ = true;
        for (auto& thread : threads) {
            thread.join();
        }
        return drained;
    }

    /// What the store says of what is left; empty when all is delivered.
    std::string left() const {
        std::string text;
        for (std::size_t queue = 0; queue < kQueues.size(); ++queue) {
            for (const char* group : kGroups) {
                text += store_.describe(queue, group);
            }
        }
        return text;
    }

    void wake(const plugin::Queue&, std::string_view, std::uint64_t) override { ++wakes; }
    void tick_at(SteadyTime when) override {
        const std::lock_guard lock(tick_mutex_);
        next_tick_ = std::min(next_tick_, when);
    }
    void reseed(const plugin::Scope& scope, plugin::Ticket ticket, Nanoseconds window) override {
        const std::lock_guard lock(walk_mutex_);
        walks_.push_back({queue_of(scope.queue.key), std::string(scope.group), ticket, window});
    }

    std::map<std::string, double> stats() {
        struct Sink final : plugin::Stats {
            void add(std::string_view name, double value) override {
                all[std::string(name)] = value;
            }
            std::map<std::string, double> all;
        } sink;
        list_->stats(sink);
        return sink.all;
    }

    std::atomic<std::uint64_t> wakes = 0, acked = 0, stranded = 0, strangers = 0, twice = 0;
    std::atomic<std::uint64_t> pushed = 0;

private:
    struct Asked {
        std::size_t queue;
        std::string group;
        plugin::Ticket ticket;
        Nanoseconds window;
    };

    static std::size_t queue_of(std::string_view key) {
        for (std::size_t i = 0; i < kQueues.size(); ++i) {
            if (kQueues[i].key == key) {
                return i;
            }
        }
        ADD_FAILURE() << "a queue that nobody named";
        return 0;
    }

    bool all_drained() const {
        for (std::size_t queue = 0; queue < kQueues.size(); ++queue) {
            for (const char* group : kGroups) {
                if (!store_.drained(queue, group)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Requires mutex_.
    void work() {
        store_.advance(kActionTakes);
        clock_.advance(kActionTakes);
    }

    void produce(std::mt19937 random) {
        for (std::size_t i = 0; i < kPushesEach; ++i) {
            // Consumers keep up, so that most of their pops meet pushes; unless all is stuck.
            const auto patience = clock_.now() + kLongEnough;
            while (kGroups.size() * pushed > acked + kMostBacklog && clock_.now() < patience) {
                std::this_thread::yield();
            }
            const auto queue = random() % kQueues.size();
            // Each tenant has names of its own.
            const auto name =
                std::string(kQueues[queue].tenant) + '-' + std::to_string(random() % kPartitions);
            const std::uint64_t frames = 1 + random() % 5;
            Uuid id;
            {
                const std::lock_guard lock(mutex_);
                id = store_.push(queue, name, frames);
                work();
            }
            pushed += frames;
            if (random() % 50 == 0) {
                continue; // this broker dies before it tells
            }
            const plugin::Mark mark{name, id, frames};
            list_->mark(kQueues[queue], {}, plugin::Origin::push, {&mark, 1});
        }
    }

    void consume(std::mt19937 random) {
        while (!stop_) {
            const auto queue = random() % kQueues.size();
            const std::string group = kGroups[random() % kGroups.size()];
            const plugin::Scope scope{kQueues[queue], group};
            {
                const std::lock_guard lock(mutex_);
                work();
            }
            if (list_->peek(scope).state == plugin::ReadyState::nothing) {
                std::this_thread::yield();
                continue;
            }
            ClaimArgs args{.worker = ++workers_,
                           .messages = 1 + random() % 40,
                           .partitions = static_cast<std::uint32_t>(1 + random() % 4),
                           .lease = 300ms,
                           .auto_ack = random() % 4 == 0};
            pop(scope, queue, args, random);
        }
    }

    void pop(const plugin::Scope& scope, std::size_t queue, ClaimArgs args, std::mt19937& random) {
        plugin::NameList names(16);
        auto selection = list_->take(
            {.scope = scope, .partitions = args.partitions, .messages = args.messages, .limit = 16},
            names);
        twice += names.refused();
        for (const auto& name : names.partitions()) {
            strangers += name.starts_with(scope.queue.tenant) ? 0 : 1;
        }
        if (selection.pick == plugin::Pick::none) {
            return;
        }
        const auto dies = calm_ ? 100 : random() % 60;
        if (dies == 0) {
            list_->settle(scope, std::move(selection.cookie), {}); // before its statement
            return;
        }
        args.skip_window = selection.holds_window;
        std::vector<Claimed> answers;
        plugin::QueueConfig config;
        Store::Snapshot seen;
        {
            const std::lock_guard lock(mutex_);
            config = {store_.delay(queue), store_.window(queue), clock_.now()};
            args.skip_window = args.skip_window && selection.window == config.window;
            seen = store_.look(queue, scope.group, names.partitions());
        }
        {
            const std::lock_guard lock(mutex_);
            answers = selection.pick == plugin::Pick::names
                          ? store_.claim_list(queue, scope.group, args, names.partitions(), seen)
                          : store_.scan(queue, scope.group, args);
            for (const auto& answer : answers) {
                if (args.auto_ack && answer.found == Found::took) {
                    acked += answer.frames(); // whatever becomes of the pop
                }
            }
            work();
        }
        if (dies == 1) {
            list_->settle(scope, std::move(selection.cookie), {}); // after it: the lease runs out
            return;
        }
        if (dies == 2) {
            ++stranded;
            const std::lock_guard lock(lost_mutex_);
            lost_.push_back(std::move(selection.cookie));
            return;
        }
        settle(scope, std::move(selection), names, answers, args, config.read_at);
        list_->configured(scope.queue, config);
        for (const auto& answer : answers) {
            if (answer.found == Found::took) {
                list_->learn(scope.queue, answer.partition, answer.id);
                finish(scope, queue, answer, args, random);
            }
        }
    }

    void settle(const plugin::Scope& scope, plugin::Selection selection,
                const plugin::NameList& names, const std::vector<Claimed>& answers,
                const ClaimArgs& args, SteadyTime asked) {
        std::vector<plugin::Verdict> verdicts;
        std::set<std::string> reached;
        for (const auto& answer : answers) {
            plugin::Verdict verdict{.partition = answer.partition, .partition_id = answer.id};
            verdict.kind = answer.found == Found::empty    ? plugin::VerdictKind::empty
                           : answer.found == Found::leased ? plugin::VerdictKind::leased
                           : args.auto_ack                 ? plugin::VerdictKind::took_acked
                                                           : plugin::VerdictKind::took_leased;
            verdict.until = asked + answer.left;
            verdict.drained = answer.drained;
            verdict.frames = answer.found == Found::took ? answer.frames() : 0;
            for (const auto& name : names.entries()) {
                if (name.partition == answer.partition) {
                    verdict.token = name.token;
                }
            }
            reached.insert(answer.partition);
            verdicts.push_back(verdict);
        }
        for (const auto& name : names.entries()) {
            if (!reached.contains(name.partition)) {
                verdicts.push_back({.token = name.token, .partition = name.partition});
            }
        }
        if (selection.cookie || !names.entries().empty()) {
            list_->settle(scope, std::move(selection.cookie), verdicts);
        }
    }

    void finish(const plugin::Scope& scope, std::size_t queue, const Claimed& batch,
                const ClaimArgs& args, std::mt19937& random) {
        if (args.auto_ack) {
            return;
        }
        const auto fate = calm_ ? 100 : random() % 50;
        if (fate == 0) {
            return; // its consumer dies
        }
        const auto frames = static_cast<std::int64_t>(batch.frames());
        const auto done = fate == 1 ? 0 : fate == 2 ? frames / 2 : frames;
        Store::Acked ack;
        {
            const std::lock_guard lock(mutex_);
            ack = store_.ack(queue, scope.group, batch.id, args.worker, done);
            work();
        }
        if (ack.released) {
            acked += static_cast<std::uint64_t>(done);
            list_->released(scope.queue, scope.group, batch.id, ack.covered);
        }
    }

    void tick() {
        while (!stop_) {
            const auto now = clock_.now();
            {
                const std::lock_guard lock(tick_mutex_);
                if (next_tick_ > now) {
                    std::this_thread::yield();
                    continue;
                }
                next_tick_ = SteadyTime::max();
            }
            const auto next = list_->tick(now);
            const std::lock_guard lock(tick_mutex_);
            next_tick_ = std::min(next_tick_, next);
        }
    }

    void walk(std::mt19937 random) {
        for (;;) {
            Asked asked{};
            {
                const std::lock_guard lock(walk_mutex_);
                if (walks_.empty()) {
                    if (stop_) {
                        return;
                    }
                    std::this_thread::yield();
                    continue;
                }
                asked = walks_.front();
                walks_.pop_front();
            }
            const plugin::Scope scope{kQueues[asked.queue], asked.group};
            const bool complete = !stop_ && (calm_ || random() % 10 != 0) && pages(scope, asked);
            list_->reseed_done(scope, asked.ticket, complete);
            ++walked_;
        }
    }

    bool pages(const plugin::Scope& scope, const Asked& asked) {
        Uuid after;
        auto since = DbTime::min();
        for (bool first = true;; first = false) {
            Store::Page page;
            plugin::QueueConfig config;
            {
                const std::lock_guard lock(mutex_);
                if (first && asked.window > 0ns) {
                    since = store_.now() - asked.window;
                }
                page = store_.page(asked.queue, scope.group, after, 10, since);
                config = {store_.delay(asked.queue), store_.window(asked.queue), clock_.now()};
                work();
            }
            std::vector<plugin::ReseedRow> rows;
            for (const auto& row : page.rows) {
                rows.push_back({row.partition, row.id});
            }
            list_->configured(scope.queue, config);
            if (!list_->reseed_page(scope, asked.ticket, rows)) {
                return page.last;
            }
            if (page.last) {
                return true;
            }
            after = page.after;
        }
    }

    /// Drops rings under everybody's feet, and reads the figures.
    void disturb(std::mt19937 random) {
        while (!stop_) {
            if (!calm_ && random() % 64 == 0) {
                const auto& queue = kQueues[random() % kQueues.size()];
                list_->forget(queue.tenant, random() % 8 == 0 ? std::string_view{} : queue.name,
                              random() % 4 == 0 ? "" : kGroups[random() % kGroups.size()]);
            }
            stats();
            std::this_thread::yield();
        }
    }

    plugin::ManualClock clock_;
    mutable std::mutex mutex_; ///< of the store, as its transactions
    Store store_;
    std::mutex tick_mutex_, walk_mutex_, lost_mutex_;
    SteadyTime next_tick_ = SteadyTime::max();
    std::deque<Asked> walks_;
    std::atomic<std::uint64_t> workers_ = 0, walked_ = 0;
    std::atomic<bool> calm_ = false, stop_ = false;
    std::unique_ptr<HotList> list_;
    std::vector<std::unique_ptr<plugin::Cookie>>
        lost_; ///< of stranded pops; before the list they go
};

/// A number from the environment: QUEEN_STRESS_RUNS=100 makes it long, QUEEN_STRESS_SEED=N begins
/// with the seed of a failure.
std::uint32_t asked_for(const char* variable, std::uint32_t fallback) {
    const char* text = std::getenv(variable);
    return text == nullptr ? fallback : static_cast<std::uint32_t>(std::stoul(text));
}

TEST(HotListStress, EverythingIsDeliveredOnceWithThreadsThatDie) {
    const auto runs = asked_for("QUEEN_STRESS_RUNS", 4);
    auto seed = asked_for("QUEEN_STRESS_SEED", std::random_device()());
    for (std::uint32_t run = 0; run < runs; ++run, ++seed) {
        Stress stress;
        ASSERT_TRUE(stress.run(seed)) << "seed " << seed << ": " << stress.left();
        // The store gives out no offset twice and the cursors stand at the end: what was acked is
        // exactly what was pushed, for each group.
        EXPECT_EQ(stress.acked, 2 * stress.pushed) << "seed " << seed;
        EXPECT_EQ(stress.strangers, 0u) << "seed " << seed;
        EXPECT_EQ(stress.twice, 0u) << "seed " << seed;
        EXPECT_GT(stress.stranded, 0u) << "the run has to contain what it is about";
        EXPECT_GT(stress.wakes, 0u);
        auto stats = stress.stats();
        EXPECT_LE(stats["in_flight"], 16.0 * static_cast<double>(stress.stranded));
    }
}

} // namespace
} // namespace queen::hotlist::schedule
