#include "broker/switches.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace queen::broker {
namespace {

bool& of(SwitchStates& states, SwitchKey key) {
    switch (key) {
    case SwitchKey::maintenance:
        return states.maintenance;
    case SwitchKey::pop_maintenance:
        return states.pop_maintenance;
    case SwitchKey::timers_schedule:
        return states.timers_schedule;
    case SwitchKey::timers_fire:
        return states.timers_fire;
    }
    return states.maintenance; // a number outside the enum
}

} // namespace

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
        News news;
        bool log = false;
        bool again = false;
        {
            const std::lock_guard lock(mutex_);
            log = !std::exchange(failing_, !states) && failing_;
            if (states && number > believed_) {
                if (sets == sets_ && !setting_) {
                    believed_ = number;
                    owed_ = false;
                    news = know(*states);
                } else {
                    owed_ = true; // another broker's set may be what it was for
                    again = wanted_.empty() && running_;
                }
            }
        }
        if (log && options_.log) {
            options_.log("switches not read, as known pop_maintenance=" +
                         std::string(pops_paused() ? "on" : "off") + " reason=\"" +
                         states.error().message + "\"");
        }
        tell(news);
        if (again) {
            read([](const Result<void>&) {});
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

Switches::News Switches::know(const SwitchStates& states) {
    News news;
    known_ = states;
    const auto put = [&news](std::atomic<bool>& held, bool now, const char* what) {
        const bool changed = held.exchange(now) != now;
        if (changed) {
            news.lines.push_back(std::string(what) + (now ? " on" : " off"));
        }
        return changed;
    };
    news.paused =
        put(pops_paused_, states.pop_maintenance, "pop maintenance") && states.pop_maintenance;
    put(timers_schedule_, states.timers_schedule, "taking of timers");
    put(timers_fire_, states.timers_fire, "firing of timers");
    return news;
}

void Switches::tell(const News& news) {
    for (const auto& line : news.lines) {
        if (options_.log) {
            options_.log(line);
        }
    }
    if (news.paused) {
        parking_.wake_everyone();
    }
}

void Switches::set(SwitchKey key, bool enabled, Done<SwitchStates> done) {
    {
        const std::lock_guard lock(mutex_);
        wanted_.push_back({key, enabled, std::move(done)});
        if (wanted_.size() > 1) {
            return; // one at a time: else the database could keep the first and this broker the
                    // last
        }
    }
    set_next();
}

void Switches::set_next() {
    auto key = SwitchKey::maintenance;
    bool enabled = false;
    {
        const std::lock_guard lock(mutex_);
        key = wanted_.front().key;
        enabled = wanted_.front().enabled;
        setting_ = true;
    }
    store_.set_switch(
        clock_.now() + options_.wait, key, enabled, [this, key, enabled](const Result<void>& set) {
            News news;
            {
                const std::lock_guard lock(mutex_);
                setting_ = false;
                ++sets_;
                owed_ = owed_ || !set;
                if (set) {
                    auto states = known_;
                    of(states, key) = enabled;
                    news = know(states);
                }
            }
            tell(news);
            if (set && options_.was_set) {
                options_.was_set(key, enabled);
            }
            Done<SwitchStates> done;
            bool more = false;
            bool owed = false;
            {
                const std::lock_guard lock(mutex_);
                done = std::move(wanted_.front().done);
                wanted_.pop_front();
                more = !wanted_.empty();
                owed = !more && owed_;
            }
            if (more) {
                set_next();
            } else if (owed) {
                read([](const Result<void>&) {}); // what is stored may be something else
            }
            done(set ? Result<SwitchStates>(known()) : fail(set.error()));
        });
}

} // namespace queen::broker
