#include "session.hpp"

#include <libpq-fe.h>

#include <array>
#include <mutex>
#include <utility>

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

struct Session::Attempt {
    std::mutex mutex; ///< held while `wake` runs, so that close() is the end of it
    bool done = false;
    bool abandoned = false;
    std::unique_ptr<pg_conn, Closer> connection;
    std::function<void()> wake;
};

pg_conn* Session::by_libpq(const std::string& conninfo) {
    // A time limit that the connection string does not replace keeps threads that were left behind
    // from staying for good.
    constexpr std::array<const char*, 5> kKeys{"connect_timeout", "dbname", "application_name",
                                               "client_encoding", nullptr};
    const std::array<const char*, 5> values{"30", conninfo.c_str(), "queen-meshpg", "UTF8",
                                            nullptr};
    return PQconnectdbParams(kKeys.data(), values.data(), 1);
}

Session::Session(std::function<void()> wake, Connect connect)
    : wake_(std::move(wake)), connect_(std::move(connect)) {}

Session::~Session() {
    close();
}

bool Session::open(const std::string& conninfo, const std::string& channel) {
    if (attempt_ != nullptr) {
        const std::lock_guard lock(attempt_->mutex);
        if (!attempt_->done) {
            error_ = "an earlier attempt to connect has not come back yet";
            return false;
        }
    }
    channel_ = channel;
    error_.clear();
    const auto begun = std::make_shared<Attempt>();
    begun->wake = wake_;
    connecting_ = std::thread([attempt = begun, connect = connect_, conninfo] {
        std::unique_ptr<pg_conn, Closer> made(connect(conninfo));
        const std::lock_guard lock(attempt->mutex);
        attempt->done = true;
        if (!attempt->abandoned) {
            attempt->connection = std::move(made);
            attempt->wake();
        }
    });
    attempt_ = begun; // now there is one: making a thread may fail
    state_ = State::connecting;
    return true;
}

void Session::close() {
    if (connecting_.joinable()) {
        bool done = false;
        {
            const std::lock_guard lock(attempt_->mutex);
            attempt_->abandoned = true;
            done = attempt_->done;
        }
        if (done) {
            connecting_.join();
        } else {
            connecting_.detach();
        }
    }
    if (attempt_ != nullptr) {
        const std::lock_guard lock(attempt_->mutex);
        attempt_->connection.reset();
    }
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

/// What the thread has brought, if it is back.
bool Session::adopt() {
    {
        const std::lock_guard lock(attempt_->mutex);
        if (!attempt_->done) {
            return true;
        }
        connection_ = std::move(attempt_->connection);
    }
    connecting_.join();
    if (connection_ == nullptr || PQstatus(connection_.get()) != CONNECTION_OK) {
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

bool Session::advance(const std::function<void(std::string_view payload, int sender)>& heard) {
    if (state_ == State::closed) {
        return false;
    }
    if (state_ == State::connecting) {
        return adopt();
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
            heard(notice->extra, notice->be_pid);
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
