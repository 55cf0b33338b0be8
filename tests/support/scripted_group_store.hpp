#pragma once
#include "ports/group_store.hpp"
#include "support/hook.hpp"

namespace queen::test {

/// A group store that does what the test says, call by call; what it does not expect fails.
struct ScriptedGroupStore final : GroupStore {
    Hook<std::string, Done<std::string>> on_list;
    Hook<Seek, Done<SeekOutcome>> on_seek;
    Hook<std::string, std::optional<std::string>, bool, Done<RemovedGroup>> on_remove;
    Hook<Done<std::vector<Repair>>> on_repairs;

    void list_groups(Deadline, std::string tenant, Done<std::string> done) override {
        call_hook(on_list, std::move(tenant), std::move(done));
    }
    void lagging(Deadline, std::string, std::chrono::seconds, std::int32_t,
                 Done<std::string> done) override {
        done(unexpected_call());
    }
    void group_detail(Deadline, std::string, std::string, std::optional<std::string>,
                      Done<std::optional<std::string>> done) override {
        done(unexpected_call());
    }
    void seek(Deadline, Seek seek, Done<SeekOutcome> done) override {
        call_hook(on_seek, std::move(seek), std::move(done));
    }
    void remove_group(Deadline, std::string, std::string group, std::optional<std::string> queue,
                      bool subscriptions, Done<RemovedGroup> done) override {
        call_hook(on_remove, std::move(group), std::move(queue), subscriptions, std::move(done));
    }
    void subscribe(Deadline, std::string, std::string, WallTime, Done<std::int64_t> done) override {
        done(unexpected_call());
    }
    void repairs(Deadline, Done<std::vector<Repair>> done) override {
        call_hook(on_repairs, std::move(done));
    }
};

} // namespace queen::test
