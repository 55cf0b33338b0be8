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
    poke();
}

void RepairReader::stop() {
    const std::lock_guard lock(mutex_);
    running_ = false;
}

void RepairReader::poke() {
    Ticker::Id timer = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!running_) {
            return;
        }
        if (reading_) {
            again_ = true;
            return;
        }
        reading_ = true;
        timer = std::exchange(timer_, 0);
    }
    if (timer != 0) {
        ticker_.cancel(timer);
    }
    read();
}

void RepairReader::due(std::uint64_t turn) {
    {
        const std::lock_guard lock(mutex_);
        if (!running_ || reading_ || turn != turn_) {
            return; // somebody poked it meanwhile
        }
        reading_ = true;
        timer_ = 0;
    }
    read();
}

void RepairReader::read() {
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
    finish();
}

void RepairReader::finish() {
    bool again = false;
    std::uint64_t turn = 0;
    {
        const std::lock_guard lock(mutex_);
        again = std::exchange(again_, false) && running_;
        reading_ = again;
        turn = ++turn_;
        if (!again && !running_) {
            return;
        }
    }
    if (again) {
        read();
        return;
    }
    const double spread = 0.75 + 0.5 * (options_.jitter ? options_.jitter() : 0.5);
    const auto pause = std::chrono::duration_cast<Nanoseconds>(options_.interval * spread);
    // The ticker only hands on.
    const auto timer = ticker_.at(clock_.now() + pause, [weak = weak_from_this(), turn] {
        if (const auto self = weak.lock()) {
            self->workers_.post([weak, turn] {
                if (const auto alive = weak.lock()) {
                    alive->due(turn);
                }
            });
        }
    });
    bool keep = false;
    {
        const std::lock_guard lock(mutex_);
        keep = turn == turn_ && !reading_;
        if (keep) {
            timer_ = timer;
        }
    }
    if (!keep) { // somebody poked it meanwhile
        ticker_.cancel(timer);
    }
}

} // namespace queen::broker
