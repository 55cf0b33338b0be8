#include "metrics/rates.hpp"

#include <cstdio>

namespace queen::metrics {
namespace {

bool something_happened(const Sample& before, const Sample& now) {
    return now.push_requests != before.push_requests || now.pop_messages != before.pop_messages ||
           now.pop_empty != before.pop_empty || now.ack_requests != before.ack_requests;
}

Rates between(const Sample& before, const Sample& now, Nanoseconds time) {
    const double seconds = std::chrono::duration<double>(time).count();
    const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
        return seconds > 0 ? static_cast<double>(to - from) / seconds : 0;
    };
    Rates rates{.push_messages = rate(before.push_messages, now.push_messages),
                .pop_messages = rate(before.pop_messages, now.pop_messages),
                .ack_messages = rate(before.ack_messages, now.ack_messages),
                .http_requests = rate(before.http_requests, now.http_requests)};

    const auto empty = now.pop_empty - before.pop_empty;
    const auto pops = now.pop_answers - before.pop_answers;
    if (pops > 0) {
        rates.pop_empty_percent = 100.0 * static_cast<double>(empty) / static_cast<double>(pops);
    }
    if (const auto lags = now.loop_lags - before.loop_lags; lags > 0) {
        rates.loop_lag = (now.loop_lag - before.loop_lag) / static_cast<double>(lags);
    }
    return rates;
}

/// With one decimal below 10.
std::string text(double value) {
    char out[32];
    std::snprintf(out, sizeof out, value < 10 ? "%.1f" : "%.0f", value);
    return out;
}

} // namespace

std::string rates_line(const Rates& rates, const Sample& sample) {
    return "rates push_per_s=" + text(rates.push_messages) +
           " pop_per_s=" + text(rates.pop_messages) + " ack_per_s=" + text(rates.ack_messages) +
           " pop_empty_percent=" + text(rates.pop_empty_percent) +
           " parked=" + std::to_string(sample.parked) +
           " sessions=" + std::to_string(sample.pool_active) + "/" +
           std::to_string(sample.pool_size) + " waiting=" + std::to_string(sample.waiting);
}

std::string sizes_line(const Sample& sample) {
    constexpr std::uint64_t kMebibyte = 1u << 20;
    return "sizes resident_mib=" + std::to_string(sample.resident_bytes / kMebibyte) +
           " connections=" + std::to_string(sample.connections) +
           " queues=" + std::to_string(sample.queues);
}

void RateWatch::start() {
    auto first = read_();
    const std::lock_guard lock(mutex_);
    running_ = true;
    start_ = last_at_ = due_ = clock_.now();
    at_sizes_ = first;
    last_ = std::move(first);
    arm();
}

void RateWatch::stop() {
    const std::scoped_lock lock(looking_, mutex_);
    running_ = false;
}

/// On a grid, so that looks do not drift from the minutes; what was slept through is skipped.
void RateWatch::arm() {
    const auto now = clock_.now();
    do {
        due_ += kEvery;
    } while (due_ <= now);
    // The ticker only hands on: a look takes locks and builds text.
    ticker_.at(due_, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) {
            return;
        }
        self->workers_.post([weak] {
            if (const auto alive = weak.lock()) {
                alive->look();
            }
        });
    });
}

void RateWatch::look() {
    const std::lock_guard looking(looking_);
    {
        const std::lock_guard lock(mutex_);
        if (!running_) {
            return;
        }
    }
    auto sample = read_();
    std::string rates_text, sizes_text;
    {
        const std::lock_guard lock(mutex_);
        const auto now = clock_.now();
        rates_ = between(last_, sample, now - last_at_);
        if (something_happened(last_, sample)) {
            rates_text = rates_line(rates_, sample);
        }
        if (const auto minute = (now - start_) / kMinute; minute != minute_) {
            minute_ = minute;
            if (something_happened(at_sizes_, sample)) {
                sizes_text = sizes_line(sample);
            }
            at_sizes_ = sample;
            parked_at_minute_ = sample.parked_by_queue;
        }
        last_ = std::move(sample);
        last_at_ = now;
        arm();
    }
    for (const auto& line : {rates_text, sizes_text}) {
        if (!line.empty()) {
            log_(line);
        }
    }
}

Rates RateWatch::rates() const {
    const std::lock_guard lock(mutex_);
    return rates_;
}

std::vector<std::pair<std::string, std::uint64_t>> RateWatch::parked_at_minute() const {
    const std::lock_guard lock(mutex_);
    return parked_at_minute_;
}

} // namespace queen::metrics
