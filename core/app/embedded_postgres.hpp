// A private PostgreSQL cluster in the broker's data directory.
//
//   <data>/queend.lock     flock of the broker that owns the directory, holds its process number
//   <data>/postgres/       the cluster; queen.conf in it is ours and rewritten at each start
//   <data>/postgres.log    what the server said; cut at 32 MiB (one older copy, .1)
//   <data>/postgres.init-* a cluster being made; renamed when whole, removed when found at start
//   <data>/run/            the unix socket; of a long path, a private folder elsewhere
//
// States: start() finds either nothing (makes a cluster), a stopped cluster (starts it), a running
// one (adopts it: the broker was killed), or one whose postmaster was killed (waits until the last
// process has let go, then starts: PostgreSQL recovers by itself). From then on a thread of ours
// waits on the postmaster's pidfd; when it ends unasked, the thread starts it again: at once, and
// after 1 s doubling to 30 s while that fails or the server has not run for a minute. stop() ends
// thread and server.
//
// A postmaster.pid is never removed while any process may work on the cluster: two postmasters on
// one cluster corrupt it, and PostgreSQL's own check relies on that file.
#pragma once
#include "app/child_process.hpp"
#include "app/postgres_log.hpp"
#include "app/server_package.hpp"
#include "base/clock.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace queen::app {

/// Invariant: while the object lives, the lock file of its directory is held, so no second broker
/// works on the cluster.
/// Locks: `mutex_` guards process_ and last_error_; nothing but await()'s
/// predicate is called while it is held.
class EmbeddedPostgres {
public:
    struct Options {
        std::string data_directory;   ///< the broker's; made (with parents) when it is missing
        int max_connections = 100;    ///< connections of the broker and of tools beside it
        bool durable = true;          ///< false: fsync off, for tests only
        bool supervise = true;        ///< false: a dead server stays dead until restart()
        bool die_with_parent = false; ///< the server ends with the THREAD that called start()
        std::map<std::string, std::string> settings; ///< over ours, PostgreSQL's names, plain text
        std::string server_root = "/usr/lib/postgresql";
        std::chrono::seconds start_time{300}; ///< recovery after a crash included
        const Clock* clock = nullptr;         ///< nullptr: the machine's
    };

    enum class Shutdown {
        fast,      ///< ends sessions, writes a checkpoint
        immediate, ///< drops everything at once; the next start recovers
        kill,      ///< SIGKILL, for tests of recovery
    };

    /// Makes, starts or adopts the cluster and waits until it takes connections.
    /// @errors one line for a person, each naming the path at fault: unavailable (no server package
    ///         or too old, data of another version, full disk, no time), conflict (directory in
    ///         use, or not ours), invalid_argument (not a directory), internal (access, system
    ///         calls)
    /// @thread any; with die_with_parent one that outlives the server
    static Result<std::unique_ptr<EmbeddedPostgres>> start(Options options);

    ~EmbeddedPostgres(); ///< stop(Shutdown::fast), its error logged
    EmbeddedPostgres(const EmbeddedPostgres&) = delete;
    EmbeddedPostgres& operator=(const EmbeddedPostgres&) = delete;

    /// libpq keywords: the socket, user `queen`, and the database, `queen` unless named.
    std::string conninfo(const std::string& database = "queen") const;
    /// The postmaster's; 0 while there is none. @thread any
    pid_t pid() const;
    /// Waits until `done` holds for the postmaster (0: away) and trouble(), tried at each change.
    /// @return whether it holds within `time`. @thread any
    bool await(std::chrono::milliseconds time,
               const std::function<bool(pid_t, const std::string&)>& done) const;
    bool adopted() const noexcept { return adopted_; } ///< found running by start()
    int major() const noexcept { return server_.major; }
    /// Why the server is away, "" while it is up. @thread any
    std::string trouble() const;

    /// Ends the server (started and adopted alike) and its supervision. Idempotent.
    /// @errors timeout when it neither stops fast in 60 s nor at once in 10 s more
    /// @thread the owner's
    Result<void> stop(Shutdown mode);
    /// stop() when it still runs, then start anew, recovery included.
    /// @thread the owner's
    Result<void> restart(Shutdown mode);

private:
    explicit EmbeddedPostgres(Options options);

    Result<void> open();
    Result<void> make_cluster();
    Result<void> remove_leftovers();
    Result<bool> write_configuration() const;
    Result<void> find_or_launch(bool settings_changed);
    Result<bool> adopt(pid_t pid, SteadyTime deadline);
    Result<void> await_predecessor(SteadyTime deadline);
    Result<void> launch();
    Result<bool> launch_once(SteadyTime deadline);
    Result<void> make_database() const;
    Error start_failure(std::string reason) const;
    bool answers() const;

    static Result<void> end(Process& process, Shutdown mode);
    Result<void> end_current(Shutdown mode);
    void supervise();
    void revive();
    void start_supervision();
    void stop_supervision();
    bool pause(std::chrono::milliseconds time) const;
    void set_running(Process process);
    void set_away(std::string why);

    Options options_;
    const Clock& clock_;
    std::string data_;    ///< canonical
    std::string cluster_; ///< data_/postgres
    PostgresLog log_{""};
    std::string socket_folder_;
    Account account_;
    ServerPackage server_;
    UniqueFd lock_;
    bool adopted_ = false;

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_; ///< either of the two below
    std::optional<Process> process_;
    std::string last_error_;

    std::thread supervisor_;
    SteadyTime up_since_{};                     ///< supervisor's once it runs
    std::chrono::milliseconds revive_delay_{0}; ///< supervisor's; before the next start
    UniqueFd wake_;                             ///< eventfd: readable once supervision shall end
};

} // namespace queen::app
