#include "broker/pop_turn.hpp"

#include <utility>

namespace queen::broker {

PopTurn::PopTurn(Parking& parking, Workers& workers, Ticker& ticker, const Clock& clock,
                 const WaitScope& scope, Waiting waiting, Look look, Answer answer)
    : parking_(parking), workers_(workers), ticker_(ticker), clock_(clock), waiting_(waiting),
      look_(std::move(look)), answer_(std::move(answer)), place_(parking.enter(scope)) {}

PopTurn::~PopTurn() = default;

void PopTurn::start() {
    if (waiting_.wait) {
        deadline_timer_ = ticker_.at(waiting_.deadline, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->expire();
            }
        });
    }
    begin_look(false);
}

void PopTurn::begin_look(bool again) {
    // Before the look: a wake that comes during it must not be lost (LP-3).
    parking_.ticket(*place_);
    look_(again,
          [self = shared_from_this()](const LookOutcome& outcome) { self->looked(outcome); });
}

void PopTurn::looked(const LookOutcome& outcome) {
    if (outcome.took) {
        if (outcome.more) {
            parking_.pass_on(*place_); // chained wake
        }
        finish(End::taken);
        return;
    }
    if (gone_.load()) {
        parking_.pass_on(*place_); // whatever woke this turn is for someone else
        finish(End::abandoned);
        return;
    }
    if (outcome.over) {
        parking_.pass_on(*place_); // whoever waits has to hear it, or may have what woke this turn
        finish(End::empty);
        return;
    }
    if (!waiting_.wait) {
        finish(outcome.error ? End::failed : End::empty, outcome.error);
        return;
    }
    // A failed look of a waiting pop is not an answer (a 5xx ends the client's consumer): it stays.
    if (parking_.closed() || clock_.now() >= waiting_.deadline) {
        if (outcome.error) {
            parking_.pass_on(*place_); // it could not tell whether something is ready
        }
        finish(End::empty);
        return;
    }
    if (waiting_.most_parked != 0 && parking_.parked() >= waiting_.most_parked) {
        parking_.pass_on(*place_);
        finish(End::crowded);
        return;
    }
    if (!parking_.park(*place_, shared_from_this(), outcome.next_due)) {
        resume(); // something happened during the look; through the queue, so that stacks stay flat
        return;
    }
    // Both came too early to find it parked when they happened since the checks above.
    if (gone_.load()) {
        abandon();
    } else if (clock_.now() >= waiting_.deadline) {
        expire();
    }
}

void PopTurn::resume() {
    workers_.post([self = shared_from_this()] { self->look(); });
}

void PopTurn::resume_together(std::vector<std::shared_ptr<Waiter>> all) {
    workers_.post([all = std::move(all)] {
        for (const auto& waiter : all) {
            waiter->look();
        }
    });
}

void PopTurn::look() {
    if (gone_.load()) {
        parking_.pass_on(*place_);
        finish(End::abandoned);
        return;
    }
    begin_look(true);
}

void PopTurn::expire() {
    // Not parked: a look is under way and ends with the deadline in view.
    if (parking_.leave(*place_)) {
        workers_.post([self = shared_from_this()] { self->finish(End::empty); });
    }
}

void PopTurn::abandon() {
    gone_.store(true);
    if (parking_.leave(*place_)) {
        finish(End::abandoned);
    }
}

void PopTurn::finish(End end, std::optional<Error> error) {
    if (ended_.exchange(true)) {
        return;
    }
    if (deadline_timer_ != 0) {
        ticker_.cancel(deadline_timer_);
    }
    const auto answer = std::exchange(answer_, nullptr);
    answer(end, std::move(error));
}

} // namespace queen::broker
