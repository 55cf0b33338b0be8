#pragma once
#include "app/data_directory.hpp"
#include "app/embedded_postgres.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <string>

namespace queen::app {

/// First column of the first row; "error: ..." when the statement or the connection fails.
inline std::string query(const std::string& conninfo, const std::string& sql) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> session(PQconnectdb(conninfo.c_str()),
                                                               PQfinish);
    if (PQstatus(session.get()) != CONNECTION_OK) {
        return std::string("error: ") + PQerrorMessage(session.get());
    }
    const std::unique_ptr<PGresult, decltype(&PQclear)> answer(PQexec(session.get(), sql.c_str()),
                                                               PQclear);
    switch (PQresultStatus(answer.get())) {
    case PGRES_TUPLES_OK:
        return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
    case PGRES_COMMAND_OK:
        return "";
    default:
        return std::string("error: ") + PQerrorMessage(session.get());
    }
}

/// Another broker on the same machine: a fork that does its part, says one line, and then waits to
/// be killed.
class OtherBroker {
public:
    explicit OtherBroker(const std::function<std::string()>& part) {
        std::array<int, 2> ends{};
        if (pipe(ends.data()) != 0) {
            return;
        }
        pid_ = fork();
        if (pid_ == 0) {
            const std::string line = part() + "\n";
            if (write(ends[1], line.data(), line.size()) < 0) {
                _exit(1);
            }
            while (true) {
                pause();
            }
        }
        close(ends[1]);
        char c = 0;
        while (::read(ends[0], &c, 1) == 1 && c != '\n') {
            said_ += c;
        }
        close(ends[0]);
    }
    ~OtherBroker() { kill9(); }
    OtherBroker(const OtherBroker&) = delete;
    OtherBroker& operator=(const OtherBroker&) = delete;

    const std::string& said() const noexcept { return said_; }
    pid_t pid() const noexcept { return pid_; }
    void kill9() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }

private:
    pid_t pid_ = -1;
    std::string said_;
};

class EmbeddedPostgresTest : public testing::Test {
protected:
    /// Ends what a killed "broker" left behind, however the test went.
    ~EmbeddedPostgresTest() override {
        const std::string cluster = data() + "/postgres";
        const auto file = read_postmaster_file(cluster);
        const auto account = database_account();
        if (file && account &&
            cluster_liveness(cluster, file->pid, *account) == Liveness::postmaster) {
            if (auto orphan = Process::open(file->pid, false)) {
                orphan->signal(SIGQUIT);
                orphan->wait(std::chrono::seconds(10));
            }
        }
    }

    std::string data() const { return folder_.path() + "/data"; }
    std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
    EmbeddedPostgres::Options options() const { return options(data()); }
    static EmbeddedPostgres::Options options(const std::string& directory) {
        return {.data_directory = directory,
                .max_connections = 20,
                .durable = false,
                .settings = {{"shared_buffers", "16MB"}}};
    }
    /// The server of `options`, or a test failure with the reason.
    static std::unique_ptr<EmbeddedPostgres> start(EmbeddedPostgres::Options options) {
        auto server = EmbeddedPostgres::start(std::move(options));
        if (!server) {
            ADD_FAILURE() << server.error().message;
            return nullptr;
        }
        return std::move(*server);
    }
    static std::string refusal(EmbeddedPostgres::Options options) {
        const auto server = EmbeddedPostgres::start(std::move(options));
        return server ? "it started" : server.error().message;
    }
    /// For OtherBroker: starts and keeps a server, says its process number or the reason.
    static std::string start_and_keep(EmbeddedPostgres::Options options) {
        auto server = EmbeddedPostgres::start(std::move(options));
        if (!server) {
            return server.error().message;
        }
        std::string pid = std::to_string((*server)->pid());
        static_cast<void>(server->release());
        return pid;
    }

private:
    test::TempDirectory folder_;
};

} // namespace queen::app
