// store/pg_store_ask.hpp - what the files of PgStore share: how a question is asked, and how the
// plainest answers are read.
#pragma once
#include "base/text.hpp"
#include "store/pg_store.hpp"
#include "store/rows.hpp"
#include "store/statement_counters.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace queen::store {

/// Tenants come as text from header, token or settings, and were checked there.
inline Result<Uuid> tenant_id(std::string_view tenant) {
    const auto id = parse_uuid(tenant);
    if (!id) {
        return fail(Errc::invalid_argument, "tenant is not a uuid");
    }
    return *id;
}

inline Result<bool> decode_bool(const Rows& rows) {
    Row row(rows, 0);
    const bool value = row.boolean(0);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

/// The one text or jsonb value of the answer.
inline Result<std::string_view> only_text(const Rows& rows) {
    Row row(rows, 0);
    const std::string_view value = row.text(0);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

template <class X>
void PgStore::ask(Lane lane, Deadline deadline, std::function<Result<Rows>(Session&)> call,
                  std::function<Result<X>(const Rows&)> decode, Done<X> done, Repeat repeat) {
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

} // namespace queen::store
