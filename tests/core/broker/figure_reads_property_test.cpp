// Every order of questions, answers and passing time over the real FigureReads: nobody gets figures
// older than his question, nobody is answered twice or never, and the store is asked no more than
// it should be (K30).
#include "broker/figure_reads.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace queen::broker {
namespace {

using namespace std::chrono_literals;

struct Step {
    enum Kind { ask, answer, wait, kinds };
    int kind;
    std::uint8_t pick;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    static constexpr const char* kNames[] = {"ask", "answer", "wait"};
    return out << kNames[step.kind] << '#' << int{step.pick};
}

/// The store's figure is a counter that grows with each question, so an answer tells when it was
/// read.
class World {
public:
    static constexpr auto kWait = 30s;

    void ask(const std::string& question) {
        const std::size_t id = asked_++;
        answers_.push_back(0);
        const int now = ++figure_;
        const SteadyTime deadline = clock_.now() + kWait;
        reads_.ask(
            question,
            [this, question](SteadyTime, Done<FigureReads::Answer> done) {
                RC_ASSERT(running_.size() < FigureReads::kAtOnce);
                for (const auto& other : running_) {
                    RC_ASSERT(other.question != question);
                }
                running_.push_back({question, ++figure_, std::move(done)});
            },
            [this, id, now, deadline](Result<FigureReads::Answer> answer) {
                RC_ASSERT(++answers_[id] == 1);
                if (answer) {
                    RC_ASSERT(std::stoi(**answer) > now);
                } else {
                    RC_ASSERT(answer.error().code == Errc::unavailable);
                    RC_ASSERT(clock_.now() >= deadline);
                }
            });
    }

    void answer(std::size_t pick) {
        if (running_.empty()) {
            return;
        }
        const auto at = running_.begin() + static_cast<std::ptrdiff_t>(pick % running_.size());
        const auto statement = std::move(*at);
        running_.erase(at);
        statement.done(FigureReads::Answer(std::to_string(statement.figure)));
    }

    void wait() { clock_.advance(kWait / 2); }

    void finish() {
        std::size_t runs = 0;
        while (!running_.empty()) {
            answer(0);
            RC_ASSERT(++runs <= asked_);
        }
        for (const int count : answers_) {
            RC_ASSERT(count == 1);
        }
    }

private:
    struct Statement {
        std::string question;
        int figure;
        Done<FigureReads::Answer> done;
    };
    test::ManualClock clock_;
    FigureReads reads_{clock_, kWait};
    std::vector<Statement> running_;
    std::vector<int> answers_; ///< how often each question was answered
    std::size_t asked_ = 0;
    int figure_ = 0;
};

rc::Gen<Step> any_step() {
    return rc::gen::build<Step>(
        rc::gen::set(&Step::kind, rc::gen::weightedElement<int>(
                                      {{5, Step::ask}, {4, Step::answer}, {1, Step::wait}})),
        rc::gen::set(&Step::pick, rc::gen::arbitrary<std::uint8_t>()));
}

RC_GTEST_PROP(FigureReads, EveryOneIsAnsweredOnceAndWithFiguresNotOlderThanTheQuestion, ()) {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    World world;
    for (const Step& step : steps) {
        switch (step.kind) {
        case Step::ask:
            world.ask(std::string(1, static_cast<char>('a' + step.pick % 4)));
            break;
        case Step::answer:
            world.answer(step.pick);
            break;
        default:
            world.wait();
        }
    }
    world.finish();
}

// A crowd with one question costs the run under way and one more.
TEST(FigureReads, ACrowdWithOneQuestionCostsTwoRuns) {
    test::ManualClock clock;
    FigureReads reads(clock, 30s);
    std::vector<Done<FigureReads::Answer>> statements;
    int answered = 0;
    for (int i = 0; i < 200; ++i) {
        reads.ask(
            "depth", [&](SteadyTime, auto done) { statements.push_back(std::move(done)); },
            [&](const Result<FigureReads::Answer>& answer) {
                answered += answer && *answer == "7" ? 1 : 0;
            });
    }
    ASSERT_EQ(statements.size(), 1u);
    statements[0](FigureReads::Answer("7"));
    EXPECT_EQ(answered, 1);
    ASSERT_EQ(statements.size(), 2u);
    statements[1](FigureReads::Answer("7"));
    EXPECT_EQ(answered, 200);
    EXPECT_EQ(statements.size(), 2u);
}

TEST(FigureReads, AFailureGoesToAllWhoSharedTheRun) {
    test::ManualClock clock;
    FigureReads reads(clock, 30s);
    std::vector<Done<FigureReads::Answer>> statements;
    int failed = 0;
    const auto ask = [&] {
        reads.ask(
            "list", [&](SteadyTime, auto done) { statements.push_back(std::move(done)); },
            [&](const Result<FigureReads::Answer>& answer) {
                failed += answer ? 0 : static_cast<int>(answer.error().code == Errc::timeout);
            });
    };
    ask();
    ask();
    ask();
    statements[0](fail(Errc::timeout, "too slow"));
    EXPECT_EQ(failed, 1);
    ASSERT_EQ(statements.size(), 2u);
    statements[1](fail(Errc::timeout, "too slow"));
    EXPECT_EQ(failed, 3);
    ask();
    EXPECT_EQ(statements.size(), 3u) << "nothing is left of the failed ones";
}

} // namespace
} // namespace queen::broker
