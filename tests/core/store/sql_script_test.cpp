#include "store/embedded_sql.hpp"
#include "store/sql_script.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace queen::store {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SqlScript, SplitsAtSeparatorLinesAndCountsEmptyParts) {
    const auto steps = split_sql("-- header only\n-- @\ncreate table a();\n-- @ \r\n"
                                 "select '-- @ inside a line';\n-- @\n");
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].ordinal, 2u);
    EXPECT_EQ(steps[0].preview, "create table a()");
    EXPECT_EQ(steps[1].ordinal, 3u);
    EXPECT_THAT(steps[1].text, HasSubstr("inside a line"));
}

TEST(SqlScript, DropsGoTogetherWithWhatFollowsThem) {
    const auto steps =
        split_sql("-- why\nDROP FUNCTION a();\n-- @\n/* c */ drop function b() -- x\n"
                  "-- @\ncreate function c()\n-- @\nselect 1\n-- @\ndrop table d\n");
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_THAT(steps[0].text, HasSubstr("a()"));
    EXPECT_THAT(steps[0].text, HasSubstr("drop function b() -- x\n\n;\ncreate function c()"));
    EXPECT_EQ(steps[0].ordinal, 3u);
    EXPECT_EQ(steps[0].preview, "create function c()");
    EXPECT_THAT(steps[1].text, Not(HasSubstr("drop")));
    EXPECT_EQ(steps[2].preview, "drop table d");
}

TEST(SqlScript, ConcurrentIndexesStandAlone) {
    const auto steps =
        split_sql("drop index a;\n-- @\ncreate unique  index\n concurrently b on c(d);\n"
                  "-- @\ncreate index e on c(d)");
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_FALSE(steps[0].concurrent);
    EXPECT_TRUE(steps[1].concurrent);
    EXPECT_THAT(steps[1].text, Not(HasSubstr("drop")));
    EXPECT_FALSE(steps[2].concurrent);
}

TEST(SqlScript, PreviewsAreShortAndCutBetweenCharacters) {
    std::string text = "select '";
    for (int i = 0; i < 100; ++i) {
        text += "\u00e9";
    }
    const auto steps = split_sql(text);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_LE(steps[0].preview.size(), 85u);
    EXPECT_THAT(steps[0].preview, testing::EndsWith("\u00e9..."));
}

TEST(SqlScript, TheEmbeddedFilesAreThoseOfTheTree) {
    ASSERT_FALSE(embedded_sql().empty());
    std::string last;
    for (const SqlFile& file : embedded_sql()) {
        std::ifstream in(std::string(QUEEN_SOURCE_DIR "/sql/") + std::string(file.name));
        std::stringstream content;
        content << in.rdbuf();
        EXPECT_EQ(file.text, content.str()) << file.name;
        EXPECT_LT(last, file.name);
        last = file.name;
    }
}

} // namespace
} // namespace queen::store
