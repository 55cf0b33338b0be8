#pragma once
#include "base/json.hpp"
#include "ports/timer_store.hpp"

#include <string>
#include <vector>

namespace queen::http {

/// Whose timer an answer is about: the ops have moved on by then.
struct TimerName {
    std::string queue, key;
};
std::vector<TimerName> names_of(const std::vector<TimerOp>& ops);

/// The members of one result, without the braces.
void write_timer_result(json::Writer& writer, const TimerName& name, const TimerVerdict& verdict);
/// The members of a timer that waits, without the braces; `payload` as it is stored.
void write_waiting_timer(json::Writer& writer, const std::string& queue, const WaitingTimer& timer,
                         bool payload);

} // namespace queen::http
