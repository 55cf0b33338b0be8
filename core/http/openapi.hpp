#pragma once
#include <string_view>

namespace queen::http {
/// core/http/openapi.json as it was when the program was built.
std::string_view openapi_document() noexcept;
} // namespace queen::http
