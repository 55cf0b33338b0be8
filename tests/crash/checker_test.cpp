// Two brokers over one database, producers and consumers, and deaths in between: what was answered
// `queued` reaches every group, what was acked stays acked, and order holds.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/sql_session.hpp"
#include "support/temp_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace queen::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// What clients were told. Locks: mutex_ is a leaf.
class Ledger {
public:
    void queued(const std::string& id) {
        const std::lock_guard lock(mutex_);
        queued_.insert(id);
    }
    void delivered(const std::string& group, Clock::time_point asked, const Message& message) {
        const std::lock_guard lock(mutex_);
        auto& of = groups_[group];
        const auto acked = of.acked.find(message.transaction_id);
        if (acked != of.acked.end() && acked->second < asked) {
            faults_.push_back(message.transaction_id + " came to " + group + " after its ack");
        }
        if (!of.seen.insert(message.transaction_id).second) {
            return;
        }
        const auto [last, first] = of.last.try_emplace(message.partition, -1);
        if (message.offset <= last->second) {
            faults_.push_back(message.transaction_id + " came to " + group + " out of order");
        }
        last->second = message.offset;
        ++first_;
        changed_.notify_all();
    }
    void acked(const std::string& group, const std::string& id) {
        const std::lock_guard lock(mutex_);
        groups_[group].acked.try_emplace(id, Clock::now());
    }
    /// Waits until that many more messages came to a group for the first time.
    bool progress(std::size_t more) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience,
                                 [this, wanted = first_ + more] { return first_ >= wanted; });
    }
    /// Waits until each of the groups has seen whatever was queued.
    bool complete(const std::vector<std::string>& groups) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] {
            return std::all_of(groups.begin(), groups.end(), [this](const auto& group) {
                const auto& seen = groups_[group].seen;
                return std::includes(seen.begin(), seen.end(), queued_.begin(), queued_.end());
            });
        });
    }
    std::vector<std::string> faults() const {
        const std::lock_guard lock(mutex_);
        return faults_;
    }

private:
    struct Group {
        std::set<std::string> seen;
        std::map<std::string, Clock::time_point> acked;
        std::map<std::string, std::int64_t> last; ///< offset of the last first delivery
    };
    static constexpr auto kPatience = 60s;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t first_ = 0; ///< first deliveries, over all groups
    std::set<std::string> queued_;
    std::map<std::string, Group> groups_;
    std::vector<std::string> faults_;
};

class CheckerTest : public testing::TestWithParam<const char*> {
protected:
    std::string url() const {
        return "host=" + directory_.path() + "/data/run user=queen dbname=queen";
    }
    void start_owner() {
        owner_.emplace(BrokerOptions{.config = "database: {sessions: 8}\n" + serving(GetParam()),
                                     .data_directory = directory_.path() + "/data"});
        ports_[0] = owner_->port();
    }
    void start_guest() {
        guest_.emplace(BrokerOptions{.config = "database: {sessions: 8, url: \"" + url() + "\"}\n" +
                                               serving(GetParam()),
                                     .data_directory = directory_.path() + "/guest"});
        ports_[1] = guest_->port();
    }
    /// Runs `use` with a connection to one broker, and after a while or when that broke with one to
    /// the other, until it says stop.
    template <class Use>
    void with_brokers(std::size_t first, Use use) {
        for (std::size_t turn = first;; ++turn) {
            try {
                Api api(ports_[turn % 2]);
                for (int i = 0; i < 20; ++i) {
                    if (!use(api)) {
                        return;
                    }
                }
            } catch (const std::runtime_error&) { // broken, refused, or an answer of 500
                std::this_thread::yield();
            }
        }
    }
    void produce(std::size_t number) {
        int sequence = 0;
        with_brokers(number, [&](Api& api) {
            const auto id = std::to_string(number) + "-" + std::to_string(sequence);
            const auto partition = "p" + std::to_string(sequence % 3);
            const auto status = column(api.push_ids("q", partition, {id}), "status").at(0);
            if (status == "queued" || status == "duplicate") { // the answer to a try before
                ledger_.queued(id);
                ++sequence;
            }
            return !no_more_pushes_.load();
        });
    }
    void consume(const std::string& group, std::size_t number) {
        with_brokers(number, [&](Api& api) {
            const auto asked = Clock::now();
            const auto popped = api.pop("q", "batch=20&partitions=2&leaseSeconds=1&wait=true&"
                                             "timeout=500&consumerGroup=" +
                                                 group);
            for (const auto& message : popped.messages) {
                ledger_.delivered(group, asked, message);
            }
            for (const auto& message : popped.messages) {
                if (api.ack(message, "completed", group) == "true") {
                    ledger_.acked(group, message.transaction_id);
                }
            }
            return !no_more_pops_.load();
        });
    }
    TempDirectory directory_;
    std::optional<BrokerProcess> owner_, guest_;
    std::atomic<std::uint16_t> ports_[2]{};
    std::atomic<bool> no_more_pushes_{false}, no_more_pops_{false};
    Ledger ledger_;
};

TEST_P(CheckerTest, DeathsLoseNothingRepeatNothingAckedAndKeepOrder) {
    start_owner();
    start_guest();
    Api(ports_[0]).configure("q", R"({"retryLimit":1000000})");
    const std::vector<std::string> groups{"a", "b"};
    std::vector<std::thread> producers, consumers;
    for (std::size_t i = 0; i < 2; ++i) {
        producers.emplace_back([this, i] { produce(i); });
        for (const auto& group : groups) {
            consumers.emplace_back([this, group, i] { consume(group, i); });
        }
    }
    EXPECT_TRUE(ledger_.progress(200));
    guest_->kill9();
    EXPECT_TRUE(ledger_.progress(50));
    start_guest();
    EXPECT_TRUE(ledger_.progress(50));
    SqlSession(url()).query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
    EXPECT_TRUE(ledger_.progress(50));
    owner_->signal(SIGSTOP); // until the leases it gave have run out and go to the other broker
    {
        SqlSession clock(url());
        const auto later = clock.one("SELECT clock_timestamp() + '1500 ms'::interval");
        clock.wait_for("clock_timestamp() > $1::timestamptz", {later});
    }
    owner_->signal(SIGCONT);
    EXPECT_TRUE(ledger_.progress(50));
    pid_t postmaster = 0;
    std::ifstream(directory_.path() + "/data/postgres/postmaster.pid") >> postmaster;
    EXPECT_EQ(kill(postmaster, SIGKILL), 0);
    EXPECT_TRUE(ledger_.progress(50));
    owner_->kill9();
    start_owner();
    EXPECT_TRUE(ledger_.progress(50));

    no_more_pushes_ = true;
    for (auto& thread : producers) {
        thread.join();
    }
    EXPECT_TRUE(ledger_.complete(groups));
    no_more_pops_ = true;
    for (auto& thread : consumers) {
        thread.join();
    }
    EXPECT_THAT(ledger_.faults(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Sources, CheckerTest, testing::Values("hotlist", "sqlscan"),
                         [](const auto& info) { return std::string(info.param); });

} // namespace
} // namespace queen::test
