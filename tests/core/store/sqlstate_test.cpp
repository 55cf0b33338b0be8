#include "store/sqlstate.hpp"

#include <gtest/gtest.h>

namespace queen::store {
namespace {

struct Case {
    const char* sqlstate;
    Errc code;
    bool ends_the_link;
};

TEST(Sqlstate, MapsEachStateToOneCode) {
    const Case cases[] = {
        {"", Errc::transient, false}, // lost; the session knows by itself
        {"40001", Errc::transient, false},
        {"40P01", Errc::transient, false},
        {"40002", Errc::store_failed, false},
        {"55P03", Errc::transient, false},
        {"55006", Errc::store_failed, false},
        {"23503", Errc::transient,
         false}, // a queue deleted under a push: the next try makes it anew
        {"57014", Errc::timeout, false},
        {"57000", Errc::transient, false},
        {"57P01", Errc::transient, true},
        {"57P02", Errc::transient, true},
        {"57P03", Errc::transient, true},
        {"57P05", Errc::transient, true},
        {"08000", Errc::transient, true},
        {"08006", Errc::transient, true},
        {"08P01", Errc::transient, true},
        {"25006", Errc::transient, true}, // read-only: became a standby
        {"25P02", Errc::store_failed, false},
        {"53100", Errc::transient, false},
        {"53200", Errc::transient, false},
        {"53300", Errc::transient, false},
        {"58030", Errc::transient, false},
        {"22021", Errc::invalid_argument, false},
        {"22P05", Errc::invalid_argument, false},
        {"22P02", Errc::store_failed, false},
        {"23505", Errc::store_failed, false},
        {"42883", Errc::store_failed, false},
        {"P0001", Errc::store_failed, false},
        {"XX000", Errc::store_failed, false},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(errc_of_sqlstate(c.sqlstate), c.code) << c.sqlstate;
        EXPECT_EQ(ends_the_link(c.sqlstate), c.ends_the_link) << c.sqlstate;
    }
}

} // namespace
} // namespace queen::store
