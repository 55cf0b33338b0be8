#pragma once
#include <string>

namespace queen::app {

/// One line per message on standard error: `time level source text`, or a JSON object.
/// @param level Poco's word: fatal, critical, error, warning, notice, information, debug, trace
void start_logging(const std::string& level, bool json);

} // namespace queen::app
