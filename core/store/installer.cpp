#include "store/installer.hpp"

#include "base/text.hpp"

#include <Poco/Logger.h>

#include <algorithm>

namespace queen::store {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kMark = "queen broker schema, version ";
constexpr milliseconds kTurnPoll{500}; // between two tries to get the installers' lock
constexpr milliseconds kTurnLogEvery{10'000};

// A try, not a wait: a session that waits inside the server keeps a snapshot, and an index that the
// holder builds concurrently would wait for that in turn.
constexpr Statement kTryLock{"install_try_lock", "select pg_try_advisory_lock($1)"};
constexpr Statement kUnlock{"install_unlock", "select pg_advisory_unlock($1)"};
constexpr Statement kHolder{"install_holder", R"sql(
select format('pid %s (%s %s, since %s)', l.pid, a.usename, a.application_name, a.backend_start)
from pg_locks l left join pg_stat_activity a using (pid)
where l.locktype = 'advisory' and l.granted and l.objsubid = 1
  and l.classid::bigint = $1 >> 32 and l.objid::bigint = $1 & 4294967295
  and l.database = (select oid from pg_database where datname = current_database()))sql"};
constexpr Statement kLook{"install_look", R"sql(
select obj_description(n.oid, 'pg_namespace'),
       exists (select from pg_class c where c.relnamespace = n.oid)
       or exists (select from pg_proc p where p.pronamespace = n.oid)
from pg_namespace n where n.nspname = 'queen')sql"};
constexpr Statement kBlockers{"install_blockers", R"sql(
select string_agg(format('pid %s (%s %s, %s: %s)', pid, usename, application_name, state,
                         left(regexp_replace(query, '\s+', ' ', 'g'), 80)), ', ' order by pid)
from pg_stat_activity where pid = any(pg_blocking_pids($1)))sql"};
constexpr Statement kInvalid{"install_invalid", R"sql(
select string_agg(c.relname, ', ') from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace = 'queen'::regnamespace and not i.indisvalid)sql"};

Poco::Logger& logger() {
    return Poco::Logger::get("queen.store");
}

bool worth_another_try(const Error& error) {
    return error.sqlstate == "55P03" || error.sqlstate == "40P01";
}

std::optional<std::int64_t> version_of(std::string_view comment) {
    if (!comment.starts_with(kMark)) {
        return std::nullopt;
    }
    return parse_int(comment.substr(kMark.size()));
}

} // namespace

Result<void> fit_server(int version, bool standby) {
    if (version < kOldestServer) {
        return fail(Errc::unsupported, "PostgreSQL " + std::to_string(version / 10'000) +
                                           " is too old: Queen broker needs PostgreSQL " +
                                           std::to_string(kOldestServer / 10'000) + " or newer");
    }
    if (standby) {
        return fail(Errc::unavailable, "the database server is a read-only standby: connect to the "
                                       "primary, or add target_session_attrs=read-write");
    }
    return {};
}

Installer::Installer(std::string conninfo, InstallOptions options)
    : conninfo_(std::move(conninfo)), options_(options), session_(conninfo_, StatementLimits{}),
      random_(std::random_device{}()) {}

Installer::~Installer() = default;

Result<InstallReport> Installer::run() {
    if (auto connected = session_.connect(); !connected) {
        return fail(std::move(connected.error()));
    }
    if (auto fit = fit_server(session_.server_version(), session_.in_recovery()); !fit) {
        return fail(std::move(fit.error()));
    }
    if (options_.apply) {
        if (auto locked = lock(); !locked) {
            return fail(std::move(locked.error()));
        }
    }
    const auto found = look();
    if (!found) {
        return fail(found.error());
    }
    if (auto ours = judge(*found); !ours) {
        return fail(std::move(ours.error()));
    }
    if (!options_.apply) {
        return report_;
    }
    if (!found->version) {
        report_.created = true;
        if (auto marked = mark(0, true); !marked) {
            return fail(std::move(marked.error()));
        }
    }
    for (const SqlFile& file : options_.files) {
        if (auto applied = apply(file); !applied) {
            return fail(std::move(applied.error()));
        }
    }
    if (found->version != options_.version) {
        if (auto marked = mark(options_.version, false); !marked) {
            return fail(std::move(marked.error()));
        }
    }
    Parameters key;
    key.int8(kSchemaLock);
    static_cast<void>(session_.run(kUnlock, key)); // the end of the session gives it back as well
    logger().information("schema ready version=" + std::to_string(options_.version) +
                         " created=" + (report_.created ? "yes" : "no") +
                         " statements=" + std::to_string(report_.statements) +
                         " retries=" + std::to_string(report_.retries));
    return report_;
}

Result<void> Installer::lock() {
    Parameters key;
    key.int8(kSchemaLock);
    milliseconds waited{0};
    milliseconds log_at{0};
    for (;;) {
        const auto rows = session_.run(kTryLock, key);
        if (!rows) {
            return fail(rows.error());
        }
        if (Row(*rows, 0).boolean(0)) {
            return {};
        }
        if (waited >= options_.turn) {
            return fail(Errc::unavailable, "schema: another installer did not finish within " +
                                               std::to_string(options_.turn.count()) +
                                               " ms: " + lock_holder());
        }
        if (waited >= log_at) {
            logger().information("schema waits for another installer holder=\"" + lock_holder() +
                                 "\"");
            log_at = waited + kTurnLogEvery;
        }
        const milliseconds pause = std::min(kTurnPoll, options_.turn - waited);
        if (auto rested = session_.idle(pause); !rested) {
            return rested;
        }
        waited += pause;
    }
}

std::string Installer::lock_holder() {
    Parameters key;
    key.int8(kSchemaLock);
    const auto rows = session_.run(kHolder, key);
    if (!rows || rows->count() == 0) {
        return "nobody any more";
    }
    return std::string(Row(*rows, 0).text(0));
}

Result<Installer::Found> Installer::look() {
    const auto rows = session_.run(kLook, {});
    if (!rows) {
        return fail(rows.error());
    }
    Found found;
    if (rows->count() == 0) {
        return found;
    }
    Row row(*rows, 0);
    found.exists = true;
    found.empty = !row.boolean(1);
    if (!row.null(0)) {
        found.version = version_of(row.text(0));
    }
    return found;
}

Result<void> Installer::judge(const Found& found) const {
    if (found.exists && !found.empty && !found.version) {
        return fail(Errc::conflict,
                    "schema \"queen\" was not made by Queen broker (it bears no version mark): use "
                    "another database, or move that schema away");
    }
    const std::int64_t version = found.version.value_or(0);
    if (version > options_.version) {
        return fail(Errc::conflict, "schema \"queen\" is of version " + std::to_string(version) +
                                        " and this program knows only up to " +
                                        std::to_string(options_.version) +
                                        ": start the newer program");
    }
    if (!options_.apply && version < options_.version) {
        return fail(Errc::conflict, "schema \"queen\" is " +
                                        (version == 0 ? std::string("not installed")
                                                      : "of version " + std::to_string(version)) +
                                        ", this program needs version " +
                                        std::to_string(options_.version) +
                                        ", and applying the schema is switched off");
    }
    return {};
}

Result<void> Installer::mark(std::int64_t version, bool create) {
    SqlStep step;
    step.text = create ? "create schema if not exists queen;\n" : "";
    step.text +=
        "comment on schema queen is '" + std::string(kMark) + std::to_string(version) + "'";
    step.preview = "mark of version " + std::to_string(version);
    auto applied = apply(step);
    if (!applied) {
        applied.error().message = "schema: " + applied.error().message;
    }
    return applied;
}

Result<void> Installer::apply(const SqlFile& file) {
    for (const SqlStep& step : split_sql(file.text)) {
        if (auto applied = apply(step); !applied) {
            Error& error = applied.error();
            error.message = "schema: sql/" + std::string(file.name) + ", statement " +
                            std::to_string(step.ordinal) + " (" + step.preview +
                            "): " + error.message;
            if (!error.sqlstate.empty()) {
                error.message += " [" + error.sqlstate + "]";
            }
            if (worth_another_try(error)) {
                error.message +=
                    "; given up after " + std::to_string(options_.attempts) +
                    " attempts; in the way: " + (blockers_.empty() ? "nobody seen" : blockers_);
            }
            return applied;
        }
        ++report_.statements;
    }
    return {};
}

Result<void> Installer::apply(const SqlStep& step) {
    blockers_.clear();
    if (step.concurrent) { // waits by design, and a second attempt would find its own ruins
        auto built = session_.script("set lock_timeout = 0", options_.statement_timeout);
        if (built) {
            built = session_.script(step.text, options_.statement_timeout);
        }
        if (!built) {
            return fail(std::move(built.error()));
        }
        warn_invalid_indexes();
        return {};
    }
    for (int attempt = 1;; ++attempt) {
        auto applied = this->attempt(step);
        if (applied || !worth_another_try(applied.error()) || attempt >= options_.attempts) {
            return applied;
        }
        ++report_.retries;
        logger().information("schema statement waits for a lock statement=\"" + step.preview +
                             "\" attempt=" + std::to_string(attempt) + " blockers=\"" + blockers_ +
                             "\"");
        if (auto rested = session_.idle(pause_before(attempt + 1)); !rested) {
            return rested;
        }
    }
}

Result<void> Installer::attempt(const SqlStep& step) {
    const auto slice =
        session_.script("set lock_timeout = " + std::to_string(options_.lock_timeout.count()),
                        options_.statement_timeout);
    if (!slice) {
        return fail(slice.error());
    }
    const auto applied = session_.script(step.text, options_.statement_timeout,
                                         options_.lock_timeout / 2, [this] { watch_blockers(); });
    if (!applied) {
        return fail(applied.error());
    }
    return {};
}

/// Who is in the way of our session right now, seen from a second one.
void Installer::watch_blockers() {
    if (!watcher_) {
        watcher_ = std::make_unique<PgSession>(conninfo_, StatementLimits{});
    }
    if (!watcher_->check() && !watcher_->connect()) {
        return;
    }
    Parameters pid;
    pid.int4(session_.backend_pid());
    const auto rows = watcher_->run(kBlockers, pid);
    if (rows && !Row(*rows, 0).null(0)) {
        blockers_ = Row(*rows, 0).text(0);
    }
}

void Installer::warn_invalid_indexes() {
    const auto rows = session_.run(kInvalid, {});
    if (rows && !Row(*rows, 0).null(0)) {
        logger().warning("schema has invalid indexes names=\"" +
                         std::string(Row(*rows, 0).text(0)) + "\"");
    }
}

/// Doubles from the first pause to the longest, then takes between half and all of it, so that
/// installers and whoever they met do not meet again in step.
milliseconds Installer::pause_before(int attempt) {
    const int doublings = std::min(attempt - 2, 20);
    const milliseconds full =
        std::min(options_.pause_first * (std::int64_t{1} << doublings), options_.pause_longest);
    std::uniform_int_distribution<std::int64_t> jitter(full.count() / 2, full.count());
    return milliseconds{jitter(random_)};
}

} // namespace queen::store
