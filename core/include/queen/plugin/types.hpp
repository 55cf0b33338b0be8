// queen/plugin/types.hpp - the nouns that plugins and the core share. Depends on nothing of ours.
#pragma once
#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

namespace queen {

/// Times of the steady clock; what leases mean is decided by the database's clock alone.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Nanoseconds = std::chrono::nanoseconds;

/// 16 raw bytes in text order. All zero means "not known".
struct Uuid {
    std::array<std::uint8_t, 16> bytes{};
    constexpr bool known() const noexcept { return *this != Uuid{}; }
    friend constexpr auto operator<=>(const Uuid&, const Uuid&) noexcept = default;
};

/// An integer that cannot be mixed up with another one: no implicit conversion in or out.
template <class Tag>
class StrongId {
public:
    constexpr explicit StrongId(std::int64_t value) noexcept : value_(value) {}
    constexpr std::int64_t value() const noexcept { return value_; }
    friend constexpr auto operator<=>(StrongId, StrongId) noexcept = default;

private:
    std::int64_t value_;
};

/// 64-bit place of one message in a partition, from 0, never reused.
using Offset = StrongId<struct OffsetTag>;

/// A source of steady time that a test can move.
class Clock {
public:
    virtual ~Clock() = default;
    virtual SteadyTime now() const noexcept = 0; ///< @thread any
};

} // namespace queen

template <>
struct std::hash<queen::Uuid> {
    std::size_t operator()(const queen::Uuid& id) const noexcept {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    }
};
