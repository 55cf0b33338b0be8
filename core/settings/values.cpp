#include "settings/values.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace queen::settings {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t factor;
};

constexpr std::array kTimeUnits{Unit{"d", 86'400'000'000'000},
                                Unit{"h", 3'600'000'000'000},
                                Unit{"m", 60'000'000'000},
                                Unit{"s", 1'000'000'000},
                                Unit{"ms", 1'000'000},
                                Unit{"us", 1'000},
                                Unit{"ns", 1}};
constexpr std::array kSizeUnits{Unit{"TiB", 1LL << 40}, Unit{"GiB", 1LL << 30},
                                Unit{"MiB", 1LL << 20}, Unit{"KiB", 1LL << 10}, Unit{"B", 1}};

constexpr std::string_view kTimeExample =
    "write a whole number with its unit, as 250ms, 30s, 5m or 1h";
constexpr std::string_view kSizeExample =
    "write a whole number with its unit, as 512B, 16KiB, 64MiB or 1GiB";

Result<std::int64_t> with_unit(std::string_view text, const auto& units, std::string_view example) {
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
        ++digits;
    }
    std::string_view name = text.substr(digits);
    const auto number = parse_int(text.substr(0, digits));
    if (digits > 0 && name.empty()) {
        return fail(Errc::invalid_argument, shown(text) + " has no unit; " + std::string(example));
    }
    const auto unit = std::find_if(units.begin(), units.end(),
                                   [&](const Unit& known) { return known.name == name; });
    if (digits == 0 || unit == units.end()) {
        return fail(Errc::invalid_argument,
                    shown(text) + " is not readable; " + std::string(example));
    }
    if (!number || *number > std::numeric_limits<std::int64_t>::max() / unit->factor) {
        return fail(Errc::invalid_argument, shown(text) + " is too large");
    }
    return *number * unit->factor;
}

std::string in_units(std::int64_t value, const auto& units) {
    if (value == 0) {
        return units.size() == kTimeUnits.size() ? "0s" : "0B";
    }
    for (const Unit& unit : units) {
        if (value % unit.factor == 0) {
            return std::to_string(value / unit.factor) + std::string(unit.name);
        }
    }
    return std::to_string(value);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
}

} // namespace

std::string shown(std::string_view text) {
    constexpr std::size_t kMost = 60;
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (i >= kMost && (byte & 0xc0) != 0x80) { // never in the middle of a character
            return out + "...\"";
        }
        if (byte < 0x20 || byte == 0x7f) {
            out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
        } else {
            out += text[i];
        }
    }
    return out + '"';
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    return with_unit(text, kTimeUnits, kTimeExample).map([](std::int64_t value) {
        return std::chrono::nanoseconds(value);
    });
}

std::string format_duration(std::chrono::nanoseconds value) {
    return in_units(value.count(), kTimeUnits);
}

Result<std::int64_t> parse_size(std::string_view text) {
    return with_unit(text, kSizeUnits, kSizeExample);
}

std::string format_size(std::int64_t bytes) {
    return in_units(bytes, kSizeUnits);
}

Result<bool> parse_yaml_boolean(std::string_view text) {
    if (text == "true" || text == "false") {
        return text == "true";
    }
    return fail(Errc::invalid_argument, shown(text) + " is not a boolean");
}

Result<bool> parse_env_boolean(std::string_view text) {
    const std::string word = lower(text);
    if (word == "true" || word == "1" || word == "yes" || word == "on") {
        return true;
    }
    if (word == "false" || word == "0" || word == "no" || word == "off") {
        return false;
    }
    return fail(Errc::invalid_argument,
                shown(text) + " is not a boolean; write true, 1, yes, on or false, 0, no, off");
}

Result<std::int64_t> parse_whole(std::string_view text) {
    if (const auto number = parse_int(text)) {
        return *number;
    }
    return fail(Errc::invalid_argument, shown(text) + " is not a whole number");
}

Result<double> parse_real(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return fail(Errc::invalid_argument, shown(text) + " is not a number");
    }
    return value;
}

std::string format_real(double value) {
    std::array<char, 32> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    constexpr std::size_t kMost = 100; // longer words are nobody's typing error
    if (a.size() > kMost || b.size() > kMost) {
        return std::max(a.size(), b.size());
    }
    // Three rows: a swap of neighbours, the commonest slip, looks two back.
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::swap(before, above);
        std::swap(above, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min(
                {above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
    }
    return row[b.size()];
}

} // namespace queen::settings
