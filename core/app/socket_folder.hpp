#pragma once
#include "app/child_process.hpp"
#include "base/result.hpp"

#include <string>

namespace queen::app {

/// Where the server's unix socket goes: `<data>/run`, or when that path is too long for a socket
/// (107 bytes) or holds a comma (which parts hosts for libpq), a folder in /run or $XDG_RUNTIME_DIR
/// or /tmp whose name is a hash of `data`.
std::string socket_folder_for(const std::string& data, const Account& account);

/// Makes the folder, or checks that what is there is the account's own and closed to all others:
/// in a shared place somebody else may have been first, to answer in the server's name.
/// @errors conflict when it is not
Result<void> open_socket_folder(const std::string& folder, const Account& account);

} // namespace queen::app
