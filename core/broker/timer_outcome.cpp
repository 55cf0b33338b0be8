#include "broker/timer_outcome.hpp"

#include "broker/lost_race.hpp"

namespace queen::broker {

using plugin::TimerOutcome;

TimerOutcome timer_outcome(const Error& error) noexcept {
    if (lost_a_race(error) || error.sqlstate == "55P03") {
        return TimerOutcome::contended;
    }
    switch (error.code) {
    case Errc::unavailable:
    case Errc::timeout:
    case Errc::transient:
    case Errc::overloaded:
    case Errc::shutting_down:
        return TimerOutcome::transient;
    case Errc::invalid_argument:
    case Errc::name_too_long:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::store_failed:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::internal:
    case Errc::too_large:
        break;
    }
    if (error.sqlstate == "42883") { // a broker of another version has changed the procedures
        return TimerOutcome::transient;
    }
    if (error.sqlstate.starts_with("42")) {
        return TimerOutcome::config;
    }
    // An argument that could not be sent has no SQLSTATE either, and would be refused again.
    return error.sqlstate.empty() && error.code != Errc::invalid_argument ? TimerOutcome::transient
                                                                          : TimerOutcome::permanent;
}

} // namespace queen::broker
