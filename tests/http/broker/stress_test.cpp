// Many clients that behave badly, against one real broker. What is checked is what the broker
// promises whatever they do:
//   - an id answered queued (or duplicate) is completed by every group;
//   - offsets of a partition reach a group without a gap, the first time in order;
//   - what an ack has completed never comes again;
//   - with autoAck nothing comes twice, and with readers that stay nothing is missing;
//   - what is ready is found by a wake, without waiting for the floor.
// Bounded by the number of messages. QUEEN_STRESS_SEED repeats the clients' choices, not the
// threads' order; QUEEN_STRESS_SCALE multiplies the messages.
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

namespace queen::test {
namespace {

using namespace std::chrono_literals;

constexpr int kPushers = 4;
constexpr int kPartitions = 7;
constexpr int kMostItems = 12; ///< of one push
constexpr int kReadersPerGroup = 3;
constexpr auto kMostTime = 4min; ///< then the test fails, wherever it hangs
constexpr const char* kQueue = "stress.orders";

int pushes_per_pusher() {
    const char* scale = std::getenv("QUEEN_STRESS_SCALE");
    return 60 * (scale != nullptr ? std::max(std::atoi(scale), 1) : 1);
}

unsigned chosen_seed() {
    static const unsigned seed = [] {
        const char* given = std::getenv("QUEEN_STRESS_SEED");
        return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                : std::random_device{}();
    }();
    return seed;
}

/// The choices of one client.
class Dice {
public:
    explicit Dice(unsigned client) : engine_(chosen_seed() + client) {}
    int below(int bound) { return static_cast<int>(engine_() % static_cast<unsigned>(bound)); }
    bool percent(int chance) { return below(100) < chance; }
    std::string partition() { return "p" + std::to_string(below(kPartitions)); }

private:
    std::mt19937 engine_;
};

/// By partition, then by offset: the id stored there.
using Log = std::map<std::string, std::map<std::int64_t, std::string>>;

/// What the pushers were told. Locks: `mutex_` is a leaf.
class Stored {
public:
    void add(const std::string& partition, std::int64_t offset, const std::string& id) {
        const std::lock_guard lock(mutex_);
        const auto [at, fresh] = log_[partition].emplace(offset, id);
        EXPECT_TRUE(fresh || at->second == id)
            << "two ids at one offset: " << at->second << " and " << id;
    }
    Log log() const {
        const std::lock_guard lock(mutex_);
        return log_;
    }

private:
    mutable std::mutex mutex_;
    Log log_;
};

/// What one leasing group saw and completed. Locks: `mutex_` is a leaf.
class GroupView {
public:
    /// To be asked before the pop is sent.
    std::map<std::string, std::int64_t> completed() const {
        const std::lock_guard lock(mutex_);
        return completed_;
    }
    /// A batch came; `before` is completed() of then.
    void delivered(const std::vector<Message>& batch,
                   const std::map<std::string, std::int64_t>& before) {
        const std::lock_guard lock(mutex_);
        std::map<std::string, std::int64_t> last;
        for (const Message& message : batch) {
            auto& seen = seen_[message.partition];
            const auto previous = last.find(message.partition);
            if (previous != last.end()) {
                EXPECT_EQ(message.offset, previous->second + 1) << "a gap inside a batch";
            }
            last[message.partition] = message.offset;
            EXPECT_LE(message.offset, static_cast<std::int64_t>(seen.size()))
                << message.partition << ": delivered before what lies below it";
            const auto done = before.find(message.partition);
            EXPECT_TRUE(done == before.end() || message.offset > done->second)
                << message.partition << '/' << message.offset << " came after its ack";
            const auto [at, fresh] = seen.emplace(message.offset, message.transaction_id);
            EXPECT_EQ(at->second, message.transaction_id);
        }
    }
    void acked(const Message& upto) {
        const std::lock_guard lock(mutex_);
        auto& end = completed_.try_emplace(upto.partition, -1).first->second;
        end = std::max(end, upto.offset);
    }
    bool has_completed(const Log& log) const {
        const std::lock_guard lock(mutex_);
        for (const auto& [partition, messages] : log) {
            const auto at = completed_.find(partition);
            if (at == completed_.end() || at->second < messages.rbegin()->first) {
                return false;
            }
        }
        return true;
    }
    Log seen() const {
        const std::lock_guard lock(mutex_);
        return seen_;
    }

private:
    mutable std::mutex mutex_;
    Log seen_;
    std::map<std::string, std::int64_t> completed_; ///< by partition, the highest acked offset
};

class StressTest : public testing::Test {
protected:
    explicit StressTest(const std::string& config = {})
        : broker_(std::make_unique<BrokerProcess>(
              BrokerOptions{.config = config + serving(source_under_test()),
                            .data_directory = directory_.path() + "/data"})),
          end_(std::chrono::steady_clock::now() + kMostTime) {
        RecordProperty("seed", std::to_string(chosen_seed()));
        Api api(broker_->port());
        EXPECT_EQ(
            api.configure(kQueue, R"({"retryLimit":1000000,"leaseTime":2,"namespace":"stress"})")
                .status,
            200);
    }

