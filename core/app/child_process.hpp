#pragma once
#include "base/result.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::app {

/// Owns a file descriptor; -1 is none.
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) noexcept : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd();
    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

/// The operating system user a child runs as.
struct Account {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    bool change = false; ///< false: the child stays what the broker is
};

/// Who PostgreSQL runs as: `postgres` when the broker is root (PostgreSQL refuses root), else the
/// broker's own user.
/// @errors unavailable when root has no user `postgres` to change to
Result<Account> database_account();

struct Command {
    std::vector<std::string> arguments;     ///< [0] is the path
    const Account* account = nullptr;       ///< nullptr: unchanged
    int output = -1;                        ///< becomes stdout and stderr; -1: /dev/null
    std::vector<std::string> environment{}; ///< NAME=value, beside the three that are always set
    /// Signal sent to the child when the THREAD that started it ends; 0: none. The kernel binds it
    /// to the thread, so start such children from one that lives as long as they shall.
    int death_signal = 0;
};

/// Starts `command` in a session of its own (a terminal's Ctrl-C does not reach it), in `/`, with
/// default signal handling, no inherited descriptor and an environment of LC_ALL=C, TZ=UTC, PATH
/// and what the command names: a PGDATA or PGOPTIONS of the caller cannot leak in.
/// @errors internal: fork failed, the user cannot be changed to, the file cannot be executed
/// @thread any
Result<pid_t> spawn(const Command& command);

struct Finished {
    int status = 0; ///< as of waitpid(2)
    std::string output;
    bool succeeded() const noexcept;
};

/// Runs `command` to its end and gives what it printed; kills it when the calling thread dies.
Result<Finished> run(Command command);

/// "status 1" or "signal 9", for sentences.
std::string describe_status(int status);

/// A process that may or may not be our child, held by a pidfd so that a reused number is never
/// signalled.
class Process {
public:
    /// @errors not_found when no such process exists
    static Result<Process> open(pid_t pid, bool child);

    pid_t pid() const noexcept { return pid_; }
    /// Readable once the process has ended (a zombie has ended).
    int descriptor() const noexcept { return pidfd_.get(); }
    void signal(int number) const noexcept;
    /// Waits at most `time` for its end; a child is reaped.
    /// @return whether it has ended
    bool wait(std::chrono::milliseconds time);
    /// Status of a reaped child; nullopt while it lives, or when it never was our child.
    std::optional<int> status() const noexcept { return status_; }

private:
    Process(pid_t pid, bool child, UniqueFd pidfd) noexcept;
    pid_t pid_;
    bool child_;
    UniqueFd pidfd_;
    std::optional<int> status_;
};

/// The first of `path` and its parents that `account` may not pass through; empty when it may pass
/// them all. Asked of the kernel as that user, so access lists count too.
Result<std::string> first_impassable(const std::string& path, const Account& account);

/// "what path: reason of errno".
Error system_error(std::string_view what, std::string_view path, int number);

} // namespace queen::app
