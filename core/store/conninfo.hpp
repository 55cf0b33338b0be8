#pragma once
#include "base/result.hpp"

#include <string>

namespace queen::store {

/// The connection settings as libpq reads them (URI or keyword list), with our defaults for what
/// was not said: application name, UTF-8, a bounded connect, and the probes that find a half-open
/// TCP link in 25 s whether idle or waiting and in 20 s while sending (K32). What the operator set
/// wins.
/// @errors invalid_argument: libpq's own sentence
Result<std::string> complete_conninfo(const std::string& url);

/// Host, port, user and database for log lines; never a password.
std::string describe_conninfo(const std::string& conninfo);

} // namespace queen::store
