// store/installer.hpp - brings the schema `queen` of a database to the version of this program.
//
// Runs at every boot: all files in order, each statement in a transaction of its own and
// idempotent, under one advisory lock of the database, so that any number of brokers may boot at
// once (DM-2).
//
// A statement that must wait for a lock gives up after a short slice and tries again later: while
// it waits in the server's queue, everybody behind it waits as well (K35). It never cancels anyone;
// when it has tried often enough, the boot fails and names who was in the way (DM-3).
//
// Whose schema it is stands in the comment on the schema, written in the transaction that creates
// it: "queen broker schema, version N", N = 0 until the first installation is complete. A schema
// without it, unless empty, belongs to somebody else.
#pragma once
#include "base/result.hpp"
#include "store/embedded_sql.hpp"
#include "store/pg_session.hpp"
#include "store/sql_script.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>

namespace queen::store {

/// Raised when a schema made by this program can no longer be used by the program before it, or
/// when that one could not install over it (a result with more columns): it is refused before it
/// touches anything.
inline constexpr std::int64_t kSchemaVersion = 2;
/// The session lock that serialises installers of one database.
inline constexpr std::int64_t kSchemaLock = 778'120'010;
inline constexpr int kOldestServer = 150'000; ///< PostgreSQL 15

struct InstallOptions {
    bool apply = true; ///< false: only look whether the schema is there and fits
    std::chrono::milliseconds lock_timeout{2'000}; ///< for each lock a statement waits for
    int attempts = 40; ///< per statement; with the pauses about 3 minutes
    std::chrono::milliseconds pause_first{100}, pause_longest{4'000}; ///< doubling, jittered
    std::chrono::milliseconds turn{300'000}; ///< how long to wait for other installers
    std::chrono::milliseconds statement_timeout{600'000};
    std::span<const SqlFile> files = embedded_sql();
    std::int64_t version = kSchemaVersion;
};

struct InstallReport {
    bool created = false; ///< there was no schema before
    int statements = 0;
    int retries = 0;
};

/// Whether the broker can live on such a server at all.
/// @errors unsupported, unavailable
/// @source DM-1
Result<void> fit_server(int version, bool standby);

/// @thread main, but for interrupt()
class Installer {
public:
    explicit Installer(std::string conninfo, InstallOptions options = {});
    ~Installer();

    /// @errors unavailable: no connection, or a standby; unsupported: server too old; conflict: the
    /// schema is not ours, is newer, or is missing although `apply` is off; else what the server
    /// said of the statement that failed
    Result<InstallReport> run();
    /// Makes run() fail soon. @thread any
    void interrupt() noexcept { session_.interrupt(); }

private:
    struct Found {
        bool exists = false;
        bool empty = true;
        std::optional<std::int64_t> version; ///< nullopt: no mark of ours
    };

    Result<void> lock();
    std::string lock_holder();
    Result<Found> look();
    Result<void> judge(const Found& found) const;
    Result<void> mark(std::int64_t version, bool create);
    Result<void> apply(const SqlFile& file);
    Result<void> apply(const SqlStep& step);
    Result<void> attempt(const SqlStep& step);
    void watch_blockers();
    void warn_invalid_indexes();
    std::chrono::milliseconds pause_before(int attempt);

    const std::string conninfo_;
    const InstallOptions options_;
    PgSession session_;
    std::unique_ptr<PgSession> watcher_; ///< connected when somebody is in the way
    std::string blockers_;               ///< of the last attempt that had to wait
    std::minstd_rand random_;
    InstallReport report_;
};

} // namespace queen::store
