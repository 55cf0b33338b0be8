#include "app/data_directory.hpp"

#include "base/text.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace queen::app {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLockRetry{10};
constexpr int kLockTries = 500; // 5 s; a fork reaches its exec in far less

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Makes each missing part of `path`. Under root the directories are passable by everyone, so that
/// the database's user reaches its cluster; what is private in them is closed itself.
Result<void> make_directories(const fs::path& path, const Account& account) {
    fs::path parent;
    for (const fs::path& part : path) {
        parent /= part;
        if (mkdir(parent.c_str(), account.change ? 0711 : 0700) == 0) {
            if (account.change) {
                chmod(parent.c_str(), 0711); // whatever the umask
            }
            continue;
        }
        const int error = errno; // why it cannot be made: stat only says that it is not there
        struct stat info {};
        if (error != EEXIST && stat(parent.c_str(), &info) != 0) {
            const auto what =
                path == parent ? path.string() : path.string() + " at " + parent.string();
            return fail(system_error("cannot make data directory", what, error));
        }
    }
    return {};
}

bool is_zombie(pid_t pid) {
    const std::string text = slurp("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t close = text.rfind(')'); // the name before it may hold anything
    return close != std::string::npos && close + 2 < text.size() && text[close + 2] == 'Z';
}

/// The command line tells a postmaster even where another user's /proc/N/cwd is closed to us:
/// the server's children rewrite theirs, it keeps the one we gave it.
bool is_postmaster_of(pid_t pid, const std::string& cluster) {
    const std::string line = slurp("/proc/" + std::to_string(pid) + "/cmdline");
    return line.find("/postgres") != std::string::npos &&
           line.find(std::string("-D") + '\0' + cluster + '\0') != std::string::npos;
}

/// Every process of PostgreSQL works in its cluster's folder. At its end it lets go of memory and
/// files before it lets go of that, so one that is not seen here can do no more harm; a zombie,
/// which its parent may not collect for long, is not seen.
/// @return nullopt when a process of the database's user could not be looked at
std::optional<bool> anyone_works_in(const std::string& cluster, const Account& account) {
    bool blind = false;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
        struct stat info {};
        if (!parse_int(entry.path().filename().string()) ||
            stat(entry.path().c_str(), &info) != 0 || info.st_uid != account.uid) {
            continue;
        }
        std::error_code problem;
        const fs::path cwd = fs::read_symlink(entry.path() / "cwd", problem);
        if (!problem && cwd == cluster) {
            return true;
        }
        blind = blind || problem == std::errc::permission_denied;
    }
    return error || blind ? std::nullopt : std::optional<bool>(false);
}

} // namespace

Result<std::string> open_data_directory(const std::string& path, const Account& account) {
    std::error_code error;
    const fs::path wanted = fs::absolute(path, error).lexically_normal();
    struct stat info {};
    if (stat(wanted.c_str(), &info) != 0) {
        if (errno != ENOENT) {
            const int number = errno;
            if (number == ENOTDIR) {
                return fail(Errc::invalid_argument, "data directory " + wanted.string() +
                                                        " lies below something that is not a "
                                                        "directory");
            }
            return fail(system_error("cannot open data directory", wanted.string(), number));
        }
        if (auto made = make_directories(wanted, account); !made) {
            return fail(made.error());
        }
    } else if (!S_ISDIR(info.st_mode)) {
        return fail(Errc::invalid_argument,
                    "data directory " + wanted.string() + " is not a directory");
    }
    std::string canonical = fs::canonical(wanted, error).string();
    if (error) {
        return fail(system_error("cannot open data directory", wanted.string(), error.value()));
    }
    if (canonical.size() > 1 && canonical.back() == '/') {
        canonical.pop_back();
    }
    const auto bar = first_impassable(canonical, account);
    if (!bar) {
        return fail(bar.error());
    }
    if (!bar->empty()) {
        return fail(Errc::internal,
                    "data directory " + canonical + ": " +
                        (account.change ? "user 'postgres', who runs the database," : "this user") +
                        " may not enter " + *bar + ": Permission denied");
    }
    if (access(canonical.c_str(), R_OK | W_OK) != 0) {
        return fail(system_error("cannot write to data directory", canonical, errno));
    }
    return canonical;
}

Result<UniqueFd> lock_data_directory(const std::string& path) {
    const std::string name = path + "/queend.lock";
    UniqueFd lock(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) {
        return fail(system_error("cannot open", name, errno));
    }
    for (int tries = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
        if (errno != EWOULDBLOCK) {
            return fail(system_error("cannot lock", name, errno));
        }
        std::string text = slurp(name);
        text.erase(text.find_last_not_of('\n') + 1);
        const auto owner = parse_int(text);
        const bool alive = !owner || kill(static_cast<pid_t>(*owner), 0) == 0 || errno != ESRCH;
        if (alive || tries >= kLockTries) {
            return fail(Errc::conflict, "data directory " + path + " is in use by process " +
                                            (text.empty() ? "unknown" : text));
        }
        // The owner was killed while a child of it stood between fork and exec, which inherits the
        // lock for that moment; the kernel has no event for its end.
        poll(nullptr, 0, static_cast<int>(kLockRetry.count()));
    }
    const std::string text = std::to_string(getpid()) + "\n";
    if (ftruncate(lock.get(), 0) != 0 ||
        pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        return fail(system_error("cannot write", name, errno));
    }
    return lock;
}

Result<void> replace_file(const std::string& path, const std::string& text, const Account& owner) {
    const std::string fresh = path + ".new";
    const UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) {
        return fail(system_error("cannot write", fresh, errno));
    }
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t put = write(file.get(), text.data() + done, text.size() - done);
        if (put < 0 && errno != EINTR) {
            return fail(system_error("cannot write", fresh, errno));
        }
        done += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
    if ((owner.change && fchown(file.get(), owner.uid, owner.gid) != 0) || fsync(file.get()) != 0 ||
        rename(fresh.c_str(), path.c_str()) != 0) {
        return fail(system_error("cannot write", path, errno));
    }
    return {};
}

std::optional<PostmasterFile> read_postmaster_file(const std::string& cluster) {
    std::istringstream lines(slurp(cluster + "/postmaster.pid"));
    std::string line;
    PostmasterFile file;
    // Lines: process, data directory, start time, port, socket folder, address, memory key, status.
    for (int number = 1; std::getline(lines, line); ++number) {
        if (number == 1) {
            const auto pid = parse_int(line);
            if (!pid || *pid <= 1) {
                return std::nullopt;
            }
            file.pid = static_cast<pid_t>(*pid);
        } else if (number == 5) {
            file.socket_folder = line;
        }
    }
    return file.pid > 0 ? std::optional(file) : std::nullopt;
}

Liveness cluster_liveness(const std::string& cluster, pid_t postmaster, const Account& account) {
    const bool exists = kill(postmaster, 0) == 0 || errno == EPERM;
    const bool zombie = exists && is_zombie(postmaster);
    if (exists && !zombie && is_postmaster_of(postmaster, cluster)) {
        return Liveness::postmaster;
    }
    if (const auto others = anyone_works_in(cluster, account); others) {
        return *others ? Liveness::dying : Liveness::none;
    }
    if (!exists) {
        return Liveness::none;
    }
    return zombie ? Liveness::dying : Liveness::unknown;
}

} // namespace queen::app
