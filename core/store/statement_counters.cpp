#include "store/statement_counters.hpp"

#include <algorithm>

namespace queen::store {
namespace {

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

} // namespace

StatementCounters::StatementCounters(const Clock& clock)
    : clock_(clock), statements_(statements::all().size()),
      durations_(std::make_unique<LatencyHistogram[]>(statements_ + 1)) {}

Result<Rows> StatementCounters::run(Session& session, const Statement& statement,
                                    const Parameters& parameters) {
    const SteadyTime begin = clock_.now();
    auto rows = session.run(statement, parameters);
    durations_[index_of(statement)].observe(clock_.now() - begin);
    if (!rows) {
        errors_[class_of(rows.error().sqlstate)].add();
    }
    return rows;
}

std::size_t StatementCounters::index_of(const Statement& statement) noexcept {
    const auto all = statements::all();
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), &statement) - all.begin());
}

std::size_t StatementCounters::class_of(std::string_view sqlstate) noexcept {
    if (sqlstate.size() < 2) {
        return kClasses - 1;
    }
    const auto first = kAlphabet.find(sqlstate[0]);
    const auto second = kAlphabet.find(sqlstate[1]);
    if (first == std::string_view::npos || second == std::string_view::npos) {
        return kClasses - 1;
    }
    return first * kDigits + second;
}

std::vector<StatementCounters::StatementFigures> StatementCounters::statements() const {
    std::vector<StatementFigures> out;
    for (std::size_t i = 0; i <= statements_; ++i) {
        const auto duration = durations_[i].snapshot();
        if (duration.count() > 0) {
            out.push_back({i < statements_ ? std::string_view(statements::all()[i]->name) : "other",
                           duration});
        }
    }
    return out;
}

std::uint64_t StatementCounters::sent(const Statement& statement) const {
    return durations_[index_of(statement)].snapshot().count();
}

std::vector<StatementCounters::ErrorFigures> StatementCounters::errors() const {
    std::vector<ErrorFigures> out;
    for (std::size_t i = 0; i < kClasses; ++i) {
        const auto count = errors_[i].value();
        if (count == 0) {
            continue;
        }
        std::string name = "none";
        if (i + 1 < kClasses) {
            name = {kAlphabet[i / kDigits], kAlphabet[i % kDigits]};
        }
        out.push_back({std::move(name), count});
    }
    return out;
}

} // namespace queen::store
