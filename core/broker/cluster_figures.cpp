#include "broker/cluster_figures.hpp"

#include <utility>

namespace queen::broker {

ClusterFigureReads::ClusterFigureReads(SystemStore& store, Ticker& ticker, Workers& workers,
                                       const Clock& clock, Options options)
    : store_(store), ticker_(ticker), workers_(workers), clock_(clock), options_(options) {}

void ClusterFigureReads::ask(std::function<void(Figures)> done) {
    const auto now = clock_.now();
    Figures known;
    std::uint64_t question = 0;
    {
        const std::lock_guard lock(mutex_);
        if (now >= good_until_ && !given_up_) {
            waiting_.push_back(std::move(done));
            if (on_its_way_) {
                return;
            }
            on_its_way_ = true;
            question = ++question_;
        } else if (now < good_until_) {
            known = last_;
        }
    }
    if (question == 0) {
        done(std::move(known));
        return;
    }
    const Ticker::Id timer =
        ticker_.at(now + options_.patience, [this, question] { give_up(question); });
    {
        const std::lock_guard lock(mutex_);
        timer_ = timer;
    }
    store_.cluster_figures(
        now + options_.patience, options_.most, [this](Result<ClusterFigures> figures) {
            answered(figures ? std::make_shared<const ClusterFigures>(std::move(*figures))
                             : nullptr);
        });
}

void ClusterFigureReads::answered(const Figures& figures) {
    std::vector<std::function<void(Figures)>> waiting;
    Ticker::Id timer = 0;
    {
        const std::lock_guard lock(mutex_);
        last_ = figures;
        good_until_ = clock_.now() + options_.fresh;
        on_its_way_ = false;
        given_up_ = false;
        timer = std::exchange(timer_, 0);
        waiting.swap(waiting_);
    }
    if (timer != 0) {
        ticker_.cancel(timer);
    }
    for (const auto& done : waiting) {
        done(figures);
    }
}

void ClusterFigureReads::give_up(std::uint64_t question) {
    std::vector<std::function<void(Figures)>> waiting;
    {
        const std::lock_guard lock(mutex_);
        if (question != question_ || !on_its_way_) {
            return;
        }
        given_up_ = true;
        waiting.swap(waiting_);
    }
    workers_.post([waiting = std::move(waiting)] {
        for (const auto& done : waiting) {
            done(nullptr);
        }
    });
}

} // namespace queen::broker
