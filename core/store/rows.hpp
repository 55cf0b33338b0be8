// store/rows.hpp - what a statement answered, decoded from PostgreSQL's binary format.
#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace queen::store {

/// Owns one answer; independent of the session it came from, so it can be decoded after the
/// session was given back.
class Rows {
public:
    Rows() = default; ///< no rows, no columns
    explicit Rows(pg_result* owned) : result_(owned) {}

    int count() const noexcept;
    int columns() const noexcept;
    /// What the server calls the command: "SELECT 1", "CREATE TABLE"; empty without an answer.
    std::string_view command() const noexcept;

private:
    friend class Row;
    struct Clear {
        void operator()(pg_result* result) const noexcept;
    };
    std::unique_ptr<pg_result, Clear> result_;
};

/// Reads the columns of one row. A column that is not what the caller asked for is a broken promise
/// between our SQL and our C++: the first such fault is kept, the reads go on with empty values,
/// and status() tells. Views point into the Rows.
/// @errors internal (by status())
class Row {
public:
    Row(const Rows& rows, int index) : rows_(&rows), index_(index) {}

    bool null(int column) const noexcept;
    bool boolean(int column);
    std::int64_t integer(int column);   ///< int2, int4 or int8
    std::string_view text(int column);  ///< text, varchar, json, jsonb
    std::string_view bytea(int column); ///< may be empty
    Uuid uuid(int column);              ///< never "not known": NULL is a fault
    WallTime timestamptz(int column);   ///< infinity and -infinity become max() and min()
    std::vector<std::string_view> bytea_array(int column); ///< NULL elements are a fault
    std::vector<std::string_view> text_array(int column);
    std::vector<Uuid> uuid_array(int column);

    Result<void> status() const;

private:
    /// The bytes when the column exists, has one of these types and is not NULL.
    std::optional<std::string_view> cell(int column, std::initializer_list<std::uint32_t> types,
                                         const char* wanted);
    std::vector<std::string_view> array(int column, std::uint32_t type, std::uint32_t element,
                                        const char* wanted);
    void fault(int column, const char* wanted, const char* found);

    const Rows* rows_;
    int index_;
    std::optional<Error> error_;
};

} // namespace queen::store
