// metrics/rates.hpp - looks at the counters every 10 seconds: for the log line `rates`, for the log
// line `sizes` once a minute, and for the figures of the page that are means of a short time.
#pragma once
#include "base/workers.hpp"

#include <queen/plugin/types.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace queen::metrics {

/// What is looked at: counts since the start, but for the levels.
struct Sample {
    std::uint64_t push_requests = 0, push_messages = 0;
    std::uint64_t pop_answers = 0, pop_messages = 0, pop_empty = 0; ///< answers: full or empty
    std::uint64_t ack_requests = 0, ack_messages = 0;
    std::uint64_t http_requests = 0;
    std::uint64_t loop_lags = 0; ///< and their sum
    std::chrono::duration<double> loop_lag{0};
    // Levels.
    std::uint64_t parked = 0, pool_active = 0, pool_size = 0, waiting = 0;
    std::uint64_t connections = 0, queues = 0, resident_bytes = 0;
    std::vector<std::pair<std::string, std::uint64_t>> parked_by_queue; ///< bounded
};

/// Per second over the last interval.
struct Rates {
    double push_messages = 0, pop_messages = 0, ack_messages = 0;
    double http_requests = 0;
    double pop_empty_percent = 0; ///< of the pops that were answered with messages or nothing
    std::chrono::duration<double> loop_lag{0}; ///< mean
};

/// Locks: `mutex_` is a leaf.
/// @thread any
/// @source MET-6
class RateWatch final : public std::enable_shared_from_this<RateWatch> {
public:
    static constexpr std::chrono::seconds kEvery{10};
    static constexpr std::chrono::seconds kMinute{60}; ///< between two lines `sizes`

    using Read = std::function<Sample()>;
    using Log = std::function<void(const std::string&)>;

    /// Shared, because a task may come after the end.
    static std::shared_ptr<RateWatch> make(Ticker& ticker, Workers& workers, const Clock& clock,
                                           Read read, Log log) {
        return std::shared_ptr<RateWatch>(
            new RateWatch(ticker, workers, clock, std::move(read), std::move(log)));
    }
    RateWatch(const RateWatch&) = delete;
    RateWatch& operator=(const RateWatch&) = delete;
    ~RateWatch() = default;

    void start();
    /// When it returns, `read` and `log` are not running and will not run again.
    void stop();

    Rates rates() const;
    /// Bounded; as the last minute ended. Empty before that.
    std::vector<std::pair<std::string, std::uint64_t>> parked_at_minute() const;

private:
    RateWatch(Ticker& ticker, Workers& workers, const Clock& clock, Read read, Log log)
        : ticker_(ticker), workers_(workers), clock_(clock), read_(std::move(read)),
          log_(std::move(log)) {}
    void arm();
    void look();

    Ticker& ticker_;
    Workers& workers_;
    const Clock& clock_;
    const Read read_;
    const Log log_;

    std::mutex looking_; ///< looking_ -> mutex_
    mutable std::mutex mutex_;
    bool running_ = false;
    SteadyTime start_{}, due_{};
    SteadyTime last_at_{};
    Sample last_;
    Sample at_sizes_;         ///< when `sizes` was thought of last
    std::int64_t minute_ = 0; ///< full ones at the last look
    Rates rates_;
    std::vector<std::pair<std::string, std::uint64_t>> parked_at_minute_;
};

/// The line `rates`: messages per second, share of empty pops, levels.
std::string rates_line(const Rates& rates, const Sample& sample);
/// The line `sizes`: what may grow.
std::string sizes_line(const Sample& sample);

} // namespace queen::metrics
