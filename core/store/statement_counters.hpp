#pragma once
#include "base/clock.hpp"
#include "base/counter.hpp"
#include "base/histogram.hpp"
#include "store/statements.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace queen::store {

/// How often each statement of statements.hpp was sent, how long it took, and what the server said
/// of those that failed. Constant size, whatever a server answers.
/// @thread any
class StatementCounters {
public:
    explicit StatementCounters(const Clock& clock);

    /// Runs it through `session`, timed: from sending to the whole answer, preparing it on a fresh
    /// link included.
    Result<Rows> run(Session& session, const Statement& statement, const Parameters& parameters);

    struct StatementFigures {
        std::string_view name; ///< as in statements.hpp; "other" for one that is not in its list
        LatencyHistogram::Snapshot duration;
    };
    /// Those that were sent at least once.
    std::vector<StatementFigures> statements() const;
    std::uint64_t sent(const Statement& statement) const;

    struct ErrorFigures {
        std::string sqlstate_class; ///< two characters; "none" when no answer came
        std::uint64_t count = 0;
    };
    /// Classes that were met at least once, in order.
    std::vector<ErrorFigures> errors() const;

private:
    static constexpr std::size_t kDigits = 36; ///< a class is two of 0-9 and A-Z
    static constexpr std::size_t kClasses = kDigits * kDigits + 1; ///< the last: none

    static std::size_t index_of(const Statement& statement) noexcept;
    static std::size_t class_of(std::string_view sqlstate) noexcept;

    const Clock& clock_;
    const std::size_t statements_; ///< of the list; one more, the last, counts others
    const std::unique_ptr<LatencyHistogram[]> durations_;
    std::array<Counter, kClasses> errors_;
};

/// A session whose statements are counted; everything else is the session's own.
class CountedSession final : public Session {
public:
    CountedSession(Session& session, StatementCounters& counters)
        : session_(session), counters_(counters) {}

    Result<void> connect() override { return session_.connect(); }
    bool open() const noexcept override { return session_.open(); }
    bool check() override { return session_.check(); }
    Result<Rows> run(const Statement& statement, const Parameters& parameters) override {
        return counters_.run(session_, statement, parameters);
    }
    void quarantine() noexcept override { session_.quarantine(); }
    void interrupt() noexcept override { session_.interrupt(); }

private:
    Session& session_;
    StatementCounters& counters_;
};

} // namespace queen::store
