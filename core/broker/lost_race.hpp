#pragma once
#include "base/result.hpp"

namespace queen::broker {

/// Whether the statement certainly took no effect and may well do so when it is sent again.
inline bool lost_a_race(const Error& error) {
    return error.sqlstate == "40001" || error.sqlstate == "40P01" ||
           error.sqlstate == "23503"; // what a row refers to was deleted meanwhile
}

} // namespace queen::broker
