#pragma once
#include "base/result.hpp"

#include <optional>
#include <string>

namespace queen::app {

/// Oldest major version of PostgreSQL whose SQL the schema is written for.
inline constexpr int kOldestPostgres = 15;

struct ServerPackage {
    int major = 0;
    std::string bin; ///< folder with `postgres` and `initdb`
};

/// Finds PostgreSQL's server programs under `root` (Debian: /usr/lib/postgresql/<major>/bin).
/// @param major_of_data the version that wrote an existing cluster, which alone can read it;
///        nullopt picks the newest of at least kOldestPostgres
/// @errors unavailable, with one line that names what is there and what to install
Result<ServerPackage> find_server(const std::string& root, std::optional<int> major_of_data);

} // namespace queen::app