    /// Runs `client` on a thread of its own until it returns. Whatever it throws fails the test.
    void run(std::function<void(Dice)> client) {
        threads_.emplace_back([this, client = std::move(client), id = ++clients_] {
            try {
                client(Dice(id));
            } catch (const std::exception& failed) {
                ADD_FAILURE() << "client " << id << ": " << failed.what();
            }
        });
    }
    void join() {
        for (auto& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }
    bool late() const { return std::chrono::steady_clock::now() > end_; }
    std::uint16_t port() const { return broker_->port(); }

    using Items = std::vector<std::array<std::string, 3>>; ///< partition, id, payload

    static void push(Api& api, Stored& stored, const Items& items) {
        const auto response = api.push(kQueue, items);
        ASSERT_EQ(response.status, 201) << response.body;
        const auto document = json::Document::parse(response.body);
        ASSERT_TRUE(document.has_value());
        for (std::size_t i = 0; i < items.size(); ++i) {
            const auto result = document->root().at(i);
            ASSERT_TRUE(result["status"].string() == "queued" ||
                        result["status"].string() == "duplicate")
                << response.body;
            stored.add(items[i][0], result["offset"].integer().value_or(-1), items[i][1]);
        }
    }

    /// Now and then sends a push and hangs up before its answer. @return whether it did
    bool push_and_leave(std::unique_ptr<Api>& api, Dice& dice, const Items& items) const {
        if (!dice.percent(15)) {
            return false;
        }
        std::string body = R"({"items":[)";
        for (const auto& [partition, id, payload] : items) {
            body += std::string(body.back() == '[' ? "" : ",") + R"({"queue":")" + kQueue +
                    R"(","partition":")" + partition + R"(","transactionId":")" + id +
                    R"(","payload":)" + payload + "}";
        }
        api->http.start("POST", "/api/v1/push", body + "]}");
        api->http.readable(std::chrono::milliseconds(dice.below(3)));
        dice.percent(50) ? api->http.reset() : api->http.close();
        api = std::make_unique<Api>(port());
        return true;
    }

    void pusher(Dice dice, int number, Stored& stored) {
        auto api = std::make_unique<Api>(port());
        Items before;
        const int pushes = pushes_per_pusher();
        for (int i = 0; i < pushes && !late(); ++i) {
            Items items;
            if (!before.empty() && dice.percent(15)) {
                items = before; // a client that did not see its answer
            }
            for (int n = 1 + dice.below(kMostItems); n > 0; --n) {
                const auto id =
                    std::to_string(number) + "-" + std::to_string(i) + "-" + std::to_string(n);
                items.push_back({dice.partition(), id, std::to_string(n)});
            }
            while (push_and_leave(api, dice, items)) {
            }
            ASSERT_NO_FATAL_FAILURE(push(*api, stored, items));
            before = std::move(items);
        }
    }

