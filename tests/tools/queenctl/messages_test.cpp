#include "queenctl/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::ctl {
namespace {

using ::testing::HasSubstr;

Message message(MessageRules rules, const std::string& line) {
    auto maker = MessageMaker::make(std::move(rules));
    EXPECT_TRUE(maker.has_value()) << maker.error().message;
    auto read = maker->read(1, line);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    EXPECT_TRUE(read->has_value()) << "skipped";
    return read->value_or(Message{});
}

std::string fault(MessageRules rules, const std::string& line) {
    auto maker = MessageMaker::make(std::move(rules));
    const auto read = maker->read(1, line);
    return read ? "(accepted)" : read.error().message;
}

TEST(Messages, JsonLinesAreKeptByteForByteAndOthersBecomeStrings) {
    EXPECT_EQ(message({}, "{\"a\" : 1.0}").payload, "{\"a\" : 1.0}");
    EXPECT_EQ(message({}, " 12345678901234567890 ").payload, " 12345678901234567890 ");
    EXPECT_EQ(message({}, "null").payload, "null");
    EXPECT_EQ(message({}, "{\"a\":1").payload, "\"{\\\"a\\\":1\"");
    EXPECT_EQ(message({}, "GET /a \"b\"\t\xc3\xa9").payload, "\"GET /a \\\"b\\\"\\t\xc3\xa9\"");
    EXPECT_EQ(message({}, "a\r").payload, "\"a\"");
    EXPECT_EQ(message({.raw = true}, "{\"a\":1}").payload, "\"{\\\"a\\\":1}\"");
    EXPECT_EQ(message({.raw = true}, "1").payload, "\"1\"");
}

TEST(Messages, LinesWithoutTextAreSkipped) {
    auto maker = MessageMaker::make({});
    for (const char* line : {"", "\r", "  \t", " \r"}) {
        EXPECT_EQ(maker->read(1, line).value().has_value(), false) << line;
    }
}

TEST(Messages, BytesThatAreNotUtf8AreRefused) {
    EXPECT_EQ(fault({}, "\xff"), "is not UTF-8");
    EXPECT_EQ(fault({}, "\"\xed\xa0\x80\""), "is not UTF-8");
}

TEST(Messages, PartitionsComeFromOnePlace) {
    EXPECT_EQ(message({.partition = "p"}, "x").partition, "p");
    EXPECT_EQ(message({}, "x").partition, "");
    const MessageRules field{.partition_field = "a.b"};
    EXPECT_EQ(message(field, R"({"a":{"b":"x"}})").partition, "x");
    EXPECT_EQ(message(field, R"({"a":{"b":1.50}})").partition, "1.50");
    EXPECT_EQ(fault(field, R"({"a":{}})"), "no partition: has no field a.b");
    EXPECT_EQ(fault(field, R"({"a":{"b":null}})"), "no partition: has no field a.b");
    EXPECT_EQ(fault(field, R"({"a":{"b":[1]}})"),
              "no partition: field a.b is neither a text nor a number");
    EXPECT_EQ(fault(field, "plain"), "is not JSON, so it has no fields");
    const MessageRules with_default{.partition_field = "a.b", .partition_default = "d"};
    EXPECT_EQ(message(with_default, R"({"a":1})").partition, "d");
    // A field of the wrong type is a fault of the data, not a missing one.
    EXPECT_THAT(fault(with_default, R"({"a":{"b":true}})"), HasSubstr("neither"));
}

TEST(Messages, ExpressionsTakeTheirFirstGroup) {
    const MessageRules rules{.partition_regex = R"(^\S+ host=(\w+)|user=(\d+))"};
    EXPECT_EQ(message(rules, "x host=alpha y").partition, "alpha");
    EXPECT_EQ(fault(rules, "user=5"), "no partition: does not match"); // the first group did not
    EXPECT_EQ(fault(rules, "nothing"), "no partition: does not match");
    EXPECT_EQ(message({.partition_regex = "(x*)$", .partition_default = "d"}, "abc").partition,
              "d");
    EXPECT_EQ(message({.partition_regex = "(.)$"}, "ab\xc3\xa9").partition, "\xc3\xa9");
}

TEST(Messages, ExpressionsThatExplodeAreGivenUp) {
    // Either exhausts an 8 MiB stack, or years, without a bound.
    EXPECT_THAT(fault({.partition_regex = "^(a|b)*c"}, std::string(1'000'000, 'a')),
                HasSubstr("takes too many steps"));
    EXPECT_THAT(fault({.partition_regex = "^(a+)+$"}, std::string(40, 'a') + "b"),
                HasSubstr("takes too many steps"));
}

TEST(Messages, ExpressionsMustCompileAndHaveAGroup) {
    const auto why = [](const std::string& pattern) {
        const auto regex = GroupRegex::compile(pattern);
        return regex ? "(accepted)" : regex.error().message;
    };
    EXPECT_THAT(why("("), HasSubstr("does not compile"));
    EXPECT_THAT(why("[a"), HasSubstr("does not compile"));
    EXPECT_THAT(why("abc"), HasSubstr("has no (group)"));
    EXPECT_THAT(why("(?:abc)"), HasSubstr("has no (group)"));
    EXPECT_EQ(why("(?<n>a)"), "(accepted)");
}

TEST(Messages, TransactionIdsAreTheLinesOrMinted) {
    EXPECT_EQ(message({.transaction_line = true, .transaction_prefix = "f:"}, "x").transaction,
              "f:1");
    EXPECT_EQ(message({.transaction_field = "id"}, R"({"id":12})").transaction, "12");
    EXPECT_EQ(message({.transaction_regex = "id=(\\d+)"}, "id=7").transaction, "7");
    EXPECT_EQ(fault({.transaction_field = "id"}, "{}"), "no transaction id: has no field id");
    auto maker = MessageMaker::make({});
    const std::string first = maker->read(1, "x").value()->transaction;
    EXPECT_THAT(first, ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-.*"));
    EXPECT_LT(first, maker->read(2, "x").value()->transaction); // they keep the order
}

} // namespace
} // namespace queen::ctl
