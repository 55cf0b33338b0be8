#pragma once
#include <string_view>

namespace queen::settings {
/// config/queen.yaml as it was when the program was built.
std::string_view built_in_yaml() noexcept;
} // namespace queen::settings
