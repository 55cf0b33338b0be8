#include "base/json.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

namespace queen::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Writes events down, with the bytes that their positions slice out of the text.
class Recorder : public Events {
public:
    explicit Recorder(std::string_view text) : text_(text) {}
    std::vector<std::string> log;

    bool null(std::size_t begin, std::size_t end) override { return add("null", begin, end); }
    bool boolean(bool value, std::size_t begin, std::size_t end) override {
        return add(value ? "true" : "false", begin, end);
    }
    bool number(std::string_view text, std::size_t begin, std::size_t end) override {
        return add("number " + std::string(text), begin, end);
    }
    bool string(std::string_view value, std::size_t begin, std::size_t end) override {
        return add("string " + std::string(value), begin, end);
    }
    bool key(std::string_view name) override { return add("key " + std::string(name)); }
    bool begin_object(std::size_t begin) override {
        begins_.push_back(begin);
        return add("begin object");
    }
    bool end_object(std::size_t end) override { return close("end object", end); }
    bool begin_array(std::size_t begin) override {
        begins_.push_back(begin);
        return add("begin array");
    }
    bool end_array(std::size_t end) override { return close("end array", end); }

protected:
    virtual bool add(std::string what) {
        log.push_back(std::move(what));
        return true;
    }

private:
    bool add(const std::string& what, std::size_t begin, std::size_t end) {
        return add(what + " <" + std::string(text_.substr(begin, end - begin)) + ">");
    }
    bool close(const std::string& what, std::size_t end) {
        const std::size_t begin = begins_.back();
        begins_.pop_back();
        return add(what, begin, end);
    }

    std::string_view text_;
    std::vector<std::size_t> begins_;
};

std::vector<std::string> events_of(std::string_view text) {
    Recorder recorder(text);
    const auto parsed = parse(text, recorder);
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message << " in " << text.substr(0, 200);
    return recorder.log;
}

/// The error's text; "" when it parses.
std::string error_of(std::string_view text) {
    Recorder recorder(text);
    const auto parsed = parse(text, recorder);
    if (parsed) {
        return "";
    }
    EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
    return parsed.error().message;
}

TEST(Json, EventsCarryExactBytePositions) {
    EXPECT_THAT(events_of(R"( { "a" : [ 1 , -2.50e+1 , "x\ty" , true,false , null ] ,"b":{ } } )"),
                ElementsAre("begin object", "key a", "begin array", "number 1 <1>",
                            "number -2.50e+1 <-2.50e+1>", "string x\ty <\"x\\ty\">", "true <true>",
                            "false <false>", "null <null>",
                            R"(end array <[ 1 , -2.50e+1 , "x\ty" , true,false , null ]>)", "key b",
                            "begin object", "end object <{ }>",
                            R"(end object <{ "a" : [ 1 , -2.50e+1 , "x\ty" , true,false , null ] )"
                            R"(,"b":{ } }>)"));
}

// RapidJSON's iterative mode reports EndObject and EndArray before it consumes the bracket.
TEST(Json, ContainersEndBehindTheirBracket) {
    EXPECT_THAT(events_of("[[],{}]"),
                ElementsAre("begin array", "begin array", "end array <[]>", "begin object",
                            "end object <{}>", "end array <[[],{}]>"));
    EXPECT_THAT(events_of("{\"a\":{\"b\":{}}}"),
                ElementsAre("begin object", "key a", "begin object", "key b", "begin object",
                            "end object <{}>", "end object <{\"b\":{}}>",
                            "end object <{\"a\":{\"b\":{}}}>"));
}

TEST(Json, PositionsOfStringsIncludeQuotesAndEscapes) {
    EXPECT_THAT(events_of(R"(["","\"","a\\","\u00e9é",",:[{"])"),
                ElementsAre("begin array", R"(string  <"">)", R"(string " <"\"">)",
                            R"(string a\ <"a\\">)", R"(string éé <"\u00e9é">)",
                            R"(string ,:[{ <",:[{">)",
                            R"(end array <["","\"","a\\","\u00e9é",",:[{"]>)"));
}

TEST(Json, ARootMayBeAnyValue) {
    EXPECT_THAT(events_of(" 7 "), ElementsAre("number 7 <7>"));
    EXPECT_THAT(events_of("\"s\""), ElementsAre("string s <\"s\">"));
    EXPECT_THAT(events_of("\n\tnull\r"), ElementsAre("null <null>"));
}

