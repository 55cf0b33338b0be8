#include "queenctl/json_text.hpp"

#include <gtest/gtest.h>

namespace queen::ctl {
namespace {

TEST(JsonText, WritesWhatItReadOnOneLine) {
    const std::string text =
        R"({"a":[1,2.50,-0.0,1e400,9007199254740993],"b":{"c":null,"d":true,"e":"\"\\\n"},"f":[],"g":{}})";
    const auto document = json::Document::parse(text);
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(to_json(document->root()), text);
}

TEST(JsonText, PlainTextIsForPeople) {
    const auto document = json::Document::parse(R"({"s":"x","n":1,"z":null,"o":{"p":[1]}})");
    const json::Value root = document->root();
    EXPECT_EQ(to_plain(root["s"]), "x");
    EXPECT_EQ(to_plain(root["n"]), "1");
    EXPECT_EQ(to_plain(root["z"]), "");
    EXPECT_EQ(to_plain(root["absent"]), "");
    EXPECT_EQ(to_plain(root["o"]), R"({"p":[1]})");
}

TEST(JsonText, PathsFollowMembers) {
    const auto document = json::Document::parse(R"({"a":{"b":{"c":5}},"x":1})");
    EXPECT_EQ(at_path(document->root(), "a.b.c").integer(), 5);
    EXPECT_TRUE(at_path(document->root(), "a.x.c").is(json::Kind::missing));
    EXPECT_TRUE(at_path(document->root(), "x.y").is(json::Kind::missing));
    EXPECT_TRUE(at_path(document->root(), "").is(json::Kind::missing));
}

TEST(JsonText, ADocumentIsExactlyOne) {
    EXPECT_TRUE(is_json(" [1] "));
    EXPECT_FALSE(is_json("[1] [2]"));
    EXPECT_FALSE(is_json(""));
    EXPECT_FALSE(is_json("NaN"));
    EXPECT_FALSE(is_json(std::string(100'000, '['))); // deeper than any reader goes
}

} // namespace
} // namespace queen::ctl
