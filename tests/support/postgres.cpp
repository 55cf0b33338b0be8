#include "support/postgres.hpp"

#include <fcntl.h>
#include <libpq-fe.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace queen::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "queen-test-";

fs::path base_folder() {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

/// Removes the folders whose owner is dead: its lock is free then.
void sweep(const fs::path& base) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(base, error)) {
        if (!entry.path().filename().string().starts_with(kPrefix)) {
            continue;
        }
        // A folder without a lock file is being made this moment.
        const int lock = open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
            fs::remove_all(entry.path(), error);
        }
        if (lock >= 0) {
            close(lock);
        }
    }
}

} // namespace

TempDirectory::TempDirectory() : owner_(getpid()) {
    const fs::path base = base_folder();
    sweep(base);
    path_ = (base / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(path_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot make " + path_);
    }
    chmod(path_.c_str(), 0711);
    // Locked under another name first: a sweep sees it locked or not at all.
    const std::string fresh = path_ + "/lock.new";
    lock_ = open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0 ||
        rename(fresh.c_str(), (path_ + "/lock").c_str()) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot lock " + path_);
    }
}

TempDirectory::~TempDirectory() {
    if (getpid() == owner_) {
        std::error_code ignored; // a leftover is swept by the next test
        fs::remove_all(path_, ignored);
    }
    close(lock_);
}

TestPostgres& TestPostgres::shared() {
    static TestPostgres server;
    return server;
}

TestPostgres::TestPostgres(std::map<std::string, std::string> settings) : owner_(getpid()) {
    settings.insert({{"shared_buffers", "64MB"}, {"max_wal_size", "512MB"}});
    auto server = app::EmbeddedPostgres::start({.data_directory = folder_.path() + "/data",
                                                .max_connections = 100,
                                                .durable = false,
                                                .supervise = false,
                                                .die_with_parent = true,
                                                .settings = std::move(settings)});
    if (!server) {
        throw std::runtime_error(server.error().message);
    }
    server_ = std::move(*server);
}

TestPostgres::~TestPostgres() {
    if (getpid() != owner_) {
        static_cast<void>(server_.release()); // a fork that exits does not stop the parent's server
        return;
    }
    // Nothing in it is kept, so a checkpoint would be wasted.
    static_cast<void>(server_->stop(app::EmbeddedPostgres::Shutdown::immediate));
}

std::string TestPostgres::conninfo(const std::string& database) const {
    return server_->conninfo(database);
}

std::string TestPostgres::create_database() {
    const std::string name = "t" + std::to_string(++databases_);
    execute("postgres", "CREATE DATABASE " + name);
    return name;
}

std::string TestPostgres::execute(const std::string& database, const std::string& sql) const {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> session(
        PQconnectdb(conninfo(database).c_str()), PQfinish);
    if (PQstatus(session.get()) != CONNECTION_OK) {
        throw std::runtime_error(PQerrorMessage(session.get()));
    }
    const std::unique_ptr<PGresult, decltype(&PQclear)> answer(PQexec(session.get(), sql.c_str()),
                                                               PQclear);
    const ExecStatusType status = PQresultStatus(answer.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
        throw std::runtime_error(PQerrorMessage(session.get()));
    }
    return PQntuples(answer.get()) > 0 && PQnfields(answer.get()) > 0
               ? PQgetvalue(answer.get(), 0, 0)
               : "";
}

pid_t TestPostgres::pid() const {
    return server_->pid();
}

void TestPostgres::kill9() {
    const auto killed = server_->stop(app::EmbeddedPostgres::Shutdown::kill);
    if (!killed) {
        throw std::runtime_error(killed.error().message);
    }
}

void TestPostgres::restart() {
    const auto restarted = server_->restart(app::EmbeddedPostgres::Shutdown::fast);
    if (!restarted) {
        throw std::runtime_error(restarted.error().message);
    }
}

} // namespace queen::test
