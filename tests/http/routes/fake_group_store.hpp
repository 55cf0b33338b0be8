#pragma once
#include "ports/group_store.hpp"
#include "support/manual_workers.hpp"

#include <optional>
#include <string>
#include <vector>

namespace queen::test {

/// Answers what the test put into its fields, from a worker like a real one, and keeps what it was
/// asked.
class FakeGroupStore final : public GroupStore {
public:
    explicit FakeGroupStore(ManualWorkers& workers) : workers_(workers) {}

    std::optional<Error> broken; ///< every call fails with this
    std::string list = "[]";
    std::optional<std::string> detail = "{}";
    SeekOutcome moved{.moved = 3, .partition_id = {}};
    RemovedGroup removed{.cursors = 2, .subscription = true, .queues = {"q"}};
    std::int64_t subscribed = 1;

    std::vector<std::string> asked; ///< one line a call
    std::vector<Seek> seeks;

    void list_groups(Deadline, std::string tenant, Done<std::string> done) override {
        asked.push_back("list " + tenant);
        answer(std::move(done), list);
    }
    void lagging(Deadline, std::string tenant, std::chrono::seconds more_than, std::int32_t limit,
                 Done<std::string> done) override {
        asked.push_back("lagging " + tenant + " " + std::to_string(more_than.count()) + " " +
                        std::to_string(limit));
        answer(std::move(done), list);
    }
    void group_detail(Deadline, std::string, std::string group, std::optional<std::string> queue,
                      Done<std::optional<std::string>> done) override {
        asked.push_back("detail " + group + " in " + queue.value_or("*"));
        answer(std::move(done), detail);
    }
    void seek(Deadline, Seek seek, Done<SeekOutcome> done) override {
        asked.push_back("seek " + seek.group + " in " + seek.queue + "/" +
                        seek.partition.value_or("*"));
        seeks.push_back(std::move(seek));
        answer(std::move(done), moved);
    }
    void remove_group(Deadline, std::string, std::string group, std::optional<std::string> queue,
                      bool subscriptions, Done<RemovedGroup> done) override {
        asked.push_back("remove " + group + " in " + queue.value_or("*") +
                        (subscriptions ? "" : " keeping"));
        answer(std::move(done), removed);
    }
    void subscribe(Deadline, std::string, std::string group, WallTime from,
                   Done<std::int64_t> done) override {
        asked.push_back("subscribe " + group + " " +
                        std::to_string(from.time_since_epoch().count()));
        answer(std::move(done), subscribed);
    }
    void repairs(Deadline, Done<std::vector<Repair>> done) override {
        answer(std::move(done), std::vector<Repair>());
    }

private:
    template <class T>
    void answer(Done<T> done, T value) {
        Result<T> result = std::move(value);
        if (broken) {
            result = fail(*broken);
        }
        workers_.post([done = std::move(done), result = std::move(result)] { done(result); });
    }

    ManualWorkers& workers_;
};

} // namespace queen::test
