#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace queen {

/// XXH3-128 (seed 0) of a transaction id in canonical big-endian form: the dedup identity inside a
/// partition and the address of an ack.
/// @source FMT-11
struct TxnHash {
    std::array<std::uint8_t, 16> bytes{};
    std::string_view view() const noexcept {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    friend constexpr auto operator<=>(const TxnHash&, const TxnHash&) noexcept = default;
};

TxnHash hash_transaction_id(std::string_view id) noexcept;

} // namespace queen

template <>
struct std::hash<queen::TxnHash> {
    std::size_t operator()(const queen::TxnHash& h) const noexcept {
        return std::hash<std::string_view>{}(h.view());
    }
};
