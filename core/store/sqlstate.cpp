#include "store/sqlstate.hpp"

#include <array>

namespace queen::store {
namespace {

struct Entry {
    std::string_view prefix; ///< five characters name one state, two a class
    Errc code;
};

/// The first match counts: single states stand before their classes.
constexpr std::array kMap{
    Entry{"57014", Errc::timeout},   // query_canceled: by our own deadline or by an operator
    Entry{"40001", Errc::transient}, // serialization_failure
    Entry{"40P01", Errc::transient}, // deadlock_detected
    Entry{"55P03", Errc::transient}, // lock_not_available
    Entry{"23503",
          Errc::transient}, // foreign_key_violation: what a row refers to was deleted meanwhile
    Entry{"25006", Errc::transient},        // read_only_sql_transaction: a standby; see below
    Entry{"22P05", Errc::invalid_argument}, // untranslatable_character: \u0000 in jsonb
    Entry{"22021", Errc::invalid_argument}, // character_not_in_repertoire: NUL or bad UTF-8 in text
    Entry{"08", Errc::transient},           // connection exception
    Entry{"53", Errc::transient},           // insufficient resources: disk, memory, connections
    Entry{"57", Errc::transient},           // operator intervention: shutdown, crash, starting up
    Entry{"58", Errc::transient},           // system error: I/O
};

} // namespace

Errc errc_of_sqlstate(std::string_view sqlstate) noexcept {
    if (sqlstate.empty()) {
        return Errc::transient;
    }
    for (const Entry& entry : kMap) {
        if (sqlstate.starts_with(entry.prefix)) {
            return entry.code;
        }
    }
    return Errc::store_failed;
}

bool ends_the_link(std::string_view sqlstate) noexcept {
    // 25006: we are talking to a standby, be it one that was a primary when the link was opened. A
    // new link goes through host list and target_session_attrs again and finds the primary.
    return sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "25006";
}

} // namespace queen::store