    /// Of the queue, of one partition or of a label.
    static std::string any_target(Dice& dice, const std::string& query) {
        switch (dice.below(6)) {
        case 0:
            return "/api/v1/pop/queue/" + std::string(kQueue) + "/partition/" + dice.partition() +
                   "?" + query;
        case 1:
            return "/api/v1/pop?namespace=stress&" + query;
        default:
            return Api::pop_target(kQueue, query);
        }
    }
    static std::string some_pop(Dice& dice, const std::string& group) {
        return any_target(dice, "consumerGroup=" + group +
                                    "&batch=" + std::to_string(1 + dice.below(40)) +
                                    "&partitions=" + std::to_string(1 + dice.below(3)) +
                                    "&leaseSeconds=" + std::to_string(1 + dice.below(2)) +
                                    (dice.percent(70) ? "&wait=true&timeout=1500" : ""));
    }
    static std::string waiting_pop(Dice& dice, const std::string& group) {
        return any_target(dice, "consumerGroup=" + group +
                                    "&batch=" + std::to_string(1 + dice.below(3)) +
                                    "&partitions=" + std::to_string(1 + dice.below(3)) +
                                    "&leaseSeconds=3600&wait=true&timeout=60000");
    }

    static std::vector<std::vector<Message>> by_partition(const std::vector<Message>& batch) {
        std::map<std::string, std::vector<Message>> split;
        for (const Message& message : batch) {
            split[message.partition].push_back(message);
        }
        std::vector<std::vector<Message>> parts;
        for (auto& [partition, messages] : split) {
            parts.push_back(std::move(messages));
        }
        return parts;
    }

    /// Acks, nacks, lets the lease end or goes away.
    static void answer_batch(Api& api, Dice& dice, const std::string& group, GroupView& view,
                             const std::vector<Message>& batch) {
        for (const auto& messages : by_partition(batch)) {
            const auto& some =
                messages[static_cast<std::size_t>(dice.below(static_cast<int>(messages.size())))];
            const int choice = dice.below(100);
            if (choice < 65) {
                if (api.ack(messages.back(), "completed", group) == "true") {
                    view.acked(messages.back());
                }
            } else if (choice < 75) { // the rest comes again when the lease ends
                if (api.ack(some, "completed", group) == "true") {
                    view.acked(some);
                }
            } else if (choice < 85) {
                api.ack(some, "retry", group);
            } else if (choice < 92) {
                api.ack(some, "failed", group);
            } // else the lease ends by itself
        }
    }

    void reader(Dice dice, const std::string& group, GroupView& view, const Stored& stored,
                const std::atomic<bool>& pushed) {
        auto api = std::make_unique<Api>(port());
        while (!late() && !(pushed && view.has_completed(stored.log()))) {
            const auto before = view.completed();
            api->http.start("GET", some_pop(dice, group));
            if (dice.percent(15) &&
                !api->http.readable(std::chrono::milliseconds(dice.below(20)))) {
                dice.percent(50) ? api->http.reset() : api->http.close();
                api = std::make_unique<Api>(port());
                continue;
            }
            const auto response = api->http.read();
            ASSERT_TRUE(response.status == 200 || response.status == 204) << response.body;
            const auto popped = Api::read_pop(response);
            view.delivered(popped.messages, before);
            answer_batch(*api, dice, group, view, popped.messages);
        }
    }

    TempDirectory directory_;
    std::unique_ptr<BrokerProcess> broker_;

private:
    std::chrono::steady_clock::time_point end_;
    std::vector<std::thread> threads_;
    unsigned clients_ = 0;
};

std::size_t count(const Log& log) {
    std::size_t sum = 0;
    for (const auto& [partition, messages] : log) {
        sum += messages.size();
    }
    return sum;
}

