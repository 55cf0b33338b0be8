#include "store/canceller.hpp"

#include "store/pg_session.hpp"

namespace queen::store {
namespace {

constexpr Statement kCancel{
    "queen_cancel",
    // The start time keeps a pid of one server from being looked up on another after a failover.
    "select pg_cancel_backend($1) "
    "where (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint = $2"};

StatementLimits limits_for(std::chrono::milliseconds patience) {
    StatementLimits limits;
    limits.normal = patience;
    return limits;
}

} // namespace

Canceller::Canceller(std::string conninfo, std::chrono::milliseconds patience)
    : patience_(patience),
      spare_(std::make_unique<PgSession>(std::move(conninfo), limits_for(patience))) {}

Canceller::~Canceller() = default;

Result<void> Canceller::cancel(int backend_pid, std::int64_t server_started) {
    const std::unique_lock lock(mutex_, patience_);
    if (!lock.owns_lock()) {
        return fail(Errc::unavailable, "the spare session is busy");
    }
    if (!spare_->check()) {
        if (auto connected = spare_->connect(); !connected) {
            return fail(std::move(connected.error()));
        }
    }
    Parameters parameters;
    parameters.int4(backend_pid).int8(server_started);
    const auto rows = spare_->run(kCancel, parameters);
    if (!rows) {
        return fail(rows.error());
    }
    if (rows->count() != 1 || !Row(*rows, 0).boolean(0)) {
        return fail(Errc::not_found, "no such backend");
    }
    return {};
}

} // namespace queen::store
