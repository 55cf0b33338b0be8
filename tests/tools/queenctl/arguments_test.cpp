#include "queenctl/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace queen::ctl {
namespace {

using ::testing::ElementsAre;

constexpr std::array kFlags{Flag{"batch", "N", ""}, Flag{"raw", "", ""}, Flag{"name", "TEXT", ""}};

Result<Arguments> parse(std::vector<std::string> words) {
    return Arguments::parse(words, kFlags);
}

TEST(Arguments, OptionsMayStandAnywhereAndInEitherForm) {
    const auto arguments =
        parse({"a", "--batch", "5", "-", "--name=x=y", "--raw", "--", "--batch"});
    ASSERT_TRUE(arguments.has_value()) << arguments.error().message;
    EXPECT_THAT(arguments->words(), ElementsAre("a", "-", "--batch"));
    EXPECT_EQ(arguments->text("batch"), "5");
    EXPECT_EQ(arguments->text("name"), "x=y");
    EXPECT_TRUE(arguments->has("raw"));
    EXPECT_EQ(arguments->text("absent", "fallback"), "fallback");
    EXPECT_EQ(parse({"--name", "-5"})->text("name"), "-5"); // a value may look like an option
    EXPECT_EQ(parse({"--name="})->text("name"), "");
}

TEST(Arguments, FaultsAreOneSentence) {
    EXPECT_EQ(parse({"--bacth", "5"}).error().message,
              "unknown option --bacth; did you mean --batch?");
    EXPECT_EQ(parse({"--zzzzzz"}).error().message, "unknown option --zzzzzz");
    EXPECT_EQ(parse({"-b"}).error().message, "unknown option -b");
    EXPECT_EQ(parse({"--batch"}).error().message, "--batch needs a value (N)");
    EXPECT_EQ(parse({"--raw=1"}).error().message, "--raw takes no value");
    EXPECT_EQ(parse({"--raw", "--raw"}).error().message, "--raw is given twice");
    EXPECT_EQ(parse({"--="}).error().message, "unknown option --");
}

TEST(Arguments, NumbersTimesAndCountsAreChecked) {
    const auto arguments = parse({"a", "b", "--batch", "5", "--name", "30s"});
    EXPECT_EQ(arguments->whole("batch", 1, 1, 5), 5);
    EXPECT_FALSE(arguments->whole("batch", 1, 6, 9).has_value());
    EXPECT_FALSE(arguments->whole("name", 1, 1, 9).has_value());
    EXPECT_EQ(arguments->whole("absent", 7, 1, 5), 7);
    EXPECT_EQ(arguments->duration("name").value(), std::chrono::seconds(30));
    EXPECT_FALSE(arguments->duration("batch").has_value());
    EXPECT_EQ(arguments->duration("absent").value(), std::nullopt);
    EXPECT_TRUE(arguments->expect(2, 2, "A").has_value());
    EXPECT_EQ(arguments->expect(3, 3, "A FILE").error().message, "A FILE is missing");
    EXPECT_EQ(arguments->expect(0, 1, "").error().message, "one word too many: \"b\"");
    EXPECT_EQ(arguments->exclusive({"batch", "absent", "name"}).error().message,
              "--batch and --name exclude each other");
    EXPECT_TRUE(arguments->exclusive({"batch", "absent"}).has_value());
}

} // namespace
} // namespace queen::ctl
