#include "pluginhost/option_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace queen::pluginhost {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t nanoseconds;
};
constexpr std::array kUnits{Unit{"d", 86'400'000'000'000},
                            Unit{"h", 3'600'000'000'000},
                            Unit{"m", 60'000'000'000},
                            Unit{"s", 1'000'000'000},
                            Unit{"ms", 1'000'000},
                            Unit{"us", 1'000},
                            Unit{"ns", 1}};

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
    return fail(Errc::invalid_argument, shown(text) + std::string(why));
}

std::optional<std::int64_t> whole(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

} // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view unit_name = text.substr(digits);
    if (digits > 0 && unit_name.empty()) {
        return bad(text, " has no unit; write a whole number with its unit, as 250ms, 30s or 5m");
    }
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const Unit& known) { return known.name == unit_name; });
    if (digits == 0 || unit == kUnits.end()) {
        return bad(text, " is not a duration; write a whole number with its unit, as 250ms, 30s "
                         "or 5m");
    }
    const auto number = whole(text.substr(0, digits));
    if (!number || *number > std::numeric_limits<std::int64_t>::max() / unit->nanoseconds) {
        return bad(text, " is longer than any clock counts");
    }
    return std::chrono::nanoseconds(*number * unit->nanoseconds);
}

std::string format_duration(std::chrono::nanoseconds value) {
    if (value.count() == 0) {
        return "0s";
    }
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) {
        return value.count() % known.nanoseconds == 0;
    });
    return std::to_string(value.count() / unit->nanoseconds) + std::string(unit->name);
}

Result<std::int64_t> parse_whole(std::string_view text) {
    if (const auto value = whole(text)) {
        return *value;
    }
    return bad(text, " is not a whole number");
}

Result<bool> parse_boolean(std::string_view text, bool words) {
    std::string word(text);
    if (words) {
        std::transform(word.begin(), word.end(), word.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
    }
    if (word == "true" || (words && (word == "1" || word == "yes" || word == "on"))) {
        return true;
    }
    if (word == "false" || (words && (word == "0" || word == "no" || word == "off"))) {
        return false;
    }
    return bad(text, " is not a boolean");
}

std::string shown(std::string_view text) {
    constexpr std::size_t kMost = 60;
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "'";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (i >= kMost && (byte & 0xc0) != 0x80) { // never in the middle of a character
            return out + "...'";
        }
        if (byte < 0x20 || byte == 0x7f) {
            out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
        } else {
            out += text[i];
        }
    }
    return out + "'";
}

} // namespace queen::pluginhost
