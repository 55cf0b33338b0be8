// The checks on this very tree. checks_test.cpp shows that each of them can fail.
#include "project/checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::project {
namespace {

using testing::IsEmpty;

class ProjectTest : public testing::Test {
protected:
    const Tree tree_ = read_tree(QUEEN_SOURCE_DIR);
};

TEST_F(ProjectTest, TheTreeIsReadWhole) {
    EXPECT_TRUE(tree_.contains("CMakeLists.txt"));
    EXPECT_TRUE(tree_.contains("core/base/clock.cpp"));
    EXPECT_TRUE(tree_.contains("tests/project/project_test.cpp"));
}

TEST_F(ProjectTest, DependenciesPointDownwards) {
    EXPECT_THAT(include_arrows(tree_), IsEmpty());
}

TEST_F(ProjectTest, PluginsAreBuiltAsAVendorWould) {
    EXPECT_THAT(plugins_stand_alone(tree_), IsEmpty());
}

TEST_F(ProjectTest, TheCoreNamesNoPlugin) {
    EXPECT_THAT(core_names_no_plugin(tree_), IsEmpty());
}

TEST_F(ProjectTest, EachFolderSaysWhatItIsFor) {
    EXPECT_THAT(readmes(tree_), IsEmpty());
}

TEST_F(ProjectTest, FilesAreShortEnoughToRead) {
    EXPECT_THAT(file_sizes(tree_), IsEmpty());
}

TEST_F(ProjectTest, TimeComesFromAClockAndNobodySleeps) {
    EXPECT_THAT(clocks(tree_), IsEmpty());
}

TEST_F(ProjectTest, NothingIsCaughtAndForgotten) {
    EXPECT_THAT(silent_catches(tree_), IsEmpty());
}

TEST_F(ProjectTest, CitedRulesStandInTheirPage) {
    EXPECT_THAT(rule_citations(tree_), IsEmpty());
}

TEST_F(ProjectTest, WhatSemanticsPromiseIsTested) {
    EXPECT_THAT(proofs(tree_), IsEmpty());
}

} // namespace
} // namespace queen::project
