#include "support/postgres.hpp"

#include <libpq-fe.h>
#include <unistd.h>

#include <stdexcept>

namespace queen::test {

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
