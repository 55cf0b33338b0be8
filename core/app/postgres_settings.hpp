#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace queen::app {

/// Bytes this process may count on: the machine's memory, or its control group's when that is less.
std::uint64_t usable_memory();

/// The text of queen.conf: settings for a broker's load (small transactions, tables that churn).
/// @param memory bytes, see usable_memory()
/// @param extra by PostgreSQL's names; they win over ours
std::string postgres_configuration(int max_connections, bool durable, std::uint64_t memory,
                                   const std::map<std::string, std::string>& extra);

} // namespace queen::app
