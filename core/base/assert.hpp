#pragma once

namespace queen {
[[noreturn]] void assertion_failed(const char* condition, const char* text, const char* file,
                                   int line);
} // namespace queen

/// Guards an invariant in every build: logs condition, text and place, then aborts.
#define QUEEN_ASSERT(cond, text)                                                                   \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            ::queen::assertion_failed(#cond, text, __FILE__, __LINE__);                            \
        }                                                                                          \
    } while (false)
