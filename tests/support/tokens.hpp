#pragma once
#include <string>
#include <string_view>

namespace queen::test {

/// A token of these two JSON texts, signed with HMAC-SHA256 whatever the header says.
std::string signed_token(std::string_view header, std::string_view claims, std::string_view secret);

/// A usual one: HS256, `sub` and one role ("": none), for ever.
std::string token_of_role(std::string_view role, std::string_view secret,
                          std::string_view subject = "tester");

} // namespace queen::test
