#include "store/rows.hpp"

#include "store/parameters.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <limits>

namespace queen::store {
namespace {

template <class T>
T get(std::string_view bytes) {
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value = static_cast<std::make_unsigned_t<T>>((value << 8) |
                                                     static_cast<unsigned char>(bytes[i]));
    }
    return static_cast<T>(value);
}

/// Takes what it reads off the front; nullopt when it is not there.
template <class T>
std::optional<T> take(std::string_view& bytes) {
    if (bytes.size() < sizeof(T)) {
        return std::nullopt;
    }
    const T value = get<T>(bytes);
    bytes.remove_prefix(sizeof(T));
    return value;
}

} // namespace

void Rows::Clear::operator()(pg_result* result) const noexcept {
    PQclear(result);
}

int Rows::count() const noexcept {
    return result_ ? PQntuples(result_.get()) : 0;
}

int Rows::columns() const noexcept {
    return result_ ? PQnfields(result_.get()) : 0;
}

std::string_view Rows::command() const noexcept {
    return result_ ? std::string_view(PQcmdStatus(result_.get())) : std::string_view{};
}

void Row::fault(int column, const char* wanted, const char* found) {
    if (!error_) {
        error_ = Error{Errc::internal,
                       "column " + std::to_string(column) + " of the store's answer: wanted " +
                           wanted + ", found " + found,
                       {}};
    }
}

Result<void> Row::status() const {
    if (error_) {
        return fail(*error_);
    }
    return {};
}

bool Row::null(int column) const noexcept {
    return index_ >= rows_->count() || column >= rows_->columns() ||
           PQgetisnull(rows_->result_.get(), index_, column) == 1;
}

std::optional<std::string_view> Row::cell(int column, std::initializer_list<std::uint32_t> types,
                                          const char* wanted) {
    if (index_ >= rows_->count() || column >= rows_->columns()) {
        fault(column, wanted, "no such row or column");
        return std::nullopt;
    }
    const pg_result* result = rows_->result_.get();
    const auto type = static_cast<std::uint32_t>(PQftype(result, column));
    if (std::find(types.begin(), types.end(), type) == types.end()) {
        fault(column, wanted, ("type " + std::to_string(type)).c_str());
        return std::nullopt;
    }
    if (PQfformat(result, column) != 1) {
        fault(column, wanted, "text format");
        return std::nullopt;
    }
    if (PQgetisnull(result, index_, column) == 1) {
        fault(column, wanted, "NULL");
        return std::nullopt;
    }
    return std::string_view(PQgetvalue(result, index_, column),
                            static_cast<std::size_t>(PQgetlength(result, index_, column)));
}

bool Row::boolean(int column) {
    const auto bytes = cell(column, {oid::kBool}, "a boolean");
    return bytes && bytes->size() == 1 && bytes->front() != '\0';
}

std::int64_t Row::integer(int column) {
    const auto bytes = cell(column, {oid::kInt2, oid::kInt4, oid::kInt8}, "an integer");
    if (!bytes) {
        return 0;
    }
    switch (bytes->size()) {
    case 2:
        return get<std::int16_t>(*bytes);
    case 4:
        return get<std::int32_t>(*bytes);
    case 8:
        return get<std::int64_t>(*bytes);
    default:
        fault(column, "an integer", "a wrong length");
        return 0;
    }
}

std::string_view Row::text(int column) {
    auto bytes = cell(column, {oid::kText, oid::kVarchar, oid::kJson, oid::kJsonb}, "text");
    if (!bytes) {
        return {};
    }
    if (static_cast<std::uint32_t>(PQftype(rows_->result_.get(), column)) == oid::kJsonb) {
        if (bytes->empty() || bytes->front() != '\1') {
            fault(column, "jsonb of version 1", "another version");
            return {};
        }
        bytes->remove_prefix(1);
    }
    return *bytes;
}

std::string_view Row::bytea(int column) {
    return cell(column, {oid::kBytea}, "bytea").value_or(std::string_view{});
}

Uuid Row::uuid(int column) {
    Uuid id;
    const auto bytes = cell(column, {oid::kUuid}, "a uuid");
    if (!bytes) {
        return id;
    }
    if (bytes->size() != id.bytes.size()) {
        fault(column, "a uuid", "a wrong length");
        return id;
    }
    std::copy(bytes->begin(), bytes->end(), id.bytes.begin());
    return id;
}

WallTime Row::timestamptz(int column) {
    const auto bytes = cell(column, {oid::kTimestamptz}, "a timestamptz");
    if (!bytes || bytes->size() != sizeof(std::int64_t)) {
        return {};
    }
    const auto micros = get<std::int64_t>(*bytes);
    using Limits = std::numeric_limits<std::int64_t>;
    if (micros == Limits::max() || micros > Limits::max() - kEpochMicros) { // infinity, far future
        return WallTime::max();
    }
    if (micros == Limits::min()) {
        return WallTime::min();
    }
    return WallTime{std::chrono::microseconds{micros + kEpochMicros}};
}

std::vector<std::string_view> Row::array(int column, std::uint32_t type, std::uint32_t element,
                                         const char* wanted) {
    std::vector<std::string_view> out;
    auto bytes = cell(column, {type}, wanted);
    if (!bytes) {
        return out;
    }
    const auto dimensions = take<std::int32_t>(*bytes);
    const auto has_nulls = take<std::int32_t>(*bytes);
    const auto element_type = take<std::uint32_t>(*bytes);
    if (!dimensions || !has_nulls || element_type != element || *dimensions > 1) {
        fault(column, wanted, "an array of another shape");
        return out;
    }
    if (*dimensions == 0) {
        return out;
    }
    const auto count = take<std::int32_t>(*bytes);
    const auto lower_bound = take<std::int32_t>(*bytes);
    if (!count || !lower_bound || *count < 0) {
        fault(column, wanted, "a cut array");
        return out;
    }
    out.reserve(static_cast<std::size_t>(*count));
    for (std::int32_t i = 0; i < *count; ++i) {
        const auto length = take<std::int32_t>(*bytes);
        if (!length || *length < 0 || static_cast<std::size_t>(*length) > bytes->size()) {
            fault(column, wanted, length && *length == -1 ? "a NULL element" : "a cut array");
            out.clear();
            return out;
        }
        out.push_back(bytes->substr(0, static_cast<std::size_t>(*length)));
        bytes->remove_prefix(static_cast<std::size_t>(*length));
    }
    return out;
}

std::vector<std::string_view> Row::bytea_array(int column) {
    return array(column, oid::kByteaArray, oid::kBytea, "bytea[]");
}

std::vector<std::string_view> Row::text_array(int column) {
    return array(column, oid::kTextArray, oid::kText, "text[]");
}

} // namespace queen::store
