// store/parameters.hpp - arguments of one statement in PostgreSQL's binary format. An encoder of
// our own, because text format cuts a value at its first NUL byte, turns an empty bytea into NULL
// in some clients, and doubles the size of binary data.
#pragma once
#include "base/clock.hpp"

#include <queen/plugin/types.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::store {

/// The server's numbers of the types we use (pg_type.dat; fixed since the types exist).
namespace oid {
inline constexpr std::uint32_t kBool = 16, kBytea = 17, kInt8 = 20, kInt2 = 21, kInt4 = 23,
                               kText = 25, kJson = 114, kVarchar = 1043, kTimestamptz = 1184,
                               kUuid = 2950, kJsonb = 3802, kBoolArray = 1000, kTextArray = 1009,
                               kByteaArray = 1001, kInt4Array = 1007, kInt8Array = 1016,
                               kUuidArray = 2951, kTimestamptzArray = 1185;
} // namespace oid

/// 2000-01-01, where the server's timestamps start, in Unix time.
inline constexpr std::chrono::microseconds kServerEpoch{946'684'800'000'000};

/// Grows by one argument per call, in order ($1, $2, ...).
///
/// Invariant: a non-null argument never has a null pointer, not even an empty one: libpq would send
/// NULL.
/// text, bytea and text_or_null keep a VIEW: what they were given must outlive the statement.
/// Everything else is copied.
class Parameters {
public:
    Parameters() = default;
    Parameters(Parameters&&) = default;
    Parameters& operator=(Parameters&&) = default;
    Parameters(const Parameters&) = delete; ///< pointers lead into `owned_`
    Parameters& operator=(const Parameters&) = delete;

    Parameters& null(std::uint32_t type);
    Parameters& text(std::string_view value);
    Parameters& text_or_null(std::optional<std::string_view> value);
    Parameters& int4(std::int32_t value);
    Parameters& int8(std::int64_t value);
    Parameters& boolean(bool value);
    Parameters& uuid(const Uuid& value);
    Parameters& uuid_or_null(const std::optional<Uuid>& value);
    /// max() and min() become infinity and -infinity, the other way round than Row::timestamptz().
    Parameters& timestamptz_or_null(std::optional<WallTime> value);
    Parameters& bytea(std::string_view value);
    Parameters& jsonb(std::string_view json);

    Parameters& boolean_array(const std::vector<bool>& values);
    Parameters& text_array(std::span<const std::string_view> values);
    Parameters& int4_array(std::span<const std::int32_t> values);
    Parameters& int8_array(std::span<const std::int64_t> values);
    Parameters& bytea_array(std::span<const std::string_view> values);
    Parameters& uuid_array(std::span<const Uuid> values);
    Parameters& timestamptz_array(std::span<const WallTime> values); ///< finite times only

    int size() const noexcept { return static_cast<int>(values_.size()); }
    const std::uint32_t* types() const noexcept { return types_.data(); }
    const char* const* values() const noexcept { return values_.data(); }
    const int* lengths() const noexcept { return lengths_.data(); }
    const int* formats() const noexcept { return formats_.data(); }

private:
    Parameters& add(std::uint32_t type, const char* data, std::size_t size);
    Parameters& own(std::uint32_t type, std::string bytes);

    std::vector<std::uint32_t> types_;
    std::vector<const char*> values_;
    std::vector<int> lengths_;
    std::vector<int> formats_;
    std::deque<std::string> owned_; ///< a deque: growing it moves no element
};

} // namespace queen::store