// K23: digits are kept, whatever a double would make of them.
TEST(Json, NumbersKeepTheirDigits) {
    for (const std::string_view number :
         {"0", "-0", "-0.0", "1.0", "9007199254740993", "18446744073709551615",
          "18446744073709551616", "-9223372036854775809", "0.1000000000000000055511151231257827",
          "1e308", "1e309", "1e400", "-1e400", "1E+999999999999999999999", "1e-400",
          "1e-99999999999999999999", "123456789012345678901234567890"}) {
        EXPECT_THAT(events_of(number), ElementsAre("number " + std::string(number) + " <" +
                                                   std::string(number) + ">"));
    }
    const std::string digits(400, '9');
    EXPECT_THAT(events_of(digits), ElementsAre("number " + digits + " <" + digits + ">"));
    const std::string fraction = digits + "." + digits + "e" + "10";
    EXPECT_THAT(events_of(fraction), ElementsAre("number " + fraction + " <" + fraction + ">"));
}

// A number beyond a double makes the parser start over: nothing may be reported twice or be lost.
TEST(Json, EventsAroundHugeNumbersComeOnceAndInOrder) {
    EXPECT_THAT(
        events_of(R"({"i":1,"e\"1e999":1e400,"s":"1e400 \\\" 1e400","l":[-2e999,{"x":3e999},4]})"),
        ElementsAre("begin object", "key i", "number 1 <1>", "key e\"1e999", "number 1e400 <1e400>",
                    "key s", R"(string 1e400 \" 1e400 <"1e400 \\\" 1e400">)", "key l",
                    "begin array", "number -2e999 <-2e999>", "begin object", "key x",
                    "number 3e999 <3e999>", "end object <{\"x\":3e999}>", "number 4 <4>",
                    "end array <[-2e999,{\"x\":3e999},4]>",
                    R"(end object <{"i":1,"e\"1e999":1e400,"s":"1e400 \\\" 1e400",)"
                    R"("l":[-2e999,{"x":3e999},4]}>)"));
}

TEST(Json, ErrorsBehindAHugeNumberAreStillFound) {
    EXPECT_NE(error_of("[1e400,]"), "");
    EXPECT_NE(error_of("[1e400"), "");
    EXPECT_NE(error_of("[1e400,1e]"), "");
    EXPECT_NE(error_of("[1e400,01e400]"), "");
    EXPECT_NE(error_of("[1e400,-]"), "");
    EXPECT_NE(error_of("[1e400x]"), "");
    EXPECT_NE(error_of("[1e400,1-0E309043]"), ""); // two numbers run together are none
    EXPECT_NE(error_of("[1e400,1-1e400]"), "");
    EXPECT_NE(error_of("[1e400,--1e400]"), "");
    EXPECT_NE(error_of("[1e400,+1e400]"), "");
    EXPECT_NE(error_of("[1e400,012345]"), "");
    EXPECT_NE(error_of("[1e400,1.5.1e400]"), "");
    EXPECT_NE(error_of("[1e400,1e5e400]"), "");
    EXPECT_NE(error_of("[1e400 1e400]"), "");
    EXPECT_NE(error_of("[1e400,\"\\udc00\"]"), "");
    EXPECT_NE(error_of("[1e400,\"abc"), "");
    EXPECT_NE(error_of("[1e400,\"abc\\"), "");
    EXPECT_NE(error_of("1e400 1"), "");
}

// Reading on must not start over for each digit.
TEST(Json, LongNumbersBehindAHugeOneCostTheirLengthOnly) {
    const std::string digits(4'000'000, '7');
    EXPECT_NE(error_of("[1e400," + digits + ".]"), "");
    EXPECT_EQ(error_of("[1e400," + digits + "]"), "");
}

TEST(Json, RefusesWhatIsNotJson) {
    for (const std::string_view text :
         {"",          " ",         "tru",       "True",      "nul",
          "01",        "+1",        ".5",        "1.",        "1e",
          "1e+",       "-",         "0x1",       "NaN",       "-NaN",
          "Infinity",  "-Infinity", "Inf",       "{",         "}",
          "[",         "]",         "[1",        "[1,",       "[1,]",
          "[,1]",      "[1 2]",     "{\"a\"}",   "{\"a\":}",  "{\"a\":1,}",
          "{a:1}",     "{1:1}",     "{\"a\" 1}", "{'a':1}",   "'a'",
          "\"",        "\"\\",      "\"\\q\"",   "\"\\u12\"", "\"\\u12g4\"",
          "\"a\nb\"",  "\"a\tb\"",  "/* c */ 1", "1 // c",    "\xEF\xBB\xBF{}",
          "\xC2\xA0{}"}) {
        EXPECT_NE(error_of(text), "") << text;
    }
}

TEST(Json, RefusesWhatFollowsTheValue) {
    for (const std::string_view text :
         {"1 2", "{} {}", "[]]", "{}}", "null,", "\"a\"b", "{}\n\nx"}) {
        EXPECT_NE(error_of(text), "") << text;
    }
}

// For RapidJSON a NUL byte is the end of the text, wherever it stands.
TEST(Json, ANulByteIsNoEndOfTheText) {
    EXPECT_THAT(error_of(std::string_view("{}\0garbage", 10)), HasSubstr("(at byte 2)"));
    EXPECT_NE(error_of(std::string_view("{}\0", 3)), "");
    EXPECT_NE(error_of(std::string_view("\0{}", 3)), "");
    EXPECT_NE(error_of(std::string_view("[1,\0002]", 6)), "");
    EXPECT_NE(error_of(std::string_view("\"a\0b\"", 5)), "");
    EXPECT_NE(error_of(std::string_view("[1e400]\0", 8)), "");
}

