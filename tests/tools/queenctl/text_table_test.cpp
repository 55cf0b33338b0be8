#include "queenctl/text_table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace queen::ctl {
namespace {

TEST(TextTable, WidthIsWhatATerminalShows) {
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("é"), 1u);
    EXPECT_EQ(display_width("e\xcc\x81"), 1u); // e and a combining acute
    EXPECT_EQ(display_width("日本"), 4u);
    EXPECT_EQ(display_width("😀"), 2u);
    EXPECT_EQ(display_width(""), 0u);
}

TEST(TextTable, PrintableTextCannotActOnATerminal) {
    EXPECT_EQ(printable("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");          // CSI as one C1 control
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae"); // right-to-left override
    EXPECT_EQ(printable("é日😀"), "é日😀");
    EXPECT_EQ(printable("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd");
    EXPECT_EQ(printable("\xe6\x97"), "\xef\xbf\xbd\xef\xbf\xbd"); // cut in the middle
    EXPECT_EQ(printable("\x80 ok"), "\xef\xbf\xbd ok");
}

TEST(TextTable, CutsBetweenCharactersAndWithinTheColumns) {
    EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
    EXPECT_EQ(cut_to("abcdefg", 6), "abcde…");
    EXPECT_EQ(cut_to("日本語", 5), "日本…");
    EXPECT_EQ(cut_to("日本語", 4), "日…");
    EXPECT_EQ(display_width(cut_to("日本語", 4)), 3u);
}

TEST(TextTable, AlignsTextLeftAndNumbersRight) {
    TextTable table({{"NAME"}, {"N", true}, {"LAST"}});
    table.add({"日本", "5", "x"});
    table.add({"a\nb", "12345"}); // a missing cell is empty
    std::ostringstream out;
    table.print(out);
    EXPECT_EQ(out.str(), "NAME        N  LAST\n"
                         "日本        5  x\n"
                         "a\\x0ab  12345\n");
}

} // namespace
} // namespace queen::ctl
