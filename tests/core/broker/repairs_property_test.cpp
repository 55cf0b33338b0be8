// F-44: transactions that move cursors begin and commit in any order, readers read at any moment
// and sometimes fail. Whatever a transaction moved is told to every broker by the read after its
// commit, and told no more than there were reasons for. One whose telling throws keeps no other
// from it for more than one read, and ends nothing. A poke makes a read that begins after it, and
// leaves one read or one timer.
#include "broker/repairs.hpp"
#include "support/manual_clock.hpp"
#include "support/manual_ticker.hpp"
#include "support/manual_workers.hpp"
#include "support/scripted_group_store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

struct Step {
    enum Kind { begin, commit, tick, work, poke, answer, blow, fail, pass, prune, kinds };
    int kind;
    std::uint8_t pick;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"begin",  "commit", "tick", "work", "poke",
                                             "answer", "blow",   "fail", "pass", "prune"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

/// The table as procedures write it, and one broker that reads it.
class World {
public:
    World() {
        store_.on_repairs = [this](Done<std::vector<Repair>> done) {
            RC_ASSERT(!reading_); // never two reads at once
            RC_ASSERT(ticker_.pending() == 0);
            reading_ = std::move(done);
            // What commits from here on, this read does not see.
            snapshot_.clear();
            for (const auto& [queue, row] : table_) {
                snapshot_.push_back(row);
            }
            seen_owed_ = std::exchange(owed_, {});
            seen_changes_ = std::exchange(changes_, 0);
        };
        reader_->start();
    }
    ~World() { reader_->stop(); }

    /// A transaction: its time is taken now, its row is there when it commits.
    void begin(std::uint8_t pick) {
        const char* const queues[] = {"q", "r"};
        const char* const partitions[] = {"p", "s"};
        Repair repair{.tenant = "t",
                      .queue = queues[pick % 2],
                      .group = "g",
                      .partition = {},
                      .partition_id = {},
                      .at = WallTime(std::chrono::seconds(now_))};
        if (pick % 3 != 0) {
            repair.partition = partitions[pick / 2 % 2];
        }
        // Only one of a queue and group at a time: a lock keeps the others out.
        for (const auto& open : open_) {
            if (open.queue == repair.queue) {
                return;
            }
        }
        open_.push_back(std::move(repair));
    }
    void commit(std::uint8_t pick) {
        if (open_.empty()) {
            return;
        }
        const auto at = open_.begin() + pick % static_cast<int>(open_.size());
        Repair row = *at;
        open_.erase(at);
        owed_.insert({row.queue, row.partition.value_or("*")});
        if (const auto before = table_.find(row.queue); before != table_.end()) {
            if (before->second.partition != row.partition) {
                row.partition.reset();
            }
            // It moves on; it need not where the row differs anyway.
            const bool same = before->second.partition == row.partition;
            row.at = std::max(row.at, before->second.at + (same ? 1us : 0us));
        }
        table_[row.queue] = row;
        ++changes_;
    }
    void tick() {
        RC_ASSERT(ticker_.pending() <= 1);
        if (const auto next = ticker_.next()) {
            RC_ASSERT(!reading_);
            ticker_.advance(*next - clock_.now()); // the read itself waits for a worker
        }
    }
    void work() { workers_.run_all(); }
    void poke() {
        again_ = static_cast<bool>(reading_);
        reader_->poke();
        RC_ASSERT(reading_);
    }
    void answer() {
        if (!reading_) {
            return;
        }
        told_.clear();
        delayed_.clear();
        const auto owed = std::exchange(seen_owed_, {});
        const auto changes = std::exchange(seen_changes_, 0);
        auto done = std::exchange(reading_, nullptr);
        done(std::vector<Repair>(snapshot_));
        RC_ASSERT(told_.size() <= changes); // what did not change is not told again
        for (const auto& [queue, partition] : owed) {
            RC_ASSERT(told_.contains({queue, "*"}) || told_.contains({queue, partition}));
        }
        goes_on();
    }
    /// The telling of one queue's repair throws, if it comes to that.
    void blow(std::uint8_t pick) {
        if (!reading_) {
            return;
        }
        const std::string bad = pick % 2 == 0 ? "q" : "r";
        bad_ = &bad;
        told_.clear();
        const auto delayed = std::exchange(delayed_, {});
        const auto owed = std::exchange(seen_owed_, {});
        const auto changes = std::exchange(seen_changes_, 0);
        auto done = std::exchange(reading_, nullptr);
        try {
            done(std::vector<Repair>(snapshot_));
        } catch (const std::runtime_error& thrown) { // as the executor's loop does
            RC_ASSERT(std::string_view(thrown.what()) == "no memory");
        }
        bad_ = nullptr;
        for (const auto& [queue, partition] : owed) {
            if (!told_.contains({queue, "*"}) && !told_.contains({queue, partition})) {
                RC_ASSERT(!delayed.contains(queue) || queue == bad);
                if (queue != bad) {
                    delayed_.insert(queue);
                }
                (reading_ ? seen_owed_ : owed_).insert({queue, partition});
            }
        }
        (reading_ ? seen_changes_ : changes_) += changes; // another read may have begun
        goes_on();
    }
    void fail() {
        if (reading_) {
            auto done = std::exchange(reading_, nullptr);
            told_.clear();
            owed_.merge(seen_owed_);
            changes_ += std::exchange(seen_changes_, 0);
            done(queen::fail(Errc::unavailable, "no database"));
            RC_ASSERT(told_.empty());
            goes_on(); // a failure is no end
        }
    }
    void pass(std::uint8_t pick) { now_ += pick % 3; }
    /// An hour passes, in which every broker reads and every transaction ends.
    void prune() {
        if (owed_.empty() && open_.empty() && !reading_) {
            now_ += 3'601;
            table_.clear();
        }
    }

private:
    /// After a read: another one at once when somebody poked meanwhile, else a timer.
    void goes_on() {
        const bool again = std::exchange(again_, false);
        RC_ASSERT(static_cast<bool>(reading_) == again);
        RC_ASSERT(ticker_.pending() == (again ? 0u : 1u));
    }

