#include "app/embedded_postgres.hpp"

#include "app/data_directory.hpp"
#include "app/postgres_settings.hpp"
#include "app/socket_folder.hpp"

#include <Poco/Logger.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace queen::app {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr std::uintmax_t kHardlyAnySpace = 1U << 20U; // a cluster needs some 16 MiB a WAL file
constexpr auto kPoll = 20ms;                          // a start takes 0.4 s
constexpr auto kPredecessorTime = 30s;                // guess: a backend in a long system call
constexpr auto kLeftoverTime = 10s;
constexpr auto kSilence = 10s;    // a live server whose socket is gone
constexpr auto kProvenTime = 60s; // guess: one that ran this long is not in a loop of crashes
constexpr auto kFastTime = 60s;
constexpr auto kImmediateTime = 10s;

Poco::Logger& logger() {
    return Poco::Logger::get("postgres");
}

std::string conninfo_value(std::string_view value) {
    std::string text = "'";
    for (const char c : value) {
        if (c == '\'' || c == '\\') {
            text += '\\';
        }
        text += c;
    }
    return text + "'";
}

bool out_of_space(const std::string& folder) {
    struct statvfs info {};
    return statvfs(folder.c_str(), &info) == 0 &&
           static_cast<std::uintmax_t>(info.f_bavail) * info.f_frsize < kHardlyAnySpace;
}

} // namespace

Result<std::unique_ptr<EmbeddedPostgres>> EmbeddedPostgres::start(Options options) {
    std::unique_ptr<EmbeddedPostgres> server(new EmbeddedPostgres(std::move(options)));
    if (auto opened = server->open(); !opened) {
        return fail(opened.error());
    }
    return server;
}

