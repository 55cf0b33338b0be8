#include "broker/cluster_counts.hpp"

namespace queen::broker {

ClusterCounts::ClusterCounts(SystemStore& store, Ticker& ticker, const Clock& clock, Uuid source,
                             Read read, Options options)
    : store_(store), ticker_(ticker), clock_(clock), source_(source), read_(std::move(read)),
      options_(options) {}

void ClusterCounts::start() {
    {
        const std::lock_guard lock(mutex_);
        running_ = true;
    }
    arm();
}

void ClusterCounts::arm() {
    const Ticker::Id timer = ticker_.at(clock_.now() + options_.every, [this] {
        {
            const std::lock_guard lock(mutex_);
            if (!running_) {
                return;
            }
        }
        arm();
        flush();
    });
    const std::lock_guard lock(mutex_);
    timer_ = timer;
}

void ClusterCounts::stop(std::function<void()> done) {
    Ticker::Id timer = 0;
    bool flush_now = false;
    {
        const std::lock_guard lock(mutex_);
        running_ = false;
        timer = std::exchange(timer_, 0);
        stopped_ = std::move(done);
        flush_now = !flushing_; // else told() goes on
    }
    ticker_.cancel(timer);
    if (flush_now) {
        flush();
    }
}

/// Sends the delta that is not known to be told, else what was counted since.
void ClusterCounts::flush() {
    const auto counts = read_();
    std::optional<CountDelta> delta;
    std::function<void()> stopped;
    {
        const std::lock_guard lock(mutex_);
        if (flushing_) {
            return;
        }
        if (!delta_) {
            CountDelta fresh{.source = source_, .number = number_ + 1, .counts = {}};
            for (const auto& [name, count] : counts) {
                std::uint64_t& before = read_so_far_[name];
                if (count > before) {
                    fresh.counts.emplace_back(name, static_cast<std::int64_t>(count - before));
                    before = count;
                }
            }
            if (!fresh.counts.empty()) {
                ++number_;
                delta_ = std::move(fresh);
            }
        }
        delta = delta_;
        flushing_ = delta.has_value();
        if (!delta) {
            stopped = std::exchange(stopped_, nullptr);
        }
    }
    if (delta) {
        store_.add_counts(clock_.now() + options_.wait, std::move(*delta),
                          [this](const Result<void>& outcome) { told(outcome); });
    } else if (stopped) {
        stopped();
    }
}

void ClusterCounts::told(const Result<void>& outcome) {
    std::function<void()> stopped;
    bool more = false;
    {
        const std::lock_guard lock(mutex_);
        flushing_ = false;
        if (outcome) {
            delta_.reset();
            more = stopped_ != nullptr; // what was counted while this one was on its way
        } else {
            stopped = std::exchange(stopped_, nullptr);
        }
    }
    if (more) {
        flush();
    } else if (stopped) {
        stopped();
    }
}

} // namespace queen::broker
