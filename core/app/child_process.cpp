#include "app/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

extern "C" { // glibc 2.36 forgot to say so in the header itself
#include <sys/pidfd.h>
}

namespace queen::app {

namespace {

constexpr std::array kEnvironment{
    "LC_ALL=C", "TZ=UTC", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};

/// Where a child stood when it failed before exec; sent through a pipe with the errno.
enum class Step : int { user, output, execute };

struct Failure {
    Step step;
    int number;
};

// Async-signal-safe: runs between fork and exec, where another thread may have held any lock.
bool become(const Account& account) noexcept {
    return !account.change || (setgroups(account.groups.size(), account.groups.data()) == 0 &&
                               setgid(account.gid) == 0 && setuid(account.uid) == 0);
}

void default_signals() noexcept {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) {
        sigaction(number, &standard, nullptr); // the two that cannot be set report an error
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void report(int pipe, Step step) noexcept {
    const Failure failure{step, errno};
    // Nobody to tell when this write fails; the parent then sees a pipe closed without a word,
    // takes the child for started and finds it dead.
    [[maybe_unused]] const ssize_t ignored = write(pipe, &failure, sizeof failure);
    _exit(127);
}

[[noreturn]] void run_child(const Command& command, char* const* argv, char* const* envp,
                            int null_device, int pipe, pid_t parent) noexcept {
    setsid();
    default_signals();
    if (command.account != nullptr && !become(*command.account)) {
        report(pipe, Step::user);
    }
    // After the change of user, which clears it; and the parent may have died just before.
    if (command.death_signal != 0) {
        prctl(PR_SET_PDEATHSIG, command.death_signal);
        if (getppid() != parent) {
            _exit(127);
        }
    }
    const int output = command.output >= 0 ? command.output : null_device;
    if (dup2(null_device, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || chdir("/") != 0) {
        report(pipe, Step::output);
    }
    dup3(pipe, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
    umask(077);
    execve(argv[0], argv, envp);
    report(3, Step::execute);
}

} // namespace

UniqueFd::~UniqueFd() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

Error system_error(std::string_view what, std::string_view path, int number) {
    std::string text(what);
    if (!path.empty()) {
        text.append(" ").append(path);
    }
    return {number == ENOSPC ? Errc::unavailable : Errc::internal,
            text + ": " + std::generic_category().message(number),
            {}};
}

Result<Account> database_account() {
    if (geteuid() != 0) {
        return Account{geteuid(), getegid(), {}, false};
    }
    struct passwd entry {};
    struct passwd* found = nullptr;
    std::array<char, 16'384> buffer{};
    if (getpwnam_r("postgres", &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr) {
        return fail(Errc::unavailable,
                    "there is no user 'postgres', and PostgreSQL does not run as root: install "
                    "the package postgresql-15, or start the broker as another user");
    }
    Account account{found->pw_uid, found->pw_gid, std::vector<gid_t>(64), true};
    int count = static_cast<int>(account.groups.size());
    if (getgrouplist("postgres", account.gid, account.groups.data(), &count) < 0) {
        account.groups.resize(static_cast<std::size_t>(count));
        getgrouplist("postgres", account.gid, account.groups.data(), &count);
    }
    account.groups.resize(static_cast<std::size_t>(count));
    return account;
}

Result<pid_t> spawn(const Command& command) {
    std::vector<char*> argv;
    for (const std::string& argument : command.arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (const char* fixed : kEnvironment) {
        envp.push_back(const_cast<char*>(fixed));
    }
    for (const std::string& variable : command.environment) {
        envp.push_back(const_cast<char*>(variable.c_str()));
    }
    envp.push_back(nullptr);

    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail(system_error("cannot make a pipe", "", errno));
    }
    UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null_device) {
        return fail(system_error("cannot open", "/dev/null", errno));
    }
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
        return fail(system_error("cannot start", command.arguments.front(), errno));
    }
    if (pid == 0) {
        run_child(command, argv.data(), envp.data(), null_device.get(), write_end.get(), parent);
    }
    write_end = UniqueFd();
    Failure failure{};
    ssize_t got = 0;
    do {
        got = read(read_end.get(), &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof failure) {
        return pid; // closed by exec
    }
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    switch (failure.step) {
    case Step::user:
        return fail(system_error("cannot change to user 'postgres' for", command.arguments.front(),
                                 failure.number));
    case Step::output:
        return fail(
            system_error("cannot set up output of", command.arguments.front(), failure.number));
    case Step::execute:
        break;
    }
    return fail(system_error("cannot execute", command.arguments.front(), failure.number));
}

bool Finished::succeeded() const noexcept {
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Result<Finished> run(Command command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail(system_error("cannot make a pipe", "", errno));
    }
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    command.output = write_end.get();
    command.death_signal = SIGKILL;
    const Result<pid_t> pid = spawn(command);
    write_end = UniqueFd();
    if (!pid) {
        return fail(pid.error());
    }
    Finished finished;
    std::array<char, 4096> buffer{};
    while (true) {
        const ssize_t got = read(read_end.get(), buffer.data(), buffer.size());
        if (got > 0) {
            finished.output.append(buffer.data(), static_cast<std::size_t>(got));
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    while (waitpid(*pid, &finished.status, 0) < 0 && errno == EINTR) {
    }
    return finished;
}

std::string describe_status(int status) {
    return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "status " + std::to_string(WEXITSTATUS(status));
}

Process::Process(pid_t pid, bool child, UniqueFd pidfd) noexcept
    : pid_(pid), child_(child), pidfd_(std::move(pidfd)) {}

Result<Process> Process::open(pid_t pid, bool child) {
    UniqueFd pidfd(pidfd_open(pid, 0)); // close-on-exec by definition
    if (!pidfd) {
        const int number = errno;
        Error error = system_error("cannot watch process", std::to_string(pid), number);
        if (number == ESRCH) {
            error.code = Errc::not_found;
        }
        return fail(std::move(error));
    }
    return Process(pid, child, std::move(pidfd));
}

void Process::signal(int number) const noexcept {
    if (!status_) {
        pidfd_send_signal(pidfd_.get(), number, nullptr, 0); // fails only when it has ended
    }
}

bool Process::wait(std::chrono::milliseconds time) {
    if (status_) {
        return true;
    }
    struct pollfd watched {
        pidfd_.get(), POLLIN, 0
    };
    if (poll(&watched, 1, static_cast<int>(time.count())) <= 0) {
        return false;
    }
    if (child_) {
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            status_ = status;
        }
    }
    return true;
}

Result<std::string> first_impassable(const std::string& path, const Account& account) {
    std::vector<std::string> parts;
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        parts.push_back(path.substr(0, slash));
    }
    parts.push_back(path);

    const pid_t pid = fork();
    if (pid < 0) {
        return fail(system_error("cannot check access to", path, errno));
    }
    if (pid == 0) {
        if (!become(account)) {
            _exit(255);
        }
        for (std::size_t i = 0; i < parts.size() && i < 250; ++i) {
            if (access(parts[i].c_str(), X_OK) != 0) {
                _exit(static_cast<int>(i) + 1);
            }
        }
        _exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 255) {
        return fail(Errc::internal, "cannot check access to " + path + " as the database's user");
    }
    const auto index = static_cast<std::size_t>(WEXITSTATUS(status));
    return index == 0 ? std::string() : parts[index - 1];
}

} // namespace queen::app
