// settings/connection.hpp - how the database is named: checks, masks, and the PG_* variables.
#pragma once
#include "base/result.hpp"
#include "settings/settings.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace queen::settings {

/// Checks a libpq URI or keyword list with libpq's own parser. The message never repeats the text:
/// it may hold a password.
/// @errors invalid_argument
Result<void> check_connection(const std::string& text);

/// The connection as a keyword list in which no secret is left, for people.
std::string masked_connection(const std::string& text);

/// The content of the file a `file:PATH` reference names, without trailing blanks. A relative path
/// starts at `folder`.
/// @errors invalid_argument
Result<std::string> read_reference(std::string_view reference, const std::string& folder);

/// What PG_HOST, PG_PORT, PG_USER, PG_PASSWORD, PG_DATABASE (or PG_DB), PG_USE_SSL,
/// PG_SSL_REJECT_UNAUTHORIZED and PG_SSL_ROOT_CERT select together.
struct EnvironmentConnection {
    std::string variable; ///< the first one that is set, for messages
    std::string keywords; ///< a libpq keyword list
};
/// @return nullopt when none is set; problems are added for values that cannot be used
/// @source ENV-5
std::optional<EnvironmentConnection> environment_connection(const Environment& env,
                                                            Problems& problems);

/// Checks that PEM text holds at least one whole certificate: a broken one would otherwise show as
/// a database that cannot be reached.
/// @errors invalid_argument
Result<void> check_certificates(std::string_view pem);

} // namespace queen::settings
