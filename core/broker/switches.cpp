#include "broker/switches.hpp"

#include <algorithm>
#include <utility>

namespace queen::broker {

Switches::Switches(SystemStore& store, Parking& parking, Ticker& ticker, const Clock& clock,
                   Options options)
    : store_(store), parking_(parking), ticker_(ticker), clock_(clock),
      options_(std::move(options)) {}

void Switches::start(Done<void> done) {
    {
        const std::lock_guard lock(mutex_);
        running_ = true;
    }
    arm(std::min<std::chrono::milliseconds>(kFirst, options_.every));
    read(std::move(done));
}

void Switches::stop() {
    Ticker::Id timer = 0;
    {
        const std::lock_guard lock(mutex_);
        running_ = false;
        timer = std::exchange(timer_, 0);
    }
    if (timer != 0) {
        ticker_.cancel(timer);
    }
}

SwitchStates Switches::known() const {
    const std::lock_guard lock(mutex_);
    return known_;
}

void Switches::arm(std::chrono::milliseconds after) {
    const Ticker::Id timer = ticker_.at(clock_.now() + after, [this] {
        {
            const std::lock_guard lock(mutex_);
            if (!running_) {
                return;
            }
        }
        arm(options_.every);
        read([](const Result<void>&) {});
    });
    bool keep = false;
    {
        const std::lock_guard lock(mutex_);
        keep = running_;
        if (keep) {
            timer_ = timer;
        }
    }
    if (!keep) { // stopped meanwhile
        ticker_.cancel(timer);
    }
}

void Switches::read(Done<void> done) {
    std::uint64_t sets = 0;
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        sets = sets_;
        number = ++reads_;
    }
    store_.read_switches(clock_.now() + options_.wait, [this, sets, number, done = std::move(done)](
                                                           const Result<SwitchStates>& states) {
        bool believed = false;
        bool log = false;
        {
            const std::lock_guard lock(mutex_);
            believed = states && sets == sets_ && wanted_.empty() && number > believed_;
            if (believed) {
                believed_ = number;
            }
            log = !std::exchange(failing_, !states) && failing_;
        }
        if (log && options_.log) {
            options_.log("switches not read, as known pop_maintenance=" +
                         std::string(pops_paused() ? "on" : "off") + " reason=\"" +
                         states.error().message + "\"");
        }
        if (believed) {
            apply(*states);
        }
        done(states ? Result<void>{} : fail(states.error()));
    });
}

void Switches::refresh() {
    {
        const std::lock_guard lock(mutex_);
        if (!running_) {
            return;
        }
        if (refreshing_) {
            refresh_again_ = true;
            return;
        }
        refreshing_ = true;
    }
    read([this](const Result<void>&) { refreshed(); });
}

void Switches::refreshed() {
    {
        const std::lock_guard lock(mutex_);
        refreshing_ = std::exchange(refresh_again_, false) && running_;
        if (!refreshing_) {
            return;
        }
    }
    read([this](const Result<void>&) { refreshed(); });
}

void Switches::apply(const SwitchStates& states) {
    bool changed = false;
    {
        const std::lock_guard lock(mutex_);
        known_ = states;
        changed = pops_paused_.exchange(states.pop_maintenance) != states.pop_maintenance;
    }
    if (!changed) {
        return;
    }
    if (options_.log) {
        options_.log(std::string("pop maintenance ") + (states.pop_maintenance ? "on" : "off"));
    }
    if (states.pop_maintenance) {
        parking_.wake_everyone();
    }
}

void Switches::pause_pops(bool paused, Done<SwitchStates> done) {
    {
        const std::lock_guard lock(mutex_);
        wanted_.push_back({paused, std::move(done)});
        if (wanted_.size() > 1) {
            return; // one at a time: else the database could keep the first and this broker the
                    // last
        }
    }
    set_next();
}

void Switches::set_next() {
    bool paused = false;
    {
        const std::lock_guard lock(mutex_);
        paused = wanted_.front().paused;
    }
    store_.set_switch(
        clock_.now() + options_.wait, SwitchKey::pop_maintenance, paused,
        [this, paused](const Result<void>& set) {
            if (set) {
                auto states = known();
                states.pop_maintenance = paused;
                apply(states);
                if (options_.was_set) {
                    options_.was_set(SwitchKey::pop_maintenance, paused);
                }
            }
            Done<SwitchStates> done;
            bool more = false;
            {
                const std::lock_guard lock(mutex_);
                ++sets_;
                done = std::move(wanted_.front().done);
                wanted_.pop_front();
                more = !wanted_.empty();
            }
            if (more) {
                set_next();
            } else if (!set) {
                read([](const Result<void>&) {}); // it may have been stored all the same
            }
            done(set ? Result<SwitchStates>(known()) : fail(set.error()));
        });
}

} // namespace queen::broker
