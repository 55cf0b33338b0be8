#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"
#include "ports/store.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

/// What makes two questions the same. The parts may hold any byte, so each is told by its length.
std::string figure_question(std::string_view what, std::initializer_list<std::string_view> parts);

/// The store's text as an answer that is there.
Done<std::string> always(Done<std::optional<std::string>> done);

/// Questions whose answers cost the database in proportion to what there is: depths, lists,
/// overviews. However many dashboards ask, at most kAtOnce such statements run, and each question
/// once at a time: who asks while it runs shares its next run. So nobody gets figures older than
/// his question, and a crowd costs one run, not one each (K30).
///
///   ask -> waiting, in order of the first who asked -> running -> everybody who waited is answered
///                  ^------ asked again meanwhile ------'
///
/// Invariant: each `done` runs exactly once, with a run that began after its ask(), or with
/// unavailable when no run began in time.
/// Invariant: no question has two runs at a time.
/// Locks: `mutex_` is a leaf; neither the store nor a `done` is called while it is held.
/// @thread any
/// @source K30
class FigureReads {
public:
    using Answer = std::optional<std::string>;
    /// Sends the statement; its `done` comes later, on a worker.
    using Ask = std::function<void(SteadyTime deadline, Done<Answer>)>;

    /// Two: one slow question must not hold up all others, and the admin lane keeps sessions for
    /// configure, delete and the health check. A guess beyond that.
    static constexpr std::size_t kAtOnce = 2;

    /// @param wait longest time from the question to a session
    FigureReads(const Clock& clock, std::chrono::milliseconds wait) : clock_(clock), wait_(wait) {}
    FigureReads(const FigureReads&) = delete;
    FigureReads& operator=(const FigureReads&) = delete;

    /// @param question equal for those who may share an answer: what, tenant, names, page
    /// @errors (to done) those of the store; unavailable: no turn in time
    void ask(const std::string& question, Ask ask, Done<Answer> done);

private:
    struct Waiter {
        SteadyTime deadline;
        Done<Answer> done;
    };
    struct Question {
        Ask ask;
        bool running = false;
        std::vector<Waiter> waiting; ///< for the next run
    };
    struct Run {
        std::string question;
        Ask ask;
        std::vector<Waiter> waiters;
        std::vector<Waiter> late; ///< their time was over before their turn came
    };
    void start();
    std::shared_ptr<Run> next();
    void finish(const std::shared_ptr<Run>& run, Result<Answer> answer);

    const Clock& clock_;
    const std::chrono::milliseconds wait_;
    std::mutex mutex_;
    std::map<std::string, Question> questions_; ///< those that wait or run
    std::deque<std::string> order_;             ///< those that wait and do not run
    std::size_t running_ = 0;
};

} // namespace queen::broker
