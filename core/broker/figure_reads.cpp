#include "broker/figure_reads.hpp"

#include <algorithm>
#include <iterator>

namespace queen::broker {

std::string figure_question(std::string_view what, std::initializer_list<std::string_view> parts) {
    std::string text(what);
    for (const std::string_view part : parts) {
        text.append(1, ' ').append(std::to_string(part.size())).append(1, ':').append(part);
    }
    return text;
}

Done<std::string> always(Done<std::optional<std::string>> done) {
    return [done = std::move(done)](Result<std::string> text) {
        done(
            std::move(text).map([](std::string value) { return std::optional(std::move(value)); }));
    };
}

void FigureReads::ask(const std::string& question, Ask ask, Done<Answer> done) {
    {
        const std::lock_guard lock(mutex_);
        Question& asked = questions_[question];
        if (!asked.running && asked.waiting.empty()) {
            order_.push_back(question);
        }
        asked.ask = std::move(ask); // of equal questions any will do
        asked.waiting.push_back({clock_.now() + wait_, std::move(done)});
    }
    start();
}

void FigureReads::start() {
    while (const auto run = next()) {
        for (const Waiter& waiter : run->late) {
            waiter.done(fail(Errc::unavailable, "other figures were counted for too long"));
        }
        if (run->waiters.empty()) {
            continue;
        }
        const SteadyTime deadline = std::max_element(run->waiters.begin(), run->waiters.end(),
                                                     [](const Waiter& a, const Waiter& b) {
                                                         return a.deadline < b.deadline;
                                                     })
                                        ->deadline;
        run->ask(deadline, [this, run](Result<Answer> answer) { finish(run, std::move(answer)); });
    }
}

/// The question whose turn it is, taken out of the order; null when none may run.
std::shared_ptr<FigureReads::Run> FigureReads::next() {
    const std::lock_guard lock(mutex_);
    if (running_ >= kAtOnce || order_.empty()) {
        return nullptr;
    }
    auto run = std::make_shared<Run>();
    run->question = std::move(order_.front());
    order_.pop_front();
    const auto found = questions_.find(run->question);
    Question& question = found->second;
    const SteadyTime now = clock_.now();
    const auto late =
        std::stable_partition(question.waiting.begin(), question.waiting.end(),
                              [now](const Waiter& waiter) { return waiter.deadline > now; });
    std::move(late, question.waiting.end(), std::back_inserter(run->late));
    question.waiting.erase(late, question.waiting.end());
    run->waiters = std::exchange(question.waiting, {});
    if (run->waiters.empty()) {
        questions_.erase(found);
    } else {
        question.running = true;
        run->ask = std::move(question.ask);
        ++running_;
    }
    return run;
}

void FigureReads::finish(const std::shared_ptr<Run>& run, Result<Answer> answer) {
    {
        const std::lock_guard lock(mutex_);
        --running_;
        const auto found = questions_.find(run->question);
        found->second.running = false;
        if (found->second.waiting.empty()) {
            questions_.erase(found);
        } else {
            order_.push_back(run->question);
        }
    }
    start(); // the next statement runs while these answers are rendered
    for (std::size_t i = 0; i + 1 < run->waiters.size(); ++i) {
        run->waiters[i].done(answer);
    }
    run->waiters.back().done(std::move(answer));
}

} // namespace queen::broker
