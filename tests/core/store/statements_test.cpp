#include "store/statements.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace queen::store {
namespace {

/// Two statements of one name would run each other's text on every link but the first.
TEST(Statements, EachHasANameOfItsOwn) {
    std::set<std::string> names;
    for (const Statement* statement : statements::all()) {
        EXPECT_TRUE(names.insert(statement->name).second) << statement->name;
        EXPECT_LT(names.rbegin()->size(), 64u) << "longer ones are cut by the server";
    }
}

} // namespace
} // namespace queen::store
