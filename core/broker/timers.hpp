#pragma once
#include "base/clock.hpp"
#include "broker/encryption.hpp"
#include "metrics/activity.hpp"
#include "model/uuid7.hpp"
#include "ports/form_store.hpp"
#include "ports/timer_store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace queen::broker {

/// Hears of timers that were set, after the commit and before the answer: when the first is due.
using TimersScheduled = std::function<void(SteadyTime earliest)>;

/// Sets, cancels and shows messages that wait for their time. Who fires them is another's business:
/// it is told when one was set, after the commit.
///
/// The payload is stored as its queue wants it now: one that is encrypted later does not cover what
/// waits already (ENC-4). The queue's setting is read for each call, for nothing that the broker
/// remembers may put clear text into an encrypted queue. Nothing is refused on the way to a cancel.
/// Locks: none of its own.
/// @thread worker; each `done` runs once, on a worker
/// @source TM-2, TM-6, ENC-4, SW-4, SWI-3
class Timers {
public:
    struct Options {
        std::chrono::milliseconds wait{30'000};        ///< for a session
        std::shared_ptr<metrics::Activity> activity{}; ///< what is counted into; null: its own
        std::shared_ptr<Encryption> encryption{};      ///< null: there is no key
        std::function<bool()> taken{};                 ///< whether timers are; null: always
        TimersScheduled scheduled{};                   ///< told of what was set
    };
    Timers(TimerStore& store, FormStore& forms, const Clock& clock, Options options);

    /// Whether these may be done now: none but cancels while timers are not taken.
    bool takes(std::span<const TimerOp> ops) const;
    void count_refused(metrics::TimerRefused why) { activity_->timers[why].add(); }

    /// Ops as they came, their `encrypted` being what the client expects, made ready for the store:
    /// each new timer has its message's id, and its payload is in its queue's form.
    /// @errors conflict without an SQLSTATE: the queue is encrypted and there is no key, or it is
    /// not and the client expects it; those of the store
    void stage(const std::string& tenant, std::vector<TimerOp> ops,
               Done<std::vector<TimerOp>> done);
    /// Stages and does; verdicts by op.
    void apply(TimerCallOps call, Done<std::vector<TimerVerdict>> done);

    void peek(std::string tenant, std::string queue, std::string key,
              Done<std::optional<WaitingTimer>> done);
    void list(std::string tenant, std::string queue, std::string after, std::int32_t limit,
              Done<TimerPage> done);
    void count(std::string tenant, std::string queue, std::string prefix, Done<std::int64_t> done);

private:
    using Verdicts = std::vector<TimerVerdict>;

    Result<void> pack(TimerOp& op, std::size_t index, bool wanted);
    void send(std::shared_ptr<const TimerCallOps> call, int tries, Done<Verdicts> done);

    TimerStore& store_;
    FormStore& forms_;
    const Clock& clock_;
    const Options options_;
    Uuid7 ids_;
    const std::shared_ptr<metrics::Activity> activity_;
    const std::shared_ptr<Encryption> encryption_; ///< never null
};

/// Tells when the first of the timers that were set is due (SW-4).
/// @param scheduled null: nobody hears of it
void ring(std::span<const TimerVerdict> verdicts, const Clock& clock,
          const TimersScheduled& scheduled);

/// "timer 3: ", as texts about one of several name it.
std::string timer_text(std::size_t index);

} // namespace queen::broker
