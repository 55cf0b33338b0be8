#include "store/parameters.hpp"

#include "base/assert.hpp"

#include <limits>

namespace queen::store {
namespace {

template <class T>
void put(std::string& out, T value) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto bits = static_cast<Unsigned>(value);
    for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
        out.push_back(static_cast<char>((bits >> shift) & 0xff));
    }
}

/// The header of a one-dimensional array without NULLs (array_recv). An empty one has no dimension.
void put_array_header(std::string& out, std::uint32_t element, std::size_t count) {
    put<std::int32_t>(out, count == 0 ? 0 : 1); // dimensions
    put<std::int32_t>(out, 0);                  // no element is NULL
    put<std::uint32_t>(out, element);
    if (count > 0) {
        put<std::int32_t>(out, static_cast<std::int32_t>(count));
        put<std::int32_t>(out, 1); // subscripts start at 1
    }
}

std::string array_of_views(std::uint32_t element, std::span<const std::string_view> values) {
    std::size_t total = 20;
    for (const std::string_view value : values) {
        total += 4 + value.size();
    }
    std::string out;
    out.reserve(total);
    put_array_header(out, element, values.size());
    for (const std::string_view value : values) {
        put<std::int32_t>(out, static_cast<std::int32_t>(value.size()));
        out.append(value);
    }
    return out;
}

template <class T>
std::string array_of_integers(std::uint32_t element, std::span<const T> values) {
    std::string out;
    out.reserve(20 + values.size() * (4 + sizeof(T)));
    put_array_header(out, element, values.size());
    for (const T value : values) {
        put<std::int32_t>(out, sizeof(T));
        put<T>(out, value);
    }
    return out;
}

std::string_view bytes_of(const Uuid& id) {
    return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

} // namespace

Parameters& Parameters::add(std::uint32_t type, const char* data, std::size_t size) {
    // The front refuses bodies far below this; the protocol's lengths are signed 32-bit numbers.
    QUEEN_ASSERT(size <= std::numeric_limits<std::int32_t>::max(), "argument over 2 GiB");
    types_.push_back(type);
    values_.push_back(data == nullptr ? "" : data);
    lengths_.push_back(static_cast<int>(size));
    formats_.push_back(1);
    return *this;
}

Parameters& Parameters::own(std::uint32_t type, std::string bytes) {
    const std::string& kept = owned_.emplace_back(std::move(bytes));
    return add(type, kept.data(), kept.size());
}

Parameters& Parameters::null(std::uint32_t type) {
    types_.push_back(type);
    values_.push_back(nullptr);
    lengths_.push_back(0);
    formats_.push_back(1);
    return *this;
}

Parameters& Parameters::text(std::string_view value) {
    return add(oid::kText, value.data(), value.size());
}

Parameters& Parameters::text_or_null(std::optional<std::string_view> value) {
    return value ? text(*value) : null(oid::kText);
}

Parameters& Parameters::int4(std::int32_t value) {
    std::string bytes;
    put(bytes, value);
    return own(oid::kInt4, std::move(bytes));
}

Parameters& Parameters::int8(std::int64_t value) {
    std::string bytes;
    put(bytes, value);
    return own(oid::kInt8, std::move(bytes));
}

Parameters& Parameters::boolean(bool value) {
    return own(oid::kBool, std::string(1, value ? '\1' : '\0'));
}

Parameters& Parameters::uuid(const Uuid& value) {
    return own(oid::kUuid, std::string(bytes_of(value)));
}

Parameters& Parameters::uuid_or_null(const std::optional<Uuid>& value) {
    return value ? uuid(*value) : null(oid::kUuid);
}

Parameters& Parameters::timestamptz_or_null(std::optional<WallTime> value) {
    if (!value) {
        return null(oid::kTimestamptz);
    }
    std::int64_t micros = value->time_since_epoch().count();
    if (*value != WallTime::max() && *value != WallTime::min()) { // these are the infinities
        micros -= kServerEpoch.count();
    }
    std::string bytes;
    put(bytes, micros);
    return own(oid::kTimestamptz, std::move(bytes));
}

Parameters& Parameters::bytea(std::string_view value) {
    return add(oid::kBytea, value.data(), value.size());
}

Parameters& Parameters::jsonb(std::string_view json) {
    std::string bytes(1, '\1'); // version of the wire form (jsonb_recv)
    bytes.append(json);
    return own(oid::kJsonb, std::move(bytes));
}

Parameters& Parameters::boolean_array(const std::vector<bool>& values) {
    std::string out;
    out.reserve(20 + values.size() * 5);
    put_array_header(out, oid::kBool, values.size());
    for (const bool value : values) {
        put<std::int32_t>(out, 1);
        out += value ? '\1' : '\0';
    }
    return own(oid::kBoolArray, std::move(out));
}

Parameters& Parameters::text_array(std::span<const std::string_view> values) {
    return own(oid::kTextArray, array_of_views(oid::kText, values));
}

Parameters& Parameters::int4_array(std::span<const std::int32_t> values) {
    return own(oid::kInt4Array, array_of_integers(oid::kInt4, values));
}

Parameters& Parameters::int8_array(std::span<const std::int64_t> values) {
    return own(oid::kInt8Array, array_of_integers(oid::kInt8, values));
}

Parameters& Parameters::bytea_array(std::span<const std::string_view> values) {
    return own(oid::kByteaArray, array_of_views(oid::kBytea, values));
}

Parameters& Parameters::uuid_array(std::span<const Uuid> values) {
    std::string out;
    out.reserve(20 + values.size() * 20);
    put_array_header(out, oid::kUuid, values.size());
    for (const Uuid& value : values) {
        put<std::int32_t>(out, 16);
        out.append(bytes_of(value));
    }
    return own(oid::kUuidArray, std::move(out));
}

Parameters& Parameters::timestamptz_array(std::span<const WallTime> values) {
    std::vector<std::int64_t> micros;
    micros.reserve(values.size());
    for (const WallTime value : values) {
        micros.push_back(value.time_since_epoch().count() - kServerEpoch.count());
    }
    return own(oid::kTimestamptzArray, array_of_integers<std::int64_t>(oid::kTimestamptz, micros));
}

} // namespace queen::store
