#pragma once
#include "queenctl/terminal.hpp"

#include <span>
#include <string>

namespace queen::ctl {

/// Runs one command line (without the program's name).
Exit run(std::span<const std::string> words, Terminal& terminal);

} // namespace queen::ctl
