// queenctl/terminal.hpp - what a command may touch outside itself, so that tests can stand in.
#pragma once
#include "base/clock.hpp"
#include "settings/settings.hpp"

#include <chrono>
#include <functional>
#include <iosfwd>

namespace queen::ctl {

struct Terminal {
    std::istream& in;
    std::ostream& out;
    std::ostream& err;
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    const Clock& clock;
    std::function<void(std::chrono::milliseconds)> pause; ///< between two tries or looks
    settings::Environment environment;
};

/// What queenctl's end means to a script.
enum class Exit : int {
    ok = 0,
    failed = 1,      ///< the broker refused, or some messages failed
    usage = 2,       ///< the command line, or a file it names, cannot be used
    unreachable = 3, ///< no broker answered
    empty = 4        ///< pop: nothing to deliver
};

} // namespace queen::ctl