TEST(Json, TheEscapeOfNulDecodesToANulByte) {
    const std::string expected = std::string("string a\0b", 10) + R"( <"a\u0000b">)";
    EXPECT_THAT(events_of(R"("a\u0000b")"), ElementsAre(expected));
    EXPECT_THAT(events_of(R"({"\u0000":1})"),
                ElementsAre("begin object", std::string("key \0", 5), "number 1 <1>",
                            R"(end object <{"\u0000":1}>)"));
}

TEST(Json, PairedSurrogateEscapesAreOneCharacter) {
    EXPECT_THAT(events_of(R"("\ud83d\uDE00")"),
                ElementsAre("string \xF0\x9F\x98\x80 <\"\\ud83d\\uDE00\">"));
}

TEST(Json, ALoneSurrogateEscapeIsAnError) {
    for (const std::string_view text :
         {R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83dA")", R"("\ud83d\ud83d")",
          R"("\ude00")", R"("a\udc00b")", R"("\udfff")", R"("é\ud7ff\udc00")", R"({"\ude00":1})",
          R"(["\ude00\ud83d"])"}) {
        EXPECT_THAT(error_of(text), HasSubstr("surrogate")) << text;
    }
    EXPECT_EQ(error_of(R"("\ud7ff\ue000")"), "");
}

TEST(Json, RefusesStringsThatAreNotUtf8) {
    for (const std::string_view bytes :
         {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xE0\x9F\xBF",
          "\xE2\x82", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xFE"}) {
        EXPECT_NE(error_of("\"" + std::string(bytes) + "\""), "");
        EXPECT_NE(error_of("{\"" + std::string(bytes) + "\":1}"), "");
    }
}

TEST(Json, DepthIsLimited) {
    const auto nested = [](std::size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_EQ(error_of(nested(kMaxDepth)), "");
    EXPECT_THAT(error_of(nested(kMaxDepth + 1)), HasSubstr("Nested too deeply"));
    std::string objects;
    for (std::size_t i = 0; i <= kMaxDepth; ++i) {
        objects += "{\"a\":";
    }
    EXPECT_THAT(error_of(objects), HasSubstr("Nested too deeply"));
    // Siblings are not depth.
    std::string siblings = "[";
    for (std::size_t i = 0; i < 2 * kMaxDepth; ++i) {
        siblings += "[],";
    }
    EXPECT_EQ(error_of(siblings + "{}]"), "");
}

TEST(Json, AMillionNestedArraysAreAnErrorAndNoCrash) {
    EXPECT_THAT(error_of(std::string(1'000'000, '[')), HasSubstr("Nested too deeply"));
    EXPECT_THAT(error_of("[1e400," + std::string(1'000'000, '[')), HasSubstr("Nested too deeply"));
}

TEST(Json, ErrorsNameTheByte) {
    EXPECT_THAT(error_of("[1, x]"), HasSubstr("(at byte 4)"));
    EXPECT_THAT(error_of("[1,\n\"\\q\"]"), HasSubstr("(at byte 5)"));
}

/// Stops at the event it is told to.
class Stopper final : public Recorder {
public:
    Stopper(std::string_view text, std::string event) : Recorder(text), event_(std::move(event)) {}

private:
    bool add(std::string what) override {
        const bool go_on = what != event_;
        Recorder::add(std::move(what));
        return go_on;
    }
    std::string event_;
};

TEST(Json, AHandlerMayStopAtAnyEvent) {
    constexpr std::string_view kText = R"({"a":[1,"s",true,null,1e400,2e400]})";
    const std::vector<std::string> all = events_of(kText);
    ASSERT_EQ(all.size(), 11u);
    for (std::size_t i = 0; i < all.size(); ++i) {
        Stopper stopper(kText, all[i]);
        const auto parsed = parse(kText, stopper);
        ASSERT_FALSE(parsed.has_value());
        EXPECT_EQ(parsed.error().message, "stopped");
        EXPECT_EQ(stopper.log, std::vector(all.begin(), all.begin() + static_cast<long>(i) + 1));
    }
}

TEST(Json, CheckJudgesAsTheParserDoes) {
    EXPECT_TRUE(check(R"([{"a":"b"},1.5,-1e400,true,null])"));
    for (const auto* text : {"", "{", "[1,]", "1 2", "\"\\ud800\""}) {
        const auto checked = check(text);
        ASSERT_FALSE(checked) << text;
        Recorder recorder(text);
        EXPECT_EQ(checked.error().message, parse(text, recorder).error().message) << text;
    }
}

} // namespace
} // namespace queen::json