TEST_F(StressTest, EachGroupCompletesEveryStoredMessageInOrder) {
    Stored stored;
    std::map<std::string, GroupView> views;
    for (const char* group : {"a", "b", "c"}) {
        views[group];
    }
    std::atomic<int> pushing{kPushers};
    std::atomic<bool> pushed{false};
    for (int number = 0; number < kPushers; ++number) {
        run([&, number](Dice dice) {
            pusher(dice, number, stored);
            pushed = --pushing == 0;
        });
    }
    for (auto& [group, view] : views) {
        for (int i = 0; i < kReadersPerGroup; ++i) {
            run([&, group = group, view = &view](Dice dice) {
                reader(dice, group, *view, stored, pushed);
            });
        }
    }
    std::mutex once_mutex;
    std::multiset<std::string> once; // what the group with autoAck got
    for (int i = 0; i < 2; ++i) {
        run([&](Dice dice) {
            Api api(port());
            while (!late()) {
                const bool last = pushed; // before the pop: an empty answer after it is the end
                const auto popped = api.pop(
                    kQueue, "consumerGroup=once&autoAck=true&wait=true&timeout=1000&batch=" +
                                std::to_string(1 + dice.below(30)));
                const std::lock_guard lock(once_mutex);
                for (const Message& message : popped.messages) {
                    once.insert(message.transaction_id);
                }
                if (last && popped.messages.empty()) {
                    return;
                }
            }
        });
    }
    join();
    EXPECT_FALSE(late()) << "something stands still";

    const auto log = stored.log();
    for (const auto& [partition, messages] : log) {
        EXPECT_EQ(messages.begin()->first, 0);
        EXPECT_EQ(messages.rbegin()->first + 1, static_cast<std::int64_t>(messages.size()));
    }
    for (const auto& [group, view] : views) {
        EXPECT_EQ(view.seen(), log) << "group " << group;
        EXPECT_TRUE(view.has_completed(log)) << "group " << group;
    }
    EXPECT_EQ(once.size(), count(log));
    EXPECT_EQ(std::set<std::string>(once.begin(), once.end()).size(), count(log)) << "came twice";
    EXPECT_EQ(broker_->stop(), 0) << broker_->output();
}

// K33 with everybody at work: nothing that was answered is lost, nothing completed comes again.
TEST_F(StressTest, AStopUnderLoadLosesNothingThatWasAnswered) {
    Stored stored;
    GroupView view;
    std::atomic<bool> stopping{false};
    std::atomic<bool> pushed{false};
    std::atomic<std::size_t> answered{0};
    // A connection that ends or is refused is the stop; before it, it is a fault.
    const auto until_the_stop = [&](const std::function<void()>& client) {
        try {
            client();
        } catch (const std::runtime_error& ended) {
            EXPECT_TRUE(stopping) << ended.what();
        }
    };
    for (int number = 0; number < kPushers; ++number) {
        run([&, number](Dice dice) {
            until_the_stop([&] {
                Api api(port());
                for (int i = 0; !late(); ++i) {
                    const auto id = std::to_string(number) + "-" + std::to_string(i);
                    const auto partition = dice.partition();
                    const auto response = api.push_ids(kQueue, partition, {id});
                    const auto document = json::Document::parse(response.body);
                    if (response.status == 201 && document &&
                        document->root().at(0)["status"].string() == "queued") {
                        stored.add(partition, document->root().at(0)["offset"].integer().value(),
                                   id);
                        ++answered;
                    }
                }
            });
        });
    }
    for (int i = 0; i < 2 * kReadersPerGroup; ++i) {
        run([&](Dice dice) {
            until_the_stop([&] {
                while (!late()) {
                    Api api(port());
                    const auto before = view.completed();
                    api.http.start("GET", some_pop(dice, "a"));
                    if (dice.percent(15) &&
                        !api.http.readable(std::chrono::milliseconds(dice.below(20)))) {
                        api.http.reset();
                        continue;
                    }
                    const auto response = api.http.read();
                    if (response.status == 503 || response.status == 500) {
                        ASSERT_TRUE(stopping) << response.body;
                        return;
                    }
                    const auto popped = Api::read_pop(response);
                    view.delivered(popped.messages, before);
                    answer_batch(api, dice, "a", view, popped.messages);
                }
            });
        });
    }
    while (answered < 400 && !late()) {
        std::this_thread::yield();
    }
    stopping = true;
    EXPECT_EQ(broker_->stop(), 0) << broker_->output();
    join();

    broker_.reset(); // first: it ends whatever server it finds in its directory
    broker_ = std::make_unique<BrokerProcess>(BrokerOptions{
        .config = serving(source_under_test()), .data_directory = directory_.path() + "/data"});
    pushed = true;
    for (int i = 0; i < kReadersPerGroup; ++i) {
        run([&](Dice dice) { reader(dice, "a", view, stored, pushed); });
    }
    join();
    EXPECT_FALSE(late()) << "something stands still";
    const auto seen = view.seen();
    for (const auto& [partition, messages] : stored.log()) {
        for (const auto& [offset, id] : messages) {
            const auto& there = seen.at(partition);
            const auto found = there.find(offset);
            EXPECT_TRUE(found != there.end() && found->second == id) << partition << '/' << id;
        }
    }
    EXPECT_EQ(broker_->stop(), 0) << broker_->output();
}

