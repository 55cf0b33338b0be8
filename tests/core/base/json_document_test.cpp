#include "base/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace queen::json {
namespace {

Document document(std::string_view text) {
    auto parsed = Document::parse(text);
    EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
    return std::move(*parsed);
}

TEST(JsonDocument, ValuesAreFoundByKeyAndIndex) {
    const Document doc = document(
        R"({"items":[{"queue":"orders","n":5},null,"x"],"wait":true,"none":null,"empty":{}})");
    const Value root = doc.root();
    EXPECT_EQ(root.kind(), Kind::object);
    EXPECT_EQ(root.size(), 4u);
    EXPECT_EQ(root["items"].size(), 3u);
    EXPECT_EQ(root["items"].at(0)["queue"].string(), "orders");
    EXPECT_EQ(root["items"].at(0)["n"].integer(), 5);
    EXPECT_TRUE(root["items"].at(1).is(Kind::null));
    EXPECT_EQ(root["items"].at(2).string(), "x");
    EXPECT_EQ(root["wait"].boolean(), true);
    EXPECT_TRUE(root["none"].is(Kind::null));
    EXPECT_TRUE(root["empty"].is(Kind::object));
    EXPECT_EQ(root["empty"].size(), 0u);
    EXPECT_EQ(root.key_at(1), "wait");
    EXPECT_EQ(root.value_at(1).boolean(), true);
}

TEST(JsonDocument, WhatIsNotThereIsMissingAndAnswersNothing) {
    const Document doc = document(R"({"a":[1]})");
    for (const Value value :
         {Value{}, doc.root()["b"], doc.root()["a"]["b"], doc.root()["a"].at(1), doc.root().at(0),
          doc.root()["a"].at(0).at(0), doc.root()["b"]["c"].at(3)["d"], doc.root().value_at(1)}) {
        EXPECT_EQ(value.kind(), Kind::missing);
        EXPECT_EQ(value.size(), 0u);
        EXPECT_EQ(value.string(), "");
        EXPECT_EQ(value.raw_number(), "");
        EXPECT_EQ(value.integer(), std::nullopt);
        EXPECT_EQ(value.boolean(), std::nullopt);
        EXPECT_EQ(value.key_at(0), "");
    }
}

TEST(JsonDocument, OfRepeatedKeysTheLastCounts) {
    const Document doc = document(R"({"a":1,"b":2,"a":3})");
    EXPECT_EQ(doc.root()["a"].integer(), 3);
    EXPECT_EQ(doc.root().size(), 3u);
}

TEST(JsonDocument, OwnsItsText) {
    auto text = std::make_unique<std::string>(R"({"plain":"abc","esc\u0061ped":"a\nb","n":12.50})");
    Document doc = document(*text);
    text->assign(text->size(), '#');
    text.reset();
    EXPECT_EQ(doc.root()["plain"].string(), "abc");
    EXPECT_EQ(doc.root()["escaped"].string(), "a\nb");
    EXPECT_EQ(doc.root()["n"].raw_number(), "12.50");
}

TEST(JsonDocument, ViewsSurviveAMoveOfTheDocument) {
    Document doc = document(R"({"a":"short"})");
    const Value value = doc.root()["a"];
    const Document moved = std::move(doc);
    EXPECT_EQ(value.string(), "short");
    EXPECT_EQ(moved.root()["a"].string(), "short");
}

TEST(JsonDocument, StringsCarryNulAndKeepTheirKind) {
    const Document doc = document(R"(["a\u0000b","","5"])");
    EXPECT_EQ(doc.root().at(0).string(), std::string_view("a\0b", 3));
    EXPECT_TRUE(doc.root().at(1).is(Kind::string));
    EXPECT_EQ(doc.root().at(2).integer(), std::nullopt); // a string is no number
}

TEST(JsonDocument, KeysMayBeEmptyAndEscaped) {
    const Document doc = document(R"({"":1,"a\"b":2,"\u0000":3})");
    EXPECT_EQ(doc.root()[""].integer(), 1);
    EXPECT_EQ(doc.root()["a\"b"].integer(), 2);
    EXPECT_EQ(doc.root()[std::string_view("\0", 1)].integer(), 3);
}

