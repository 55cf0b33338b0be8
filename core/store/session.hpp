// store/session.hpp - what the executor and the statements ask of one database session. An
// interface, so that lanes, deadlines and outages are tested without a server; pg_session.hpp is
// the real one.
#pragma once
#include "base/result.hpp"
#include "store/parameters.hpp"
#include "store/rows.hpp"

namespace queen::store {

/// How long a statement may run (PL-2: the broker decides, not the server).
enum class StatementClass {
    normal,     ///< the configured time-out, 30 s by default
    seed,       ///< may seed cursors of a whole queue on first contact
    maintenance ///< removes or reads whole queues
};

/// A statement that is prepared once per link and then run by name. Objects are constants that live
/// as long as the program (statements.hpp).
struct Statement {
    const char* name;
    const char* sql;
    StatementClass limit = StatementClass::normal;
};

/// One link to the database. Used by one thread at a time.
class Session {
public:
    virtual ~Session() = default;

    /// Opens the link, or opens it anew: prepared statements of the old one are gone.
    /// @errors unavailable
    virtual Result<void> connect() = 0;
    /// As far as known without a look at the network: false before connect(), and after a statement
    /// or check() found the link broken.
    virtual bool open() const noexcept = 0;
    /// Looks at the socket without a round trip: finds links that the server closed while they were
    /// idle (PL-9). @return open()
    virtual bool check() = 0;
    /// Runs a statement to its end, its deadline or the loss of the link.
    /// @errors timeout (cancelled; the link is open() only if it is clean); whatever SQLSTATE maps
    /// to
    virtual Result<Rows> run(const Statement& statement, const Parameters& parameters) = 0;
    /// Declares the link unusable: open() is false until the next connect().
    virtual void quarantine() noexcept = 0;
    /// Makes a run() that is under way fail with shutting_down. For good: no later run() works.
    /// @thread any
    virtual void interrupt() noexcept = 0;
};

} // namespace queen::store
