// store/asker.hpp - what the ports on PostgreSQL are made of: how a question is asked, and how the
// plainest answers are read.
#pragma once
#include "base/text.hpp"
#include "store/executor.hpp"
#include "store/rows.hpp"
#include "store/statement_counters.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::store {

/// Asks the database through the executor, counted. One for all ports of a broker, by value.
/// The executor outlives it and all calls under way.
/// @thread any
class Asker {
public:
    explicit Asker(Executor& executor, const Clock& clock = SystemClock::instance())
        : executor_(executor), counters_(std::make_shared<StatementCounters>(clock)) {}

    const StatementCounters& statements() const noexcept { return *counters_; }

    /// `call` runs a statement, `decode` reads its answer after the session was given back.
    template <class X>
    void ask(Lane lane, SteadyTime deadline, std::function<Result<Rows>(Session&)> call,
             std::function<Result<X>(const Rows&)> decode, Done<X> done,
             Repeat repeat = Repeat::never) const {
        executor_.submit<Rows>(
            lane, deadline,
            [counters = counters_, call = std::move(call)](Session& session) {
                CountedSession counted(session, *counters);
                return call(counted);
            },
            [decode = std::move(decode), done = std::move(done)](Result<Rows> rows) {
                if (!rows) {
                    done(fail(std::move(rows.error())));
                } else {
                    done(decode(*rows));
                }
            },
            repeat);
    }

private:
    Executor& executor_;
    std::shared_ptr<StatementCounters> counters_; ///< shared with the calls under way
};

/// Tenants come as text from header, token or settings, and were checked there.
inline Result<Uuid> tenant_id(std::string_view tenant) {
    const auto id = parse_uuid(tenant);
    if (!id) {
        return fail(Errc::invalid_argument, "tenant is not a uuid");
    }
    return *id;
}

/// What was read of a row, if its columns are what they were read as.
template <class X>
Result<X> checked(const Row& row, X value) {
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

/// All rows in their order. @param read (Row&) -> X or Result<X>
template <class X, class Read>
Result<std::vector<X>> read_each(const Rows& rows, Read read) {
    std::vector<X> all;
    all.reserve(static_cast<std::size_t>(rows.count()));
    for (int i = 0; i < rows.count(); ++i) {
        Row row(rows, i);
        Result<X> value = read(row);
        if (!value) {
            return fail(std::move(value.error()));
        }
        if (auto status = row.status(); !status) {
            return fail(std::move(status.error()));
        }
        all.push_back(std::move(*value));
    }
    return all;
}

inline Result<bool> decode_bool(const Rows& rows) {
    Row row(rows, 0);
    const bool value = row.boolean(0);
    return checked(row, value);
}

inline Result<std::int64_t> decode_count(const Rows& rows) {
    Row row(rows, 0);
    const std::int64_t count = row.integer(0);
    return checked(row, count);
}

/// The one text or jsonb value of the answer.
inline Result<std::string_view> only_text(const Rows& rows) {
    Row row(rows, 0);
    const std::string_view value = row.text(0);
    return checked(row, value);
}

inline Result<std::string> decode_text(const Rows& rows) {
    return only_text(rows).map([](std::string_view text) { return std::string(text); });
}

/// As decode_text; null is nothing.
inline Result<std::optional<std::string>> decode_if_any(const Rows& rows) {
    if (Row(rows, 0).null(0)) {
        return std::optional<std::string>{};
    }
    return decode_text(rows).map([](std::string text) { return std::optional(std::move(text)); });
}

} // namespace queen::store
