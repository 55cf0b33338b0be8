#pragma once
#include "ports/timer_store.hpp"
#include "store/asker.hpp"

namespace queen::store {

/// The TimerStore port on PostgreSQL. Keeps no state.
///
/// Lanes. What a client waits for and what a driver does stand in the lane of pushes: a fire is
/// one, and its lateness is what a timer is judged by. A driver has few calls under way, each in
/// the line behind the pushes that came before, so neither can starve the other; in the lane of
/// administration one slow report would hold up every timer. Looking at timers is administration.
class PgTimerStore final : public TimerStore {
public:
    explicit PgTimerStore(Asker asker) : asker_(std::move(asker)) {}

    void apply(Deadline, TimerCallOps, Done<std::vector<TimerVerdict>>) override;
    void peek(Deadline, std::string tenant, std::string queue, std::string key,
              Done<std::optional<WaitingTimer>>) override;
    void list(Deadline, std::string tenant, std::string queue, std::string after,
              std::int32_t limit, Done<TimerPage>) override;
    void count(Deadline, std::string tenant, std::string queue, std::string prefix,
               Done<std::int64_t>) override;

    void due(Deadline, TimerShardSet, std::int32_t cap, Done<TimersDue>) override;
    void claim(Deadline, TimerClaim, Done<std::vector<ClaimedTimer>>) override;
    void fire(Deadline, TimerFire, Done<std::vector<TimerFired>>) override;
    void fail(Deadline, TimerFail, Done<TimerFailed>) override;
    void dead_letter(Deadline, std::vector<TimerClaimKey>, std::int32_t attempts,
                     Done<std::int64_t>) override;

private:
    const Asker asker_;
};

} // namespace queen::store
