#include "base/base64.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace queen {
namespace {

constexpr std::pair<std::string_view, std::string_view> kVectors[] = {
    // RFC 4648, section 10
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    // the two characters that differ
    {"\xFB\xFF\xBF", "+/+/"},
};

TEST(Base64, WritesAndReadsTheVectorsOfTheStandard) {
    for (const auto& [bytes, text] : kVectors) {
        EXPECT_EQ(to_base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
    }
}

TEST(Base64, TheFormOfTokensHasOtherCharactersAndNoPadding) {
    EXPECT_EQ(to_base64url("\xFB\xFF\xBF"), "-_-_");
    EXPECT_EQ(from_base64url("-_-_"), "\xFB\xFF\xBF");
    EXPECT_EQ(to_base64url("f"), "Zg");
    EXPECT_EQ(from_base64url("Zg"), "f");
    EXPECT_EQ(from_base64url("Zg=="), std::nullopt);
    EXPECT_EQ(from_base64url("+/+/"), std::nullopt);
}

TEST(Base64, AllBytesComeBack) {
    std::string bytes;
    for (int i = 0; i < 256; ++i) {
        bytes += static_cast<char>(i);
        EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
        EXPECT_EQ(from_base64url(to_base64url(bytes)), bytes);
    }
}

TEST(Base64, OneValueHasOneText) {
    for (const std::string_view text : {"Zg", "Zg=", "Zg===", "Z", "====", "Zh==", "Zm9=", "Zm 8=",
                                        "Zm8=\n", "-_-_", "Zg==Zg=="}) {
        EXPECT_EQ(from_base64(text), std::nullopt) << text;
    }
    EXPECT_EQ(from_base64url("Zh"), std::nullopt) << "bits that belong to no byte";
    EXPECT_EQ(from_base64url("Z"), std::nullopt);
}

} // namespace
} // namespace queen
