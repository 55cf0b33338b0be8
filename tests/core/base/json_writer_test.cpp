#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <string>

namespace queen::json {
namespace {

TEST(JsonWriter, PutsTheCommas) {
    std::string out;
    Writer(out)
        .begin_object()
        .key("a")
        .begin_array()
        .integer(1)
        .string("x")
        .begin_object()
        .end_object()
        .null()
        .end_array()
        .key("b")
        .boolean(true)
        .key("c")
        .boolean(false)
        .key("d")
        .begin_array()
        .end_array()
        .key("e")
        .raw(R"({"kept" : 1.0})")
        .end_object();
    EXPECT_EQ(out, R"({"a":[1,"x",{},null],"b":true,"c":false,"d":[],"e":{"kept" : 1.0}})");
}

TEST(JsonWriter, AppendsToWhatIsThere) {
    std::string out = "before ";
    Writer(out).string("x");
    EXPECT_EQ(out, "before \"x\"");
}

TEST(JsonWriter, IntegersAreWrittenWhole) {
    std::string out;
    Writer(out)
        .begin_array()
        .integer(std::numeric_limits<std::int64_t>::min())
        .integer(std::numeric_limits<std::int64_t>::max())
        .end_array();
    EXPECT_EQ(out, "[-9223372036854775808,9223372036854775807]");
}

TEST(JsonWriter, NumbersAreTheShortestTextThatReadsBackEqual) {
    std::string out;
    Writer(out)
        .begin_array()
        .number(0.1)
        .number(-2.5)
        .number(1e300)
        .number(1.0 / 3)
        .number(3)
        .number(-std::numeric_limits<double>::denorm_min())
        .end_array();
    EXPECT_EQ(out, "[0.1,-2.5,1e+300,0.3333333333333333,3,-5e-324]");
    EXPECT_TRUE(Document::parse(out).has_value());
}

TEST(JsonWriter, EscapesWhatMustBeEscapedAndNothingElse) {
    EXPECT_EQ(quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
    EXPECT_EQ(quoted("\b\f\n\r\t"), R"("\b\f\n\r\t")");
    EXPECT_EQ(quoted(std::string_view("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
    EXPECT_EQ(quoted("é日本\xF0\x9F\x98\x80"), "\"é日本\xF0\x9F\x98\x80\"");
    EXPECT_EQ(quoted(""), "\"\"");
    std::string out;
    Writer(out).begin_object().key("a\"\n").null().end_object();
    EXPECT_EQ(out, R"({"a\"\n":null})");
}

// Error texts may be cut in the middle of a character; the answer must stay readable.
TEST(JsonWriter, BytesThatAreNotUtf8BecomeReplacementCharacters) {
    EXPECT_EQ(quoted("caf\xC3"), "\"caf\xEF\xBF\xBD\"");
    EXPECT_EQ(quoted("\xED\xA0\x80|"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\"");
}

TEST(JsonWriterDeathTest, RefusesWhatJsonDoesNotHave) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::string out;
    EXPECT_EXIT(Writer(out).number(std::nan("")), testing::KilledBySignal(SIGABRT), "no NaN");
    EXPECT_EXIT(Writer(out).number(std::numeric_limits<double>::infinity()),
                testing::KilledBySignal(SIGABRT), "no infinity");
    EXPECT_EXIT(Writer(out).end_object(), testing::KilledBySignal(SIGABRT), "not begun");
    EXPECT_EXIT(Writer(out).begin_object().key("a").end_object(), testing::KilledBySignal(SIGABRT),
                "lacks a value");
}

} // namespace
} // namespace queen::json
