#pragma once
#include "base/result.hpp"

#include <chrono>
#include <string>

namespace queen::auth {

/// The body of a GET, at most 1 MiB. Only 200 counts and nothing is followed elsewhere. With https
/// the server has to prove its name to the system's root certificates (SSL_CERT_FILE and
/// SSL_CERT_DIR name others).
/// @param timeout of each step on the way: connecting, sending, each piece of the answer; the
/// answer as a whole may take twice as long
/// @thread any; blocks
/// @errors unavailable, one sentence that names the address
Result<std::string> fetch(const std::string& url, std::chrono::milliseconds timeout);

} // namespace queen::auth
