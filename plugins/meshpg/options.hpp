// What an operator sets. plugin.cpp fills it from the option table.
#pragma once
#include <queen/plugin/types.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace queen::meshpg {

struct Options {
    bool enabled = true;
    std::string channel = "queen_mesh";
    std::string conninfo; ///< libpq's; holds a password, never logged
    std::string server_id;
    Nanoseconds heartbeat = std::chrono::seconds(5);
    Nanoseconds dead_threshold = std::chrono::seconds(15);
    std::size_t hints_per_second = 200'000; ///< taken from one session

    // Fixed for operators, smaller in tests.
    Nanoseconds flush = std::chrono::milliseconds(20);
    Nanoseconds first_retry = std::chrono::milliseconds(250); ///< doubles up to last_retry
    Nanoseconds last_retry = std::chrono::seconds(5);
    Nanoseconds patience = std::chrono::seconds(10); ///< for a connect, and for a statement
    std::size_t pending = 200'000;                   ///< coalesced hints that wait
    std::size_t payload = 7'900;                     ///< bytes; PostgreSQL takes less than 8,000
    std::size_t payloads = 64;                       ///< in one statement
};

/// @errors ConfigError for values that contradict each other, and for a channel that is no plain
/// lower-case name
void check(const Options& options);

} // namespace queen::meshpg
