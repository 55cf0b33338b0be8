// settings/values.hpp - how one value is written: durations and sizes with their units, whole
// numbers, booleans. Used for the core's options, for plugins' and for environment variables.
#pragma once
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace queen::settings {

/// `30s`, `250ms`, `5m`, `1h`; units ns, us, ms, s, m, h, d. A bare number is an error, whole
/// numbers only.
/// @errors invalid_argument; the message goes on from "option: "
/// @source CFG-5
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::string format_duration(std::chrono::nanoseconds value); ///< in the largest unit that fits

/// `64MiB`, `16KiB`, `512B`; units B, KiB, MiB, GiB, TiB.
/// @errors invalid_argument
Result<std::int64_t> parse_size(std::string_view text);
std::string format_size(std::int64_t bytes);

/// YAML's own words: true and false.
/// @errors invalid_argument
Result<bool> parse_yaml_boolean(std::string_view text);

/// What environment variables say: true/1/yes/on and false/0/no/off in either case.
/// @errors invalid_argument
/// @source ENV-1
Result<bool> parse_env_boolean(std::string_view text);

Result<std::int64_t> parse_whole(std::string_view text); ///< @errors invalid_argument
Result<double> parse_real(std::string_view text);        ///< finite @errors invalid_argument
std::string format_real(double value);

/// The text in quotes for a message: control characters escaped, cut after 60 bytes.
std::string shown(std::string_view text);

/// The nearest of `known`, or "" when none is near enough to be what was meant.
template <class Range>
std::string nearest(std::string_view word, const Range& known);
/// Bytes inserted, removed, replaced, or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest(std::string_view word, const Range& known) {
    std::string best;
    std::size_t best_distance = word.size() / 3 + 1;
    for (const auto& candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

} // namespace queen::settings
