#pragma once
#include "app/child_process.hpp"
#include "base/result.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace queen::app {

/// Makes `path` and its missing parents when needed and gives its canonical form.
/// @param account who must be able to pass through it: every parent is tried as that user
/// @errors invalid_argument (not a directory), unavailable (no space), internal (access: names the
///         directory that bars the way)
Result<std::string> open_data_directory(const std::string& path, const Account& account);

/// Takes the lock of the directory for the life of the descriptor. A killed owner frees it.
/// @errors conflict: "data directory P is in use by process N"
Result<UniqueFd> lock_data_directory(const std::string& path);

/// Replaces `path` as a whole: a crash leaves the old or the new text.
Result<void> replace_file(const std::string& path, const std::string& text, const Account& owner);

/// What PostgreSQL keeps in postmaster.pid.
struct PostmasterFile {
    pid_t pid = 0;
    std::string socket_folder; ///< empty while the server has not come that far
};
std::optional<PostmasterFile> read_postmaster_file(const std::string& cluster);

enum class Liveness {
    none,       ///< nobody works on the cluster; a zombie does not
    postmaster, ///< the process named in postmaster.pid is this cluster's postmaster
    dying,      ///< it has ended, and others still work on the cluster or may do so
    unknown,    ///< its number belongs to somebody else and we may not look whether others are left
};
/// Who, if anybody, works on `cluster`, by /proc.
Liveness cluster_liveness(const std::string& cluster, pid_t postmaster, const Account& account);

} // namespace queen::app
