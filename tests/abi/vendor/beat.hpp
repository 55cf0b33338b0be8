// beat.hpp - a driver of timers with an even beat: one batch at a time, one segment at a time, and
// a look at what is due with each beat.
#pragma once
#include <queen/plugin/timers.hpp>

#include <cstdint>
#include <mutex>

namespace acme::beat {

struct Options {
    queen::Nanoseconds every; ///< between two looks
    std::int32_t most;        ///< attempts of a timer that cannot be fired
};

///     tick -> due -> claim -> fire, fire, ... -> claim ... -> nothing left: rest until the beat
///                              | it will never work: fail it, counted, and file what is used up
///                              | the store is away: fail the rest, not counted, and rest
///
/// Locks: `mutex_` is never held while the host is called, whose answer may come inside.
/// `calling_` keeps stop() from returning while a call begins.
class Beat final : public queen::plugin::TimerDriver {
public:
    Beat(Options options, const queen::Clock& clock, queen::plugin::TimerHost& host)
        : options_(options), clock_(clock), host_(host) {}
    void stop() override;
    void scheduled(queen::SteadyTime earliest) override { host_.tick_at(earliest); }
    void answered(queen::plugin::TimerCall call, const queen::plugin::TimerAnswer& answer) override;
    queen::SteadyTime tick(queen::SteadyTime now) override;
    void stats(queen::plugin::Stats& out) override;

private:
    enum class Step { rest, due, claim, fire, fail_one, skip_one, file, fail_rest };

    Step after(const queen::plugin::TimerAnswer& answer); // Requires mutex_.
    void act(std::unique_lock<std::mutex> lock);
    bool ask(Step step, queen::plugin::TimerCall call, queen::plugin::TimerBatch batch,
             std::uint32_t at, std::uint32_t segments);

    const Options options_;
    const queen::Clock& clock_;
    queen::plugin::TimerHost& host_;
    std::recursive_mutex calling_;
    std::mutex mutex_;
    bool stopped_ = false;
    Step step_ = Step::rest;
    queen::plugin::TimerCall call_ = 0;
    queen::plugin::TimerBatch batch_ = 0;
    std::uint32_t segments_ = 0, at_ = 0;
    queen::Nanoseconds pause_ = options_.every; ///< until the next look
    std::uint64_t fired_ = 0;
};

} // namespace acme::beat
