#include "broker/repairs.hpp"

#include "base/on_exit.hpp"

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
    // It is over when nobody holds its turn any more: after the answer, whoever of those who are
    // told throws, or when the store threw before there was one.
    const auto self = shared_from_this();
    std::shared_ptr<void> turn(nullptr, [self](std::nullptr_t) { self->over(); });
    store_.repairs(
        clock_.now() + options_.wait,
        [self, turn = std::move(turn)](const Result<std::vector<Repair>>& repairs) mutable {
            const auto last = std::move(turn);
            self->got(repairs);
        });
}

void RepairReader::got(const Result<std::vector<Repair>>& repairs) {
    struct Changed {
        const Repair* repair;
        std::map<Key, Seen>::iterator seen;
    };
    std::vector<Changed> changed;
    if (repairs) {
        std::map<Key, Seen> now;
        const std::lock_guard lock(mutex_);
        std::optional<Changed> failed;
        for (const Repair& repair : *repairs) {
            const auto [at, added] = now.emplace(Key(repair.tenant, repair.queue, repair.group),
                                                 Seen{repair.at, repair.partition});
            const auto before = seen_.find(at->first);
            if (added && (before == seen_.end() || before->second != at->second)) {
                if (failed_ && failed_.key() == at->first) {
                    failed = Changed{&repair, at};
                } else {
                    changed.push_back({&repair, at});
                }
            }
        }
        if (failed) {
            changed.push_back(*failed); // it must not keep the others from being told once more
        }
        failed_ = {};
        seen_.swap(now);
    }
    std::size_t told = 0;
    const OnExit untold([&]() noexcept { // whom an exception kept from it, the next read tells
        const std::lock_guard lock(mutex_);
        for (auto at = told; at < changed.size(); ++at) {
            auto seen = seen_.extract(changed[at].seen);
            if (at == told) {
                failed_ = std::move(seen);
            }
        }
    });
    for (; told < changed.size(); ++told) {
        tell_(*changed[told].repair);
    }
}

void RepairReader::over() noexcept {
    try {
        finish();
    } catch (const std::exception&) { // no memory for a timer: the next poke reads
        const std::lock_guard lock(mutex_);
        reading_ = false;
    }
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
