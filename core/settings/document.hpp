#pragma once
#include <string>

namespace queen::settings {
/// The documented default file, from the table: every option with its meaning, what is allowed, its
/// environment variables and its default. config/queen.yaml is this text (a test compares them).
std::string default_document();
} // namespace queen::settings