    int now_ = 1'000;
    bool again_ = false; ///< poked during the read
    std::vector<Repair> snapshot_;
    std::size_t seen_changes_ = 0; ///< of the read that is under way, as changes_ and owed_
    std::vector<Repair> open_;
    std::map<std::string, Repair> table_; ///< by queue: there is one group
    std::size_t changes_ = 0;             ///< since the last answer
    std::set<std::pair<std::string, std::string>> owed_, seen_owed_, told_;

    const std::string* bad_ = nullptr; ///< queue whose telling throws
    std::set<std::string> delayed_;    ///< queues that another one kept from it

    test::ManualClock clock_;
    test::ManualTicker ticker_{clock_};
    test::ManualWorkers workers_;
    test::ScriptedGroupStore store_;
    Done<std::vector<Repair>> reading_;
    std::shared_ptr<RepairReader> reader_ =
        RepairReader::make(store_, ticker_, workers_, clock_,
                           [this](const Repair& repair) {
                               if (bad_ != nullptr && repair.queue == *bad_) {
                                   throw std::runtime_error("no memory");
                               }
                               told_.insert({repair.queue, repair.partition.value_or("*")});
                           },
                           {.interval = 5s, .wait = 1s});
};

RC_GTEST_PROP(Repairs, F44_NoRepairIsMissedWhateverOrderTheyCommitIn, ()) {
    const auto script = *rc::gen::container<std::vector<Step>>(rc::gen::apply(
        [](int kind, std::uint8_t pick) {
            return Step{kind, pick};
        },
        rc::gen::inRange(0, static_cast<int>(Step::kinds)), rc::gen::arbitrary<std::uint8_t>()));
    World world;
    for (const Step& step : script) {
        switch (step.kind) {
        case Step::begin:
            world.begin(step.pick);
            break;
        case Step::commit:
            world.commit(step.pick);
            break;
        case Step::tick:
            world.tick();
            break;
        case Step::work:
            world.work();
            break;
        case Step::poke:
            world.poke();
            break;
        case Step::answer:
            world.answer();
            break;
        case Step::blow:
            world.blow(step.pick);
            break;
        case Step::fail:
            world.fail();
            break;
        case Step::pass:
            world.pass(step.pick);
            break;
        case Step::prune:
            world.prune();
            break;
        }
    }
    world.answer();
    world.answer();
    world.tick();
    world.work();
    world.answer();
}

} // namespace
} // namespace queen::broker
