#include "broker/repairs.hpp"

#include <utility>

namespace queen::broker {

std::shared_ptr<RepairReader> RepairReader::make(GroupStore& store, Ticker& ticker,
                                                 Workers& workers, const Clock& clock, Tell tell,
                                                 Options options) {
    return std::shared_ptr<RepairReader>(
        new RepairReader(store, ticker, workers, clock, std::move(tell), std::move(options)));
}

void RepairReader::start() {
    {
        const std::lock_guard lock(mutex_);
        running_ = true;
    }
    read();
}

void RepairReader::stop() {
    const std::lock_guard lock(mutex_);
    running_ = false;
}

bool RepairReader::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

void RepairReader::read() {
    if (!running()) {
        return;
    }
    store_.repairs(clock_.now() + options_.wait,
                   [self = shared_from_this()](const Result<std::vector<Repair>>& repairs) {
                       self->got(repairs);
                   });
}

void RepairReader::got(const Result<std::vector<Repair>>& repairs) {
    std::vector<const Repair*> changed;
    if (repairs) {
        std::map<Key, Seen> now;
        const std::lock_guard lock(mutex_);
        for (const Repair& repair : *repairs) {
            Key key(repair.tenant, repair.queue, repair.group);
            Seen seen{repair.at, repair.partition};
            const auto before = seen_.find(key);
            if (before == seen_.end() || before->second != seen) {
                changed.push_back(&repair);
            }
            now.emplace(std::move(key), std::move(seen));
        }
        seen_.swap(now);
    }
    for (const Repair* repair : changed) {
        tell_(*repair);
    }
    arm();
}

void RepairReader::arm() {
    if (!running()) {
        return;
    }
    const double spread = 0.75 + 0.5 * (options_.jitter ? options_.jitter() : 0.5);
    const auto pause = std::chrono::duration_cast<Nanoseconds>(options_.interval * spread);
    // The ticker only hands on.
    ticker_.at(clock_.now() + pause, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->workers_.post([weak] {
                if (const auto alive = weak.lock()) {
                    alive->read();
                }
            });
        }
    });
}

} // namespace queen::broker
