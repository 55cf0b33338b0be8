#pragma once
#include "queenctl/queenctl.hpp"
#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

namespace queen::ctl {

inline void PrintTo(Exit exit, std::ostream* out) {
    *out << "exit " << static_cast<int>(exit);
}

namespace testing {

/// What a command line did.
struct Outcome {
    Exit exit = Exit::ok;
    std::string out, err;
    std::vector<std::chrono::milliseconds> pauses;
};

/// Runs a command line in this process. Pauses are noted, not waited for; each moves the clock.
inline Outcome command_line(const std::vector<std::string>& words, const std::string& input = {},
                            const settings::Environment& env = {{"HOME", "/home/ada"}},
                            bool out_is_terminal = false) {
    Outcome outcome;
    std::istringstream in(input);
    std::ostringstream out, err;
    queen::test::ManualClock clock;
    Terminal terminal{in,
                      out,
                      err,
                      out_is_terminal,
                      false,
                      clock,
                      [&](std::chrono::milliseconds time) {
                          outcome.pauses.push_back(time);
                          clock.advance(time);
                      },
                      env};
    outcome.exit = run(words, terminal);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
}

} // namespace testing
} // namespace queen::ctl
