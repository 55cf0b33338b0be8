#include "store/pg_session.hpp"

#include "store/canceller.hpp"
#include "store/conninfo.hpp"
#include "store/sqlstate.hpp"

#include <Poco/Data/PostgreSQL/SessionHandle.h>
#include <Poco/Exception.h>
#include <Poco/Logger.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

namespace queen::store {
namespace {

using Poco::Data::PostgreSQL::SessionHandle;
using std::chrono::milliseconds;

/// Run on each new link. The broker's deadlines replace those of the server, roles and databases
/// (PL-2). Durability is the contract's: a role that switched synchronous_commit off is overruled,
/// any stronger setting stays. jit costs more than it gives on statements of a millisecond.
constexpr const char* kSetUp = R"sql(
select pg_is_in_recovery(),
       (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
       set_config('statement_timeout', '0', false),
       set_config('lock_timeout', '0', false),
       case when current_setting('idle_session_timeout', true) is not null
            then set_config('idle_session_timeout', '0', false) end,
       case when current_setting('synchronous_commit') = 'off'
            then set_config('synchronous_commit', 'on', false) end,
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('client_min_messages', 'warning', false),
       set_config('jit', 'off', false)
)sql";
constexpr milliseconds kSetUpTime{5'000};

Poco::Logger& logger() {
    return Poco::Logger::get("queen.store");
}

/// What libpq says in several lines, as one: it goes into log lines and answers.
std::string one_line(const char* text) {
    std::string out;
    for (const char* c = text == nullptr ? "" : text; *c != '\0'; ++c) {
        const bool blank = *c == '\n' || *c == '\t' || *c == ' ';
        if (!blank) {
            out += *c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    if (!out.empty() && out.back() == ' ') {
        out.pop_back();
    }
    return out;
}

std::string field(const PGresult* result, int code) {
    return one_line(PQresultErrorField(result, code));
}

Error error_of(const PGresult* result, const PGconn* connection) {
    Error error;
    error.sqlstate = field(result, PG_DIAG_SQLSTATE);
    error.code = errc_of_sqlstate(error.sqlstate);
    error.message = field(result, PG_DIAG_MESSAGE_PRIMARY);
    if (error.message.empty()) { // libpq's own: the link broke
        error.message = one_line(PQresultErrorMessage(result));
    }
    if (error.message.empty()) {
        error.message = one_line(PQerrorMessage(connection));
    }
    if (const std::string detail = field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty()) {
        error.message += " (" + detail + ")";
    }
    return error;
}

struct ClearResult {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using OwnedResult = std::unique_ptr<PGresult, ClearResult>;

/// Poco 1.11 finishes a PGconn only while its link is up, so a broken one would stay for ever. We
/// finish it ourselves; the handle's shell, which still points there, must then never be destroyed.
void finish_broken(PGconn* connection, std::unique_ptr<SessionHandle> shell) {
    static std::mutex mutex;
    static auto* const shells = new std::vector<std::unique_ptr<SessionHandle>>; // never destroyed
    PQfinish(connection);
    const std::lock_guard lock(mutex);
    shells->push_back(std::move(shell));
}

int poll_timeout(SteadyTime now, SteadyTime deadline) {
    if (deadline == SteadyTime::max()) {
        return -1;
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - now);
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

SteadyTime after(SteadyTime now, milliseconds time) {
    return SteadyTime::max() - now <= time ? SteadyTime::max() : now + time;
}

} // namespace

StatementLimits StatementLimits::around(milliseconds statement_timeout) {
    StatementLimits limits;
    limits.normal = statement_timeout;
    limits.seed = std::max(limits.seed, statement_timeout);
    limits.maintenance = std::max(limits.maintenance, statement_timeout);
    return limits;
}

milliseconds StatementLimits::of(StatementClass limit) const noexcept {
    switch (limit) {
    case StatementClass::normal:
        return normal;
    case StatementClass::seed:
        return seed;
    case StatementClass::maintenance:
        return maintenance;
    }
    return normal;
}

PgSession::PgSession(std::string conninfo, StatementLimits limits,
                     std::shared_ptr<Canceller> canceller, const Clock& clock)
    : conninfo_(std::move(conninfo)), limits_(limits), canceller_(std::move(canceller)),
      clock_(clock), handle_(std::make_unique<SessionHandle>()),
      interrupt_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

PgSession::~PgSession() {
    if (PGconn* broken = connection(); broken != nullptr && PQstatus(broken) != CONNECTION_OK) {
        finish_broken(broken, std::move(handle_));
    }
    if (interrupt_fd_ >= 0) {
        ::close(interrupt_fd_);
    }
}

PGconn* PgSession::connection() const noexcept {
    return *handle_;
}

int PgSession::server_version() const noexcept {
    return open_ ? PQserverVersion(connection()) : 0;
}

void PgSession::interrupt() noexcept {
    const std::uint64_t one = 1;
    // A full counter is readable as well, so a failed write changes nothing.
    [[maybe_unused]] const ssize_t written = ::write(interrupt_fd_, &one, sizeof one);
}

Result<void> PgSession::connect() {
    open_ = false;
    prepared_.clear();
    pollfd interrupted{interrupt_fd_, POLLIN, 0};
    if (::poll(&interrupted, 1, 0) > 0) {
        return fail(Errc::shutting_down, "the broker stops");
    }
    if (connection() != nullptr) {
        handle_->reset();
    } else {
        // A failed first connect of Poco's handle leaks a descriptor; a ping does not.
        switch (PQping(conninfo_.c_str())) {
        case PQPING_OK:
            break;
        case PQPING_REJECT:
            return fail(Errc::unavailable, "the database refuses connections for now (" +
                                               describe_conninfo(conninfo_) + ")");
        case PQPING_NO_RESPONSE:
            return fail(Errc::unavailable,
                        "no answer from the database (" + describe_conninfo(conninfo_) + ")");
        case PQPING_NO_ATTEMPT:
            return fail(Errc::unavailable, "connection settings that libpq cannot use (" +
                                               describe_conninfo(conninfo_) + ")");
        }
        try {
            handle_->connect(conninfo_);
        } catch (const Poco::Exception& refused) {
            if (connection() == nullptr) {
                return fail(Errc::unavailable, "database: " + refused.displayText());
            }
        }
    }
    PGconn* const link = connection();
    if (PQstatus(link) != CONNECTION_OK) {
        return fail(Errc::unavailable, "database: " + one_line(PQerrorMessage(link)));
    }
    if (PQsetnonblocking(link, 1) != 0) {
        return fail(Errc::unavailable, "database: the link cannot be made non-blocking");
    }
    PQsetNoticeReceiver(
        link,
        [](void* self, const PGresult* notice) {
            const std::string severity = field(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
            const std::string text = "notice severity=" + severity +
                                     " sqlstate=" + field(notice, PG_DIAG_SQLSTATE) + " text=\"" +
                                     field(notice, PG_DIAG_MESSAGE_PRIMARY) + "\"";
            if (severity == "FATAL" || severity == "PANIC") {
                static_cast<PgSession*>(self)->quarantine(); // said good-bye while idle
                logger().information(text);
            } else if (severity == "WARNING") {
                logger().warning(text);
            } else {
                logger().debug(text);
            }
        },
        this);
    backend_pid_ = PQbackendPID(link);
    open_ = true;
    if (auto ready = set_up(); !ready) {
        quarantine();
        ready.error().code = Errc::unavailable;
        return ready;
    }
    return {};
}

Result<void> PgSession::set_up() {
    if (PQsendQueryParams(connection(), kSetUp, 0, nullptr, nullptr, nullptr, nullptr, 1) == 0) {
        return fail(lost_error());
    }
    const auto rows = finish(clock_.now() + kSetUpTime);
    if (!rows) {
        return fail(rows.error());
    }
    Row row(*rows, 0);
    in_recovery_ = row.boolean(0);
    server_started_ = row.integer(1);
    return row.status();
}

bool PgSession::check() {
    if (!open_) {
        return false;
    }
    PGconn* const link = connection();
    pollfd look{PQsocket(link), POLLIN, 0};
    if (::poll(&look, 1, 0) == 0) {
        return true;
    }
    // Readable while idle: a notice, a changed parameter, or the end. The last words of a server
    // come before its FIN: the second read finds the end, the parse finds the words (see
    // connect()).
    const bool readable = PQconsumeInput(link) == 1 && PQconsumeInput(link) == 1;
    static_cast<void>(PQisBusy(link));
    if (!readable || PQstatus(link) != CONNECTION_OK) {
        quarantine();
    }
    return open_;
}

Error PgSession::lost_error() {
    quarantine();
    return Error{Errc::transient,
                 "the link to the database broke: " + one_line(PQerrorMessage(connection())),
                 {}};
}

PgSession::Wait PgSession::wait_until(SteadyTime deadline) {
    PGconn* const link = connection();
    for (;;) {
        const int unsent = PQflush(link);
        if (unsent < 0) {
            return Wait::lost;
        }
        if (unsent == 0 && PQisBusy(link) == 0) {
            return Wait::ready;
        }
        pollfd ends[2]{{PQsocket(link), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0},
                       {interrupt_fd_, POLLIN, 0}};
        const SteadyTime now = clock_.now();
        const int happened = ::poll(ends, 2, poll_timeout(now, deadline));
        if (happened == 0 && clock_.now() >= deadline) {
            return Wait::late;
        }
        if (happened > 0 && ends[1].revents != 0) {
            return Wait::interrupted;
        }
        if (happened > 0 && ends[0].revents != 0 && PQconsumeInput(link) == 0) {
            return Wait::lost;
        }
    }
}

Result<Rows> PgSession::finish(SteadyTime deadline) {
    PGconn* const link = connection();
    OwnedResult last;
    std::optional<Error> error;
    bool cancelled = false;
    for (;;) {
        switch (wait_until(deadline)) {
        case Wait::ready:
            break;
        case Wait::lost:
            return fail(error ? std::move(*error) : lost_error());
        case Wait::interrupted:
            quarantine();
            return fail(Errc::shutting_down, "the broker stops");
        case Wait::late: {
            const auto told = cancelled || !canceller_
                                  ? Result<void>(fail(Errc::timeout, "no end after the cancel"))
                                  : canceller_->cancel(backend_pid_, server_started_);
            if (!told) {
                quarantine();
                return fail(Errc::timeout,
                            "the statement ran over its time; its link was dropped (" +
                                told.error().message + ")");
            }
            cancelled = true;
            deadline = clock_.now() + limits_.cancel_grace;
            continue;
        }
        }
        OwnedResult result(PQgetResult(link));
        if (!result) {
            break;
        }
        const ExecStatusType status = PQresultStatus(result.get());
        if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
            error = error_of(result.get(), link);
            if (ends_the_link(error->sqlstate) || error->sqlstate.empty()) {
                quarantine();
            }
        } else {
            last = std::move(result);
        }
    }
    if (PQstatus(link) != CONNECTION_OK) {
        quarantine();
    }
    if (error) {
        if (cancelled && error->code == Errc::timeout) {
            error->message = "the statement ran over its time and was cancelled";
        }
        return fail(std::move(*error));
    }
    return Rows(last.release());
}

Result<void> PgSession::prepare(const Statement& statement, const Parameters& parameters,
                                SteadyTime deadline) {
    if (prepared_.contains(statement.name)) {
        return {};
    }
    if (PQsendPrepare(connection(), statement.name, statement.sql, parameters.size(),
                      parameters.types()) == 0) {
        return fail(lost_error());
    }
    auto prepared = finish(deadline);
    if (!prepared) {
        return fail(std::move(prepared.error()));
    }
    prepared_.insert(statement.name);
    return {};
}

Result<Rows> PgSession::run_prepared(const Statement& statement, const Parameters& parameters,
                                     SteadyTime deadline) {
    if (auto ready = prepare(statement, parameters, deadline); !ready) {
        return fail(std::move(ready.error()));
    }
    if (PQsendQueryPrepared(connection(), statement.name, parameters.size(), parameters.values(),
                            parameters.lengths(), parameters.formats(), 1) == 0) {
        return fail(lost_error());
    }
    return finish(deadline);
}

Result<Rows> PgSession::run(const Statement& statement, const Parameters& parameters) {
    if (!open_) {
        return fail(Errc::transient, "the link to the database is closed");
    }
    const SteadyTime deadline = after(clock_.now(), limits_.of(statement.limit));
    auto rows = run_prepared(statement, parameters, deadline);
    if (!rows && open_ && (rows.error().sqlstate == "26000" || rows.error().sqlstate == "0A000")) {
        // The prepared form is gone (DISCARD), or another broker's installer changed the result of
        // a function. The server refused before it ran anything, so running again is safe.
        prepared_.erase(statement.name);
        const std::string forget = std::string("deallocate ") + statement.name;
        if (rows.error().sqlstate == "26000" || script(forget, limits_.normal)) {
            rows = run_prepared(statement, parameters, deadline);
        }
    }
    if (!rows && rows.error().code == Errc::timeout &&
        (!canceller_ || canceller_->worth_a_line(statement.name))) {
        logger().warning("statement timed out name=" + std::string(statement.name) +
                         " limit_ms=" + std::to_string(limits_.of(statement.limit).count()) +
                         " link=" + (open_ ? "kept" : "dropped"));
    }
    if (open_ && PQtransactionStatus(connection()) != PQTRANS_IDLE) {
        // No statement of ours leaves a transaction open; the next user must not see it.
        quarantine();
    }
    return rows;
}

Result<Rows> PgSession::script(const std::string& sql, milliseconds timeout,
                               milliseconds watch_after, const std::function<void()>& watch) {
    if (!open_) {
        return fail(Errc::transient, "the link to the database is closed");
    }
    if (PQsendQuery(connection(), sql.c_str()) == 0) {
        return fail(lost_error());
    }
    const SteadyTime start = clock_.now();
    if (watch && wait_until(after(start, std::min(watch_after, timeout))) == Wait::late) {
        watch();
    }
    return finish(after(start, timeout));
}

Result<void> PgSession::idle(milliseconds time) {
    const SteadyTime end = after(clock_.now(), time);
    for (;;) {
        pollfd ends[2]{{open_ ? PQsocket(connection()) : -1, POLLIN, 0},
                       {interrupt_fd_, POLLIN, 0}};
        const SteadyTime now = clock_.now();
        if (now >= end) {
            return {};
        }
        ::poll(ends, 2, poll_timeout(now, end));
        if (ends[1].revents != 0) {
            return fail(Errc::shutting_down, "the broker stops");
        }
        if (ends[0].revents != 0 && !check()) {
            return fail(lost_error());
        }
    }
}

} // namespace queen::store
