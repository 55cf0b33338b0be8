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

Canceller::Canceller(std::string conninfo, std::chrono::milliseconds patience, const Clock& clock)
    : patience_(patience), clock_(clock),
      spare_(
          std::make_unique<PgSession>(std::move(conninfo), limits_for(patience), nullptr, clock)) {}

Canceller::~Canceller() = default;

Result<void> Canceller::cancel(int backend_pid, std::int64_t server_started) {
    {
        std::unique_lock lock(mutex_);
        if (!freed_.wait_for(lock, patience_, [this] { return !busy_; })) {
            return fail(Errc::unavailable, "the spare session is busy");
        }
        busy_ = true;
    }
    auto cancelled = cancel_with_spare(backend_pid, server_started);
    const std::lock_guard lock(mutex_);
    busy_ = false;
    freed_.notify_one();
    return cancelled;
}

bool Canceller::worth_a_line(std::string_view statement) {
    constexpr std::chrono::seconds kEvery{30};
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(mutex_);
    const auto known = logged_.find(statement);
    if (known == logged_.end()) {
        logged_.emplace(statement, now);
        return true;
    }
    if (now - known->second < kEvery) {
        return false;
    }
    known->second = now;
    return true;
}

Result<void> Canceller::cancel_with_spare(int backend_pid, std::int64_t server_started) {
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
