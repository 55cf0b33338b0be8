#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;
struct pg_result;

namespace queen::test {

/// What the server said no with.
class SqlError : public std::runtime_error {
public:
    SqlError(std::string state, const std::string& message)
        : std::runtime_error(state + ": " + message), state_(std::move(state)) {}
    const std::string& state() const noexcept {
        return state_;
    } ///< SQLSTATE, "" when the link died

private:
    std::string state_;
};

/// One answer, as text.
class SqlRows {
public:
    explicit SqlRows(pg_result* result);
    std::size_t size() const;
    bool null(std::size_t row, int column) const;
    std::string get(std::size_t row, int column) const; ///< "" for null
    std::int64_t integer(std::size_t row, int column) const;
    /// A column of all rows, separated by spaces.
    std::string column(int column) const;

private:
    std::shared_ptr<pg_result> result_;
};

/// An argument in text form: numbers, booleans, text, arrays of these, and null.
class SqlArg {
public:
    SqlArg(std::nullptr_t) {}
    SqlArg(const char* text) : text_(text) {}
    SqlArg(std::string text) : text_(std::move(text)) {}
    SqlArg(std::string_view text) : text_(text) {}
    SqlArg(bool value) : text_(value ? "true" : "false") {}
    SqlArg(int value) : text_(std::to_string(value)) {}
    SqlArg(std::int64_t value) : text_(std::to_string(value)) {}
    SqlArg(std::size_t value) : text_(std::to_string(value)) {}
    SqlArg(const std::vector<std::string>& elements);
    SqlArg(const std::vector<std::int64_t>& elements);

    const std::optional<std::string>& text() const noexcept { return text_; }

private:
    std::optional<std::string> text_;
};

/// A connection of its own. Statements run one at a time; send() leaves one running, so that a
/// test can do something else meanwhile.
class SqlSession {
public:
    explicit SqlSession(const std::string& conninfo); ///< throws SqlError

    SqlRows query(const std::string& sql, const std::vector<SqlArg>& args = {});
    /// First column of the first row; "" for null and for no row.
    std::string one(const std::string& sql, const std::vector<SqlArg>& args = {});
    std::int64_t integer(const std::string& sql, const std::vector<SqlArg>& args = {});
    bool yes(const std::string& sql, const std::vector<SqlArg>& args = {});
    /// Several statements in one implicit transaction, without arguments.
    void script(const std::string& sql);

    void send(const std::string& sql, const std::vector<SqlArg>& args = {});
    bool busy();      ///< the statement sent has not answered yet
    SqlRows finish(); ///< waits for it; throws SqlError when it failed

    int pid() const; ///< of the backend
    /// From here on the server's notices go to this list, which has to outlive the session.
    void collect_notices(std::vector<std::string>& into);
    /// Asks until the condition holds, an expression with or without FROM; throws
    /// std::runtime_error after 60 s.
    void wait_for(const std::string& condition, const std::vector<SqlArg>& args = {});

private:
    std::shared_ptr<pg_conn> link_;
};

} // namespace queen::test