/// The floor is a minute: what no wake announced is found by nobody for so long.
class WakeStressTest : public StressTest {
protected:
    WakeStressTest() : StressTest("pop: {backoff_initial: 60s, backoff_max: 60s}\n") {}
    static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / 1s; }
    void progress() { last_progress_ = now(); }
    bool stands_still() const { return now() - last_progress_ > 40; }

private:
    std::atomic<std::int64_t> last_progress_{now()}; ///< seconds
};

// LP-3, F-26: no lease expires and no client leaves, so each message is found by a wake.
TEST_F(WakeStressTest, EachMessageFindsAReaderWithoutTheFloor) {
    Stored stored;
    std::map<std::string, GroupView> views;
    for (const char* group : {"a", "b"}) {
        views[group];
    }
    std::atomic<int> pushing{kPushers};
    for (int number = 0; number < kPushers; ++number) {
        run([&, number](Dice dice) {
            auto api = std::make_unique<Api>(port());
            for (int i = 0; i < 5 * pushes_per_pusher() && !late(); ++i) {
                const auto id = std::to_string(number) + "-" + std::to_string(i);
                ASSERT_NO_FATAL_FAILURE(push(*api, stored, {{dice.partition(), id, "1"}}));
            }
            --pushing;
        });
    }
    for (auto& [group, view] : views) {
        for (int i = 0; i < 2 * kReadersPerGroup; ++i) {
            run([&, group = group, view = &view](Dice dice) {
                Api api(port());
                while (true) {
                    const auto before = view->completed();
                    api.http.start("GET", waiting_pop(dice, group));
                    while (!api.http.readable(20ms)) {
                        if (pushing == 0 && view->has_completed(stored.log())) {
                            return;
                        }
                        ASSERT_FALSE(stands_still()) << "a wake was lost: group " << group;
                    }
                    const auto popped = Api::read_pop(api.http.read());
                    view->delivered(popped.messages, before);
                    progress();
                    for (const auto& batch : by_partition(popped.messages)) {
                        if (dice.percent(10)) {
                            EXPECT_EQ(api.ack(batch.front(), "retry", group), "true");
                        } else {
                            EXPECT_EQ(api.ack(batch.back(), "completed", group), "true");
                            view->acked(batch.back());
                        }
                    }
                }
            });
        }
    }
    join();
    for (const auto& [group, view] : views) {
        EXPECT_EQ(view.seen(), stored.log()) << "group " << group;
    }
    EXPECT_EQ(broker_->stop(), 0) << broker_->output();
}

} // namespace
} // namespace queen::test
