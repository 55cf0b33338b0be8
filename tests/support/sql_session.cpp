#include "support/sql_session.hpp"

#include <libpq-fe.h>

#include <chrono>
#include <utility>

namespace queen::test {
namespace {

template <class T, class Text>
std::string array_literal(const std::vector<T>& elements, Text text) {
    std::string out = "{";
    for (const T& element : elements) {
        if (out.size() > 1) {
            out += ',';
        }
        out += '"';
        for (const char c : text(element)) {
            if (c == '"' || c == '\\') {
                out += '\\';
            }
            out += c;
        }
        out += '"';
    }
    return out + "}";
}

SqlRows checked(PGresult* result, PGconn* link) {
    SqlRows rows(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY) {
        return rows;
    }
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    throw SqlError(state != nullptr ? state : "", PQerrorMessage(link));
}

struct Texts {
    explicit Texts(const std::vector<SqlArg>& args) {
        for (const SqlArg& arg : args) {
            values.push_back(arg.text() ? arg.text()->c_str() : nullptr);
        }
    }
    int size() const { return static_cast<int>(values.size()); }
    std::vector<const char*> values;
};

} // namespace

SqlRows::SqlRows(pg_result* result) : result_(result, PQclear) {}

std::size_t SqlRows::size() const {
    return static_cast<std::size_t>(PQntuples(result_.get()));
}

bool SqlRows::null(std::size_t row, int column) const {
    return PQgetisnull(result_.get(), static_cast<int>(row), column) == 1;
}

std::string SqlRows::get(std::size_t row, int column) const {
    return PQgetvalue(result_.get(), static_cast<int>(row), column);
}

std::int64_t SqlRows::integer(std::size_t row, int column) const {
    return std::stoll(get(row, column));
}

std::string SqlRows::column(int column) const {
    std::string out;
    for (std::size_t row = 0; row < size(); ++row) {
        out += (row > 0 ? " " : "") + get(row, column);
    }
    return out;
}

SqlArg::SqlArg(const std::vector<std::string>& elements)
    : text_(array_literal(elements, [](const std::string& s) { return s; })) {}

SqlArg::SqlArg(const std::vector<std::int64_t>& elements)
    : text_(array_literal(elements, [](std::int64_t n) { return std::to_string(n); })) {}

SqlSession::SqlSession(const std::string& conninfo)
    : notices_(std::make_shared<std::vector<std::string>>()),
      link_(PQconnectdb(conninfo.c_str()), PQfinish) {
    if (PQstatus(link_.get()) != CONNECTION_OK) {
        throw SqlError("", PQerrorMessage(link_.get()));
    }
    PQsetNoticeProcessor(
        link_.get(),
        [](void* to, const char* text) {
            static_cast<std::vector<std::string>*>(to)->emplace_back(text);
        },
        notices_.get());
    script("SET client_min_messages = warning");
}

SqlRows SqlSession::query(const std::string& sql, const std::vector<SqlArg>& args) {
    const Texts texts(args);
    return checked(PQexecParams(link_.get(), sql.c_str(), texts.size(), nullptr,
                                texts.values.data(), nullptr, nullptr, 0),
                   link_.get());
}

std::string SqlSession::one(const std::string& sql, const std::vector<SqlArg>& args) {
    const SqlRows rows = query(sql, args);
    return rows.size() > 0 ? rows.get(0, 0) : "";
}

std::int64_t SqlSession::integer(const std::string& sql, const std::vector<SqlArg>& args) {
    return std::stoll(one(sql, args));
}

bool SqlSession::yes(const std::string& sql, const std::vector<SqlArg>& args) {
    return one(sql, args) == "t";
}

std::vector<std::string> SqlSession::take_notices() {
    return std::exchange(*notices_, {});
}

void SqlSession::script(const std::string& sql) {
    checked(PQexec(link_.get(), sql.c_str()), link_.get());
}

void SqlSession::send(const std::string& sql, const std::vector<SqlArg>& args) {
    const Texts texts(args);
    const int sent = args.empty()
                         ? PQsendQuery(link_.get(), sql.c_str())
                         : PQsendQueryParams(link_.get(), sql.c_str(), texts.size(), nullptr,
                                             texts.values.data(), nullptr, nullptr, 0);
    if (sent != 1) {
        throw SqlError("", PQerrorMessage(link_.get()));
    }
}

bool SqlSession::busy() {
    if (PQconsumeInput(link_.get()) != 1) {
        throw SqlError("", PQerrorMessage(link_.get()));
    }
    return PQisBusy(link_.get()) == 1;
}

SqlRows SqlSession::finish() {
    PGresult* last = nullptr;
    while (PGresult* result = PQgetResult(link_.get())) {
        PQclear(last);
        last = result;
    }
    if (last == nullptr) {
        throw std::logic_error("finish() without send()");
    }
    return checked(last, link_.get());
}

int SqlSession::pid() const {
    return PQbackendPID(link_.get());
}

void SqlSession::wait_for(const std::string& condition, const std::vector<SqlArg>& args) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!yes("select " + condition, args)) {
        if (std::chrono::steady_clock::now() > end) {
            throw std::runtime_error("still not so after 60 s: " + condition);
        }
    }
}

} // namespace queen::test
