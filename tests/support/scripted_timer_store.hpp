#pragma once
#include "ports/form_store.hpp"
#include "ports/timer_store.hpp"
#include "support/hook.hpp"

#include <string>
#include <utility>
#include <vector>

namespace queen::test {

/// A timer store whose answers the test writes; a call without a hook fails with `unsupported`.
class ScriptedTimerStore final : public TimerStore {
public:
    Hook<TimerCallOps, Done<std::vector<TimerVerdict>>> on_apply;
    Hook<std::string, std::string, std::string, Done<std::optional<WaitingTimer>>> on_peek;
    Hook<std::string, std::string, std::string, std::int32_t, Done<TimerPage>> on_list;
    Hook<std::string, std::string, std::string, Done<std::int64_t>> on_count;
    Hook<TimerShardSet, std::int32_t, Done<TimersDue>> on_due;
    Hook<TimerClaim, Done<std::vector<ClaimedTimer>>> on_claim;
    Hook<TimerFire, Done<std::vector<TimerFired>>> on_fire;
    Hook<TimerFail, Done<TimerFailed>> on_fail;
    Hook<std::vector<TimerClaimKey>, std::int32_t, Done<std::int64_t>> on_dead_letter;

    void apply(Deadline, TimerCallOps call, Done<std::vector<TimerVerdict>> done) override {
        call_hook(on_apply, std::move(call), std::move(done));
    }
    void peek(Deadline, std::string tenant, std::string queue, std::string key,
              Done<std::optional<WaitingTimer>> done) override {
        call_hook(on_peek, std::move(tenant), std::move(queue), std::move(key), std::move(done));
    }
    void list(Deadline, std::string tenant, std::string queue, std::string after,
              std::int32_t limit, Done<TimerPage> done) override {
        call_hook(on_list, std::move(tenant), std::move(queue), std::move(after), limit,
                  std::move(done));
    }
    void count(Deadline, std::string tenant, std::string queue, std::string prefix,
               Done<std::int64_t> done) override {
        call_hook(on_count, std::move(tenant), std::move(queue), std::move(prefix),
                  std::move(done));
    }
    void due(Deadline, TimerShardSet shards, std::int32_t cap, Done<TimersDue> done) override {
        call_hook(on_due, shards, cap, std::move(done));
    }
    void claim(Deadline, TimerClaim claim, Done<std::vector<ClaimedTimer>> done) override {
        call_hook(on_claim, claim, std::move(done));
    }
    void fire(Deadline, TimerFire fire, Done<std::vector<TimerFired>> done) override {
        call_hook(on_fire, std::move(fire), std::move(done));
    }
    void fail(Deadline, TimerFail fail, Done<TimerFailed> done) override {
        call_hook(on_fail, std::move(fail), std::move(done));
    }
    void dead_letter(Deadline, std::vector<TimerClaimKey> keys, std::int32_t attempts,
                     Done<std::int64_t> done) override {
        call_hook(on_dead_letter, std::move(keys), attempts, std::move(done));
    }
};

/// What the test says of each queue; without that none is encrypted.
class ScriptedFormStore final : public FormStore {
public:
    std::function<Result<bool>(const std::string& queue)> on_encrypted;
    std::vector<std::vector<std::string>> asked;

    void encrypted(SteadyTime, std::string, std::vector<std::string> queues,
                   Done<std::vector<bool>> done) override {
        asked.push_back(queues);
        std::vector<bool> forms;
        for (const auto& queue : queues) {
            const auto form = on_encrypted ? on_encrypted(queue) : Result<bool>(false);
            if (!form) {
                done(tl::unexpected(form.error()));
                return;
            }
            forms.push_back(*form);
        }
        done(std::move(forms));
    }
};

} // namespace queen::test