TEST(JsonDocument, IntegersAreExactOrNothing) {
    const auto integer = [](std::string_view text) { return document(text).root().integer(); };
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(integer("0"), 0);
    EXPECT_EQ(integer("-0"), 0);
    EXPECT_EQ(integer("-17"), -17);
    EXPECT_EQ(integer("9223372036854775807"), kMax);
    EXPECT_EQ(integer("-9223372036854775808"), kMin);
    EXPECT_EQ(integer("9223372036854775808"), std::nullopt);
    EXPECT_EQ(integer("-9223372036854775809"), std::nullopt);
    EXPECT_EQ(integer("18446744073709551616"), std::nullopt);
    EXPECT_EQ(integer("9007199254740993"), 9007199254740993);
}

TEST(JsonDocument, AWholeNumberIsAnIntegerHoweverItIsWritten) {
    const auto integer = [](std::string_view text) { return document(text).root().integer(); };
    EXPECT_EQ(integer("5.0"), 5);
    EXPECT_EQ(integer("-5.000"), -5);
    EXPECT_EQ(integer("5e3"), 5000);
    EXPECT_EQ(integer("5E+3"), 5000);
    EXPECT_EQ(integer("1.25e2"), 125);
    EXPECT_EQ(integer("12.5e1"), 125);
    EXPECT_EQ(integer("1200e-2"), 12);
    EXPECT_EQ(integer("120.0e-1"), 12);
    EXPECT_EQ(integer("0.0012e4"), 12);
    EXPECT_EQ(integer("0.012e4"), 120);
    EXPECT_EQ(integer("100.5e1"), 1005);
    EXPECT_EQ(integer("0.0"), 0);
    EXPECT_EQ(integer("-0.0e5"), 0);
    EXPECT_EQ(integer("0e99999999999999999999"), 0);
    EXPECT_EQ(integer("922337203685477580.7e1"), 9223372036854775807);
    EXPECT_EQ(integer("-922337203685477580.8e1"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(integer("1e18"), 1'000'000'000'000'000'000);
    EXPECT_EQ(integer("1" + std::string(100, '0') + "e-100"), 1);
    EXPECT_EQ(integer("0." + std::string(99, '0') + "1e100"), 1);
    for (const std::string_view text :
         {"1.5", "0.1", "15e-1", "1e-1", "1e19", "1e20", "1e400", "-1e400", "1e-400",
          "922337203685477580.8e1", "1e99999999999999999999", "1e-99999999999999999999",
          "1.00000000000000000001", "12345678901234567890.0"}) {
        EXPECT_EQ(integer(text), std::nullopt) << text;
    }
}

TEST(JsonDocument, ErrorsComeFromTheReader) {
    const auto parsed = Document::parse(R"({"a":1,})");
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
    EXPECT_NE(parsed.error().message.find("(at byte 7)"), std::string::npos)
        << parsed.error().message;
}

TEST(JsonDocument, TheDeepestDocumentAllowedIsBuiltAndFreed) {
    const Document doc = document(std::string(kMaxDepth, '[') + "7" + std::string(kMaxDepth, ']'));
    Value value = doc.root();
    for (std::size_t i = 0; i < kMaxDepth; ++i) {
        value = value.at(0);
    }
    EXPECT_EQ(value.integer(), 7);
}

TEST(JsonDocument, ManyElementsKeepTheirOrder) {
    std::string text = "[";
    for (int i = 0; i < 100'000; ++i) {
        text += std::to_string(i) + ",";
    }
    const Document doc = document(text + "[]]");
    ASSERT_EQ(doc.root().size(), 100'001u);
    for (int i = 0; i < 100'000; ++i) {
        ASSERT_EQ(doc.root().at(static_cast<std::size_t>(i)).integer(), i);
    }
}

} // namespace
} // namespace queen::json
