#pragma once
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::http {

/// The parameters of a query string, decoded once ('+' is a space). A reader asks for those it
/// knows; the others are ignored. A known one that is repeated or malformed is an error that says
/// what is allowed.
/// @source QRY-1
class Query {
public:
    /// @errors invalid_argument on a bad escape or bytes that are not UTF-8
    static Result<Query> parse(std::string_view text);

    /// @errors invalid_argument when repeated
    Result<std::optional<std::string_view>> text(std::string_view name) const;
    /// `allowed` ends the sentence "<name> must be …" of an error, which numbers beyond 32 bits are
    /// as well: "a whole number from 1 to 10000".
    Result<std::optional<std::int32_t>> integer(std::string_view name,
                                                std::string_view allowed) const;
    /// Only `true` and `false`.
    Result<std::optional<bool>> boolean(std::string_view name) const;

private:
    std::vector<std::pair<std::string, std::string>> parameters_;
};

/// "<name> must be <allowed>, got \"<value>\"", long values cut.
Error not_allowed(std::string_view name, std::string_view allowed, std::string_view value);

} // namespace queen::http
