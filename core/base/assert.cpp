#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace queen {

// Straight to stderr: the logger may be what is broken, or not there yet.
void assertion_failed(const char* condition, const char* text, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", file, line, condition, text);
    std::fflush(stderr);
    std::abort();
}

} // namespace queen
