#pragma once
#include <chrono>

namespace queen::bench {

/// Lets time pass: for stretches of a given length, which are what a scenario measures.
void pause(std::chrono::nanoseconds time);

} // namespace queen::bench
