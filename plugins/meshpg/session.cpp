#include "session.hpp"

#include <libpq-fe.h>

#include <array>

namespace queen::meshpg {
namespace {

/// libpq's messages end in line feeds and may have several lines.
std::string one_line(const char* text) {
    std::string out;
    for (; *text != '\0'; ++text) {
        out += *text == '\n' ? ' ' : *text;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
}

/// As a literal of an array. Payloads hold neither NUL nor anything but UTF-8.
std::string array_of(const std::vector<std::string>& texts) {
    std::string out = "{";
    for (const std::string& text : texts) {
        out += out.size() == 1 ? "\"" : ",\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                out += '\\';
            }
            out += c;
        }
        out += '"';
    }
    out += '}';
    return out;
}

} // namespace

void Session::Closer::operator()(pg_conn* connection) const {
    PQfinish(connection);
}

Session::~Session() = default;

void Session::open(const std::string& conninfo, const std::string& channel) {
    constexpr std::array<const char*, 4> kKeys{"dbname", "application_name", "client_encoding",
                                               nullptr};
    const std::array<const char*, 4> values{conninfo.c_str(), "queen-meshpg", "UTF8", nullptr};
    channel_ = channel;
    error_.clear();
    connection_.reset(PQconnectStartParams(kKeys.data(), values.data(), 1));
    state_ = State::connecting;
    wants_write_ = true; // a fresh connection is polled as if it could be written to
}

void Session::close() {
    connection_.reset();
    state_ = State::closed;
    wants_write_ = false;
}

int Session::socket() const {
    return connection_ == nullptr ? -1 : PQsocket(connection_.get());
}

bool Session::fail() {
    error_ = connection_ == nullptr ? "out of memory" : one_line(PQerrorMessage(connection_.get()));
    close();
    return false;
}

bool Session::poll_connect() {
    if (connection_ == nullptr || PQstatus(connection_.get()) == CONNECTION_BAD) {
        return fail();
    }
    switch (PQconnectPoll(connection_.get())) {
    case PGRES_POLLING_READING:
        wants_write_ = false;
        return true;
    case PGRES_POLLING_WRITING:
        wants_write_ = true;
        return true;
    case PGRES_POLLING_OK:
        break;
    default:
        return fail();
    }
    // A hint is not worth a wait for the disk.
    const std::string begin =
        "SET synchronous_commit = off; SET statement_timeout = 0; LISTEN \"" + channel_ + "\"";
    if (PQsetnonblocking(connection_.get(), 1) != 0 ||
        PQsendQuery(connection_.get(), begin.c_str()) == 0) {
        return fail();
    }
    state_ = State::busy;
    return flush();
}

bool Session::flush() {
    const int left = PQflush(connection_.get());
    wants_write_ = left == 1;
    return left >= 0 || fail();
}

bool Session::advance(const std::function<void(std::string_view payload)>& heard) {
    if (state_ == State::closed) {
        return false;
    }
    if (state_ == State::connecting) {
        return poll_connect();
    }
    if (!flush()) {
        return false;
    }
    if (PQconsumeInput(connection_.get()) == 0) {
        return fail();
    }
    while (state_ == State::busy && PQisBusy(connection_.get()) == 0) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(connection_.get()),
                                                                   PQclear);
        if (result == nullptr) {
            state_ = State::idle;
            break;
        }
        const ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            error_ = one_line(PQresultErrorMessage(result.get()));
            close();
            return false;
        }
    }
    while (true) {
        const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notice(PQnotifies(connection_.get()),
                                                                     PQfreemem);
        if (notice == nullptr) {
            return true;
        }
        if (channel_ == notice->relname) {
            heard(notice->extra);
        }
    }
}

bool Session::notify(const std::string& channel, const std::vector<std::string>& payloads) {
    const std::string array = array_of(payloads);
    const std::array<const char*, 2> values{channel.c_str(), array.c_str()};
    if (PQsendQueryParams(connection_.get(),
                          "SELECT pg_catalog.pg_notify($1, p) FROM unnest($2::text[]) p", 2,
                          nullptr, values.data(), nullptr, nullptr, 0) == 0) {
        return fail();
    }
    state_ = State::busy;
    return flush();
}

} // namespace queen::meshpg
