// queen/plugin/entry_timers.hpp - a TimerDriver as the C table of abi.h.
#pragma once
#include <queen/plugin/entry_common.hpp>
#include <queen/plugin/timers.hpp>

#include <span>

namespace queen::plugin {

/// One driver's view of the broker: also its TimerHost.
class TimerPluginHost final : public HostView, public TimerHost {
public:
    /// @errors throws when the broker lacks what a driver needs
    explicit TimerPluginHost(const queen_host* host)
        : HostView(host), timers_(offered<queen_host_timers>(QUEEN_HOST_TIMERS)) {}

    bool due(TimerCall call, TimerShards shards, std::uint32_t cap) override {
        return timers_.due(raw(), call, shards, cap) == 0;
    }
    bool claim(TimerCall call, TimerShards shards, Nanoseconds lease, std::uint32_t rows,
               std::uint32_t rows_per_tenant) override {
        return timers_.claim(raw(), call, shards, lease.count(), rows, rows_per_tenant) == 0;
    }
    bool fire(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments) override {
        return timers_.fire(raw(), call, batch, segments.data(), segments.size()) == 0;
    }
    bool fail(TimerCall call, TimerBatch batch, std::span<const std::uint32_t> segments,
              Nanoseconds backoff, std::string_view error, bool counted,
              std::int32_t most) override {
        return timers_.fail(raw(), call, batch, segments.data(), segments.size(), backoff.count(),
                            to_c(error), counted ? 1 : 0, most) == 0;
    }
    bool dead_letter(TimerCall call, TimerBatch batch, std::int32_t most) override {
        return timers_.dead_letter(raw(), call, batch, most) == 0;
    }
    void release(TimerBatch batch) override { timers_.release(raw(), batch); }
    void tick_at(SteadyTime when) override { timers_.tick_at(raw(), to_c(when)); }

private:
    const queen_host_timers& timers_;
};

namespace detail {
using DriverInstance = Instance<TimerPluginHost, TimerDriver>;

namespace driver {

inline void stop(void* self) noexcept {
    guarded([&] { DriverInstance::of(self).stop(); });
}

inline std::int32_t scheduled(void* self, std::int64_t earliest) noexcept {
    return guarded([&] { DriverInstance::of(self).scheduled(time_from_c(earliest)); });
}

inline std::int32_t answered(void* self, std::uint64_t call,
                             const queen_timer_answer* answer) noexcept {
    return guarded([&] {
        const AnswerFromC converted(*answer);
        DriverInstance::of(self).answered(call, converted.view());
    });
}

} // namespace driver
} // namespace detail

/// The C table of a driver that `Make(TimerPluginHost&)` builds: Make returns
/// std::unique_ptr<TimerDriver>, or throws ConfigError to refuse an option.
template <auto Make>
inline constexpr queen_timers timers{
    sizeof(queen_timers),
    0,
    detail::DriverInstance::create<Make>,
    detail::DriverInstance::destroy,
    detail::driver::stop,
    detail::driver::scheduled,
    detail::driver::answered,
    detail::DriverInstance::tick,
    detail::DriverInstance::stats,
};

} // namespace queen::plugin
