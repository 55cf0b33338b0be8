// store/pg_session.hpp - one PostgreSQL session.
//
// States of the link:  closed --connect()--> open --loss, quarantine--> closed --connect()--> open
// ... A closed link keeps its PGconn: it is repaired by PQreset, which leaks nothing, while each
// failed first connect of Poco's handle leaks a descriptor (hence the PQping before it).
//
// A statement is sent and awaited without blocking calls, so a deadline holds even when the network
// swallows everything. At the deadline it is cancelled from a spare session (canceller.hpp); if its
// end does not arrive in a short grace, the link is quarantined: nobody uses it again before it was
// opened anew, because an answer could still come and be taken for that of another statement.
#pragma once
#include "base/clock.hpp"
#include "store/session.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

struct pg_conn;

namespace Poco::Data::PostgreSQL {
class SessionHandle;
}

namespace queen::store {

class Canceller;

struct StatementLimits {
    std::chrono::milliseconds normal{30'000};
    /// First contact seeds a cursor per partition in one statement: 14.6 s for 1,000,000 partitions
    /// on an idle machine (see README).
    std::chrono::milliseconds seed{120'000};
    std::chrono::milliseconds maintenance{600'000};
    std::chrono::milliseconds cancel_grace{2'000}; ///< for the end of a cancelled statement

    /// The limits that belong to a configured time-out: the longer classes never fall below it.
    static StatementLimits around(std::chrono::milliseconds statement_timeout);
    std::chrono::milliseconds of(StatementClass limit) const noexcept;
};

/// @thread one at a time, but for interrupt()
class PgSession final : public Session {
public:
    /// `conninfo` as complete_conninfo() gives it. Without a canceller a late statement costs its
    /// link. Connects on connect(), not here.
    PgSession(std::string conninfo, StatementLimits limits,
              std::shared_ptr<Canceller> canceller = nullptr,
              const Clock& clock = SystemClock::instance());
    ~PgSession() override;

    Result<void> connect() override;
    bool open() const noexcept override { return open_; }
    bool check() override;
    Result<Rows> run(const Statement& statement, const Parameters& parameters) override;
    void quarantine() noexcept override { open_ = false; }
    void interrupt() noexcept override;

    /// Several statements in one string, as one transaction unless they say otherwise. Answers in
    /// text format, the last one counts. For start-up only. `watch` is called once if the statement
    /// still runs after `watch_after`.
    Result<Rows> script(const std::string& sql, std::chrono::milliseconds timeout,
                        std::chrono::milliseconds watch_after = std::chrono::milliseconds::max(),
                        const std::function<void()>& watch = {});
    /// Waits for `time`; ends early, with an error, when the link breaks or on interrupt().
    Result<void> idle(std::chrono::milliseconds time);

    int backend_pid() const noexcept { return backend_pid_; }
    int server_version() const noexcept; ///< 150020 for 15.20; 0 while closed
    bool in_recovery() const noexcept { return in_recovery_; }
    /// Start of the server behind this link, as microseconds of its own clock: with the pid it
    /// names a backend without mistaking another server's for it.
    std::int64_t server_started() const noexcept { return server_started_; }

private:
    enum class Wait { ready, late, lost, interrupted };

    pg_conn* connection() const noexcept;
    Result<void> set_up();
    Result<void> prepare(const Statement& statement, const Parameters& parameters,
                         SteadyTime deadline);
    Result<Rows> run_prepared(const Statement& statement, const Parameters& parameters,
                              SteadyTime deadline);
    /// Awaits and collects what was sent.
    Result<Rows> finish(SteadyTime deadline);
    Wait wait_until(SteadyTime deadline);
    Error lost_error();

    const std::string conninfo_;
    const StatementLimits limits_;
    const std::shared_ptr<Canceller> canceller_;
    const Clock& clock_;
    std::unique_ptr<Poco::Data::PostgreSQL::SessionHandle> handle_;
    int interrupt_fd_ = -1; ///< an eventfd, readable for good after interrupt()
    bool open_ = false;
    bool in_recovery_ = false;
    int backend_pid_ = 0;
    std::int64_t server_started_ = 0;
    std::unordered_set<std::string_view> prepared_;
};

} // namespace queen::store