EmbeddedPostgres::EmbeddedPostgres(Options options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : SystemClock::instance()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

EmbeddedPostgres::~EmbeddedPostgres() {
    if (auto stopped = stop(Shutdown::fast); !stopped) {
        logger().error(stopped.error().message);
    }
}

// --- opening ----------------------------------------------------------------------------------

Result<void> EmbeddedPostgres::open() {
    auto account = database_account();
    if (!account) {
        return fail(account.error());
    }
    account_ = std::move(*account);
    auto data = open_data_directory(options_.data_directory, account_);
    if (!data) {
        return fail(data.error());
    }
    data_ = std::move(*data);
    cluster_ = data_ + "/postgres";
    log_ = PostgresLog(data_ + "/postgres.log");
    auto lock = lock_data_directory(data_);
    if (!lock) {
        return fail(lock.error());
    }
    lock_ = std::move(*lock);

    std::optional<int> major;
    if (std::ifstream version(cluster_ + "/PG_VERSION"); version) {
        int number = 0;
        version >> number;
        major = number;
    } else if (std::error_code error; fs::exists(cluster_, error)) {
        return fail(Errc::conflict,
                    cluster_ + " exists and is no PostgreSQL cluster: move it away");
    }
    auto server = find_server(options_.server_root, major);
    if (!server) {
        Error error = server.error();
        error.message = "data directory " + data_ + ": " + error.message;
        return fail(std::move(error));
    }
    server_ = std::move(*server);
    if (!major) {
        if (auto made = make_cluster(); !made) {
            return made;
        }
    }
    socket_folder_ = socket_folder_for(data_, account_);
    if (auto opened = open_socket_folder(socket_folder_, account_); !opened) {
        return opened;
    }
    const auto changed = write_configuration();
    if (!changed) {
        return fail(changed.error());
    }
    if (auto running = find_or_launch(*changed); !running) {
        return running;
    }
    if (auto made = make_database(); !made) {
        return made;
    }
    start_supervision();
    return {};
}

Result<void> EmbeddedPostgres::make_cluster() {
    if (auto removed = remove_leftovers(); !removed) {
        return removed;
    }
    const std::string fresh = data_ + "/postgres.init-" + std::to_string(getpid());
    if (mkdir(fresh.c_str(), 0700) != 0 ||
        (account_.change && chown(fresh.c_str(), account_.uid, account_.gid) != 0)) {
        return fail(system_error("cannot make", fresh, errno));
    }
    logger().information("making a PostgreSQL " + std::to_string(server_.major) + " cluster in " +
                         cluster_);
    std::vector<std::string> arguments{
        server_.bin + "/initdb", "--pgdata=" + fresh, "--username=queen", "--auth=trust",
        "--encoding=UTF8",       "--locale=C",        "--data-checksums"};
    if (!options_.durable) {
        arguments.emplace_back("--no-sync");
    }
    const auto finished = run({.arguments = arguments, .account = &account_});
    std::string reason;
    if (!finished) {
        reason = finished.error().message;
    } else if (!finished->succeeded()) {
        reason = telling_line(finished->output);
        if (reason.empty()) {
            reason = "initdb ended with " + describe_status(finished->status);
        }
    } else {
        std::ofstream conf(fresh + "/postgresql.conf", std::ios::app);
        conf << "\n# Written by the broker at each start; local.conf is yours and wins.\n"
             << "include 'queen.conf'\ninclude_if_exists 'local.conf'\n";
        conf.close();
        if (!conf) {
            reason = "cannot write " + fresh + "/postgresql.conf";
        } else if (rename(fresh.c_str(), cluster_.c_str()) != 0) {
            reason = system_error("cannot make", cluster_, errno).message;
        }
    }
    if (reason.empty()) {
        return {};
    }
    Error failure = start_failure(std::move(reason)); // looks at the space before it is given back
    std::error_code ignored;                          // what stays is removed by the next start
    fs::remove_all(fresh, ignored);
    return fail(std::move(failure));
}

/// Removes clusters whose making was interrupted. The interrupted initdb's helper may still write
/// for a moment, so that a first removal can fail.
Result<void> EmbeddedPostgres::remove_leftovers() {
    const SteadyTime deadline = clock_.now() + kLeftoverTime;
    while (true) {
        std::error_code problem;
        std::vector<fs::path> leftovers;
        for (const auto& entry : fs::directory_iterator(data_, problem)) {
            if (entry.path().filename().string().starts_with("postgres.init-")) {
                leftovers.push_back(entry.path());
            }
        }
        for (const fs::path& leftover : leftovers) {
            if (!problem) {
                fs::remove_all(leftover, problem);
            }
        }
        if (!problem) {
            return {};
        }
        if (clock_.now() >= deadline) {
            return fail(
                system_error("cannot remove an interrupted cluster in", data_, problem.value()));
        }
        if (pause(kPoll)) {
            return fail(Errc::shutting_down, "the broker stops");
        }
    }
}

Result<bool> EmbeddedPostgres::write_configuration() const {
    const std::string path = cluster_ + "/queen.conf";
    const std::string text = postgres_configuration(options_.max_connections, options_.durable,
                                                    usable_memory(), options_.settings);
    std::ifstream file(path, std::ios::binary);
    std::ostringstream old;
    old << file.rdbuf();
    if (file && old.str() == text) {
        return false;
    }
    if (auto written = replace_file(path, text, account_); !written) {
        return fail(written.error());
    }
    return true;
}

Result<void> EmbeddedPostgres::find_or_launch(bool settings_changed) {
    const SteadyTime deadline = clock_.now() + options_.start_time;
    const auto file = read_postmaster_file(cluster_);
    if (!file || cluster_liveness(cluster_, file->pid, account_) != Liveness::postmaster) {
        return launch();
    }
    const auto adopted = adopt(file->pid, deadline);
    if (!adopted) {
        return fail(adopted.error());
    }
    if (!*adopted) {
        return launch();
    }
    if (settings_changed) {
        logger().information("restarting PostgreSQL for new settings");
        if (auto ended = end_current(Shutdown::fast); !ended) {
            return ended;
        }
        return launch();
    }
    adopted_ = true;
    logger().information("adopted PostgreSQL process " + std::to_string(file->pid));
    return {};
}

/// @return false when the process went away, or had to be ended, and a start is due
Result<bool> EmbeddedPostgres::adopt(pid_t pid, SteadyTime deadline) {
    auto process = Process::open(pid, false);
    if (!process) {
        return process.error().code == Errc::not_found ? Result<bool>(false)
                                                       : fail(process.error());
    }
    const std::string own_folder = socket_folder_;
    const SteadyTime silent_until = clock_.now() + kSilence;
    while (!process->wait(kPoll)) {
        const auto file = read_postmaster_file(cluster_);
        if (file && file->pid == pid && !file->socket_folder.empty()) {
            socket_folder_ = file->socket_folder;
        }
        if (answers()) {
            set_running(std::move(*process));
            return true;
        }
        const SteadyTime now = clock_.now();
        const bool silent =
            now >= silent_until && PQping(conninfo("postgres").c_str()) == PQPING_NO_RESPONSE;
        if (silent || now >= deadline) {
            logger().warning("PostgreSQL process " + std::to_string(pid) +
                             " does not answer; restarting it");
            if (auto ended = end(*process, Shutdown::fast); !ended) {
                return fail(ended.error());
            }
        }
    }
    socket_folder_ = own_folder;
    return false;
}

Result<void> EmbeddedPostgres::make_database() const {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> session(
        PQconnectdb(conninfo("postgres").c_str()), PQfinish);
    const auto run_sql = [&](const char* sql) {
        return std::unique_ptr<PGresult, decltype(&PQclear)>(PQexec(session.get(), sql), PQclear);
    };
    if (PQstatus(session.get()) == CONNECTION_OK) {
        const auto found = run_sql("SELECT 1 FROM pg_database WHERE datname = 'queen'");
        if (PQresultStatus(found.get()) == PGRES_TUPLES_OK &&
            (PQntuples(found.get()) == 1 ||
             PQresultStatus(run_sql("CREATE DATABASE queen").get()) == PGRES_COMMAND_OK)) {
            return {};
        }
    }
    std::string reason = PQerrorMessage(session.get());
    reason.erase(reason.find_last_not_of('\n') + 1);
    return fail(start_failure(std::move(reason)));
}

// --- starting ---------------------------------------------------------------------------------

/// Waits until nobody works on the cluster any more, and clears its lock files then: the number in
/// them may still be taken, by a zombie that is not collected yet, or by another process since (a
/// reboot, a container's restart), and PostgreSQL would take that for a running server.
Result<void> EmbeddedPostgres::await_predecessor(SteadyTime deadline) {
    while (const auto file = read_postmaster_file(cluster_)) {
        if (cluster_liveness(cluster_, file->pid, account_) == Liveness::none) {
            break;
        }
        if (clock_.now() >= deadline) {
            return fail(Errc::unavailable,
                        "data directory " + data_ + ": PostgreSQL process " +
                            std::to_string(file->pid) +
                            " of an earlier run has not gone away; end it, or when that number "
                            "belongs to another program remove " +
                            cluster_ + "/postmaster.pid");
        }
        if (pause(kPoll)) {
            return fail(Errc::shutting_down, "the broker stops");
        }
    }
    std::error_code gone;
    fs::remove(cluster_ + "/postmaster.pid", gone);
    fs::remove(socket_folder_ + "/.s.PGSQL.5432.lock", gone);
    return {};
}

Result<void> EmbeddedPostgres::launch() {
    const SteadyTime deadline = clock_.now() + options_.start_time;
    const SteadyTime predecessor_deadline = clock_.now() + kPredecessorTime;
    while (true) {
        if (auto settled = await_predecessor(predecessor_deadline); !settled) {
            return settled;
        }
        const auto launched = launch_once(deadline);
        if (!launched) {
            return fail(launched.error());
        }
        if (*launched) {
            return {};
        }
        if (clock_.now() >= predecessor_deadline) {
            return fail(Errc::unavailable, "data directory " + data_ +
                                               ": processes of an earlier run do not let go of it");
        }
    }
}

/// @return false when the predecessor has not let go yet
Result<bool> EmbeddedPostgres::launch_once(SteadyTime deadline) {
    log_.trim();
    const UniqueFd log(
        ::open(log_.path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) {
        return fail(system_error("cannot open", log_.path(), errno));
    }
    const std::uintmax_t log_from = log_.size();
    const Command command{.arguments = {server_.bin + "/postgres", "-D", cluster_, "-c",
                                        "listen_addresses=", "-c",
                                        "unix_socket_directories=\"" + socket_folder_ + "\""},
                          .account = &account_,
                          .output = log.get(),
                          .death_signal = options_.die_with_parent ? SIGQUIT : 0};
    const auto pid = spawn(command);
    if (!pid) {
        return fail(pid.error());
    }
    auto process = Process::open(*pid, true);
    if (!process) {
        return fail(process.error());
    }
    while (!process->wait(kPoll)) {
        if (answers()) {
            logger().information("PostgreSQL " + std::to_string(server_.major) +
                                 " runs as process " + std::to_string(*pid));
            set_running(std::move(*process));
            return true;
        }
        const bool stopping = pause(0ms);
        if (stopping || clock_.now() >= deadline) {
            const auto ended = end(*process, Shutdown::fast);
            if (!ended) {
                return fail(ended.error());
            }
            return stopping
                       ? fail(Errc::shutting_down, "the broker stops")
                       : fail(start_failure("it took no connections within " +
                                            std::to_string(options_.start_time.count()) + " s"));
        }
    }
    std::string reason = log_.reason(log_from);
    if (reason.find("\"postmaster.pid\" already exists") != std::string::npos ||
        reason.find("pre-existing shared memory block") != std::string::npos) {
        return pause(kPoll) ? fail(Errc::shutting_down, "the broker stops") : Result<bool>(false);
    }
    if (reason.empty()) {
        reason = "it ended with " + describe_status(process->status().value_or(0)) + ", see " +
                 log_.path();
    }
    return fail(start_failure(std::move(reason)));
}

Error EmbeddedPostgres::start_failure(std::string reason) const {
    if (reason.find("No space left on device") == std::string::npos && out_of_space(data_)) {
        reason = "No space left on device (" + reason + ")";
    }
    return {Errc::unavailable,
            "data directory " + data_ + ": PostgreSQL does not start: " + reason,
            {}};
}

bool EmbeddedPostgres::answers() const {
    return PQping(conninfo("postgres").c_str()) == PQPING_OK;
}

std::string EmbeddedPostgres::conninfo(const std::string& database) const {
    return "host=" + conninfo_value(socket_folder_) +
           " port=5432 user=queen dbname=" + conninfo_value(database);
}

// --- ending and supervision -------------------------------------------------------------------

Result<void> EmbeddedPostgres::end(Process& process, Shutdown mode) {
    if (mode == Shutdown::fast) {
        process.signal(SIGINT);
        if (process.wait(kFastTime)) {
            return {};
        }
        logger().warning("PostgreSQL process " + std::to_string(process.pid()) +
                         " does not stop fast; stopping it at once");
    }
    process.signal(mode == Shutdown::kill ? SIGKILL : SIGQUIT);
    if (process.wait(kImmediateTime)) {
        return {};
    }
    return fail(Errc::timeout,
                "PostgreSQL process " + std::to_string(process.pid()) + " does not stop");
}

Result<void> EmbeddedPostgres::end_current(Shutdown mode) {
    std::optional<Process> process;
    {
        const std::lock_guard lock(mutex_);
        std::swap(process, process_);
    }
    return process ? end(*process, mode) : Result<void>();
}

Result<void> EmbeddedPostgres::stop(Shutdown mode) {
    stop_supervision();
    auto ended = end_current(mode);
    if (ended && !socket_folder_.empty() && socket_folder_ != data_ + "/run") {
        rmdir(socket_folder_.c_str()); // ours alone; stays when the server left something in it
    }
    return ended;
}

Result<void> EmbeddedPostgres::restart(Shutdown mode) {
    stop_supervision();
    if (auto ended = end_current(mode); !ended) {
        return ended;
    }
    if (auto launched = launch(); !launched) {
        return launched;
    }
    adopted_ = false;
    start_supervision();
    return {};
}

void EmbeddedPostgres::start_supervision() {
    if (options_.supervise) {
        supervisor_ = std::thread([this] { supervise(); });
    }
}

void EmbeddedPostgres::stop_supervision() {
    if (supervisor_.joinable()) {
        eventfd_write(wake_.get(), 1);
        supervisor_.join();
        eventfd_t drained = 0;
        eventfd_read(wake_.get(), &drained);
    }
}

/// @return true when supervision shall end
bool EmbeddedPostgres::pause(std::chrono::milliseconds time) const {
    struct pollfd wake {
        wake_.get(), POLLIN, 0
    };
    return poll(&wake, 1, static_cast<int>(time.count())) > 0;
}

void EmbeddedPostgres::supervise() {
    while (true) {
        std::array<struct pollfd, 2> watched{};
        watched[0] = {wake_.get(), POLLIN, 0};
        {
            const std::lock_guard lock(mutex_);
            watched[1] = {process_ ? process_->descriptor() : -1, POLLIN, 0};
        }
        // An hour, so that the log is trimmed even when nothing ever happens.
        const auto quiet = std::chrono::duration_cast<std::chrono::milliseconds>(1h);
        poll(watched.data(), watched.size(), static_cast<int>(quiet.count()));
        if ((watched[0].revents & POLLIN) != 0) {
            return;
        }
        if ((watched[1].revents & POLLIN) != 0) {
            revive();
        } else {
            log_.trim();
        }
    }
}

/// Starts the server anew after its unasked end; tries until it runs or the broker stops.
void EmbeddedPostgres::revive() {
    std::string why;
    {
        const std::lock_guard lock(mutex_);
        process_->wait(0ms);
        const auto status = process_->status();
        why = "PostgreSQL process " + std::to_string(process_->pid()) + " ended unasked" +
              (status ? " with " + describe_status(*status) : "");
    }
    logger().error(why + "; starting it again");
    set_away(std::move(why));
    if (clock_.now() - up_since_ >= kProvenTime) {
        revive_delay_ = 0ms;
    }
    while (true) {
        if (revive_delay_ > 0ms && pause(revive_delay_)) {
            return;
        }
        // Kept over a success too: a server that dies as soon as it runs is not tried in a tight
        // loop.
        revive_delay_ = std::clamp<std::chrono::milliseconds>(revive_delay_ * 2, 1s, 30s);
        const auto launched = launch();
        if (launched) {
            return;
        }
        logger().error(launched.error().message);
        set_away(launched.error().message);
    }
}

void EmbeddedPostgres::set_running(Process process) {
    const std::lock_guard lock(mutex_);
    process_.emplace(std::move(process));
    up_since_ = clock_.now();
    last_error_.clear();
    changed_.notify_all();
}

void EmbeddedPostgres::set_away(std::string why) {
    const std::lock_guard lock(mutex_);
    process_.reset();
    last_error_ = std::move(why);
    changed_.notify_all();
}

pid_t EmbeddedPostgres::pid() const {
    const std::lock_guard lock(mutex_);
    return process_ ? process_->pid() : 0;
}

bool EmbeddedPostgres::await(std::chrono::milliseconds time,
                             const std::function<bool(pid_t, const std::string&)>& done) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time,
                             [&] { return done(process_ ? process_->pid() : 0, last_error_); });
}

std::string EmbeddedPostgres::trouble() const {
    const std::lock_guard lock(mutex_);
    return last_error_;
}

} // namespace queen::app
