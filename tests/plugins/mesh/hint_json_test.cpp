#include "shared/hint_json.hpp"

#include <gtest/gtest.h>

namespace queen::hint_json {
namespace {

TEST(HintJson, TextsAreEscapedAsJsonWantsThem) {
    std::string out;
    append_text(out, "a\"b\\c\x01\x1f\tü");
    EXPECT_EQ(out, "\"a\\\"b\\\\c\\u0001\\u001f\\u0009ü\"");
}

TEST(HintJson, WhatIsWrittenReadsBack) {
    plugin::Hint hint;
    hint.queue = "q\"\\ü";
    hint.partition = "p";
    hint.tenant = "t";
    hint.group = "g";
    std::string json = "{\"items\":[{";
    append_names(json, hint, true);
    json += "}]}";
    Reading reading;
    ASSERT_TRUE(reading.read(json));
    ASSERT_EQ(reading.items().size(), 1u);
    EXPECT_EQ(reading.items()[0].queue, hint.queue);
    EXPECT_EQ(reading.items()[0].partition, "p");
    EXPECT_EQ(reading.items()[0].tenant, "t");
    EXPECT_EQ(reading.items()[0].group, "g");
}

TEST(HintJson, ME16_UnknownFieldsOfEveryShapeAreSkipped) {
    Reading reading;
    ASSERT_TRUE(reading.read(
        R"({"new":{"queue":"no","items":[{"queue":"no"}]},"list":[[{"queue":"no"}]],"n":1.5e300,)"
        R"("queue":"yes","items":[{"deep":{"queue":"no"},"queue":"q","more":[1,{"queue":"no"}],)"
        R"("partition":"p","null":null},{"partition":7,"queue":"r"}],"enabled":true})"));
    EXPECT_EQ(reading.top().queue, "yes");
    EXPECT_EQ(reading.top().enabled, true);
    ASSERT_EQ(reading.items().size(), 2u);
    EXPECT_EQ(reading.items()[0].queue, "q");
    EXPECT_EQ(reading.items()[0].partition, "p");
    EXPECT_EQ(reading.items()[1].queue, "r");
    EXPECT_EQ(reading.items()[1].partition, "");
}

TEST(HintJson, WhatIsNoObjectIsRefused) {
    Reading reading;
    for (const std::string_view text :
         {"", "7", "[]", "\"x\"", "{", "{}x", "{\"a\":}", "{\"a\":\"\xff\"}", "nul", "{}{}"}) {
        EXPECT_FALSE(reading.read(text)) << text;
    }
    EXPECT_FALSE(reading.read(std::string_view("{}\0{}", 5)));
    EXPECT_TRUE(reading.read("{}"));
    EXPECT_TRUE(reading.read(" {\"items\":[]} "));
}

TEST(HintJson, DepthIsBounded) {
    std::string text = "{\"a\":";
    const std::string deep(1'000'000, '[');
    Reading reading;
    EXPECT_FALSE(reading.read(text + deep));
    EXPECT_TRUE(reading.read(text + std::string(kMaxDepth - 1, '[') +
                             std::string(kMaxDepth - 1, ']') + "}"));
    EXPECT_FALSE(
        reading.read(text + std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']') + "}"));
}

TEST(HintJson, ItemsBeyondTheMostAreCounted) {
    std::string text = "{\"items\":[{\"queue\":\"q\"}";
    for (std::size_t i = 1; i < kMaxItems + 5; ++i) {
        text += ",{\"queue\":\"q\"}";
    }
    text += "]}";
    Reading reading;
    ASSERT_TRUE(reading.read(text));
    EXPECT_EQ(reading.items().size(), kMaxItems);
    EXPECT_EQ(reading.skipped(), 5u);
}

TEST(HintJson, NamesAreThoseOfTheBroker) {
    EXPECT_TRUE(is_name("orders"));
    EXPECT_TRUE(is_name("ü €"));
    EXPECT_TRUE(is_name(std::string(kMaxName, 'x')));
    EXPECT_FALSE(is_name(""));
    EXPECT_FALSE(is_name(std::string(kMaxName + 1, 'x')));
    EXPECT_FALSE(is_name("a\x1f"));
    EXPECT_FALSE(is_name(std::string_view("a\0b", 3)));
    EXPECT_FALSE(is_name("a\x7f"));
    EXPECT_FALSE(is_name("a\xc2\x85")) << "a C1 control";
    EXPECT_FALSE(is_name("a\xed\xa0\x80")) << "a lone surrogate";
}

TEST(HintJson, ME13_OnlyAUuidIsATenant) {
    EXPECT_EQ(tenant_of("0190A1B2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
              "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
    for (const std::string_view text :
         {"", "default", "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5g",
          "0190a1b2-c3d4-7e5f-8a9b_0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b0"}) {
        EXPECT_EQ(tenant_of(text), "") << text;
    }
}

} // namespace
} // namespace queen::hint_json
