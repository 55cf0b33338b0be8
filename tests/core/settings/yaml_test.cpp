#include "settings/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::settings::yaml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string problem(const std::string& text) {
    Problems problems;
    read("f", text, problems);
    return problems.size() == 1 ? problems[0]
                                : "(" + std::to_string(problems.size()) + " problems)";
}

TEST(Yaml, KeepsEveryValueWithItsPlaceAndRepeatedKeysInOrder) {
    Problems problems;
    const Node root = read("f", "a: 1\nb:\n  - x\n  - {c: 'y', d: [2]}\na: 3\n", problems);
    EXPECT_THAT(problems, IsEmpty());
    ASSERT_EQ(root.members.size(), 3u);
    EXPECT_EQ(root.members[0].key, "a");
    EXPECT_EQ(root.members[0].text, "1");
    EXPECT_FALSE(root.members[0].quoted);
    EXPECT_EQ(to_string(root.members[0].place), "f:1:4");
    EXPECT_EQ(root.members[2].key, "a");
    EXPECT_EQ(root.members[2].text, "3");
    EXPECT_EQ(to_string(root.members[2].key_place), "f:5:1");
    const Node& list = root.members[1];
    ASSERT_EQ(list.items.size(), 2u);
    EXPECT_EQ(list.items[0].text, "x");
    const Node& map = list.items[1];
    ASSERT_EQ(map.members.size(), 2u);
    EXPECT_EQ(map.members[0].text, "y");
    EXPECT_TRUE(map.members[0].quoted);
    EXPECT_EQ(to_string(map.members[0].place), "f:4:9");
    EXPECT_EQ(map.members[1].items.at(0).text, "2");
}

TEST(Yaml, NullIsAnAbsentValueATildeOrItsNameUnquoted) {
    Problems problems;
    const Node root = read("f", "a:\nb: ~\nc: null\nd: 'null'\ne: ''\n", problems);
    ASSERT_EQ(root.members.size(), 5u);
    EXPECT_TRUE(root.members[0].is(Node::Kind::null));
    EXPECT_EQ(to_string(root.members[0].place), "f:1:1"); // not that of the next token
    EXPECT_TRUE(root.members[1].is(Node::Kind::null));
    EXPECT_TRUE(root.members[2].is(Node::Kind::null));
    EXPECT_TRUE(root.members[3].is(Node::Kind::scalar));
    EXPECT_TRUE(root.members[4].is(Node::Kind::scalar));
    EXPECT_TRUE(read("f", "", problems).is(Node::Kind::null));
    EXPECT_THAT(problems, IsEmpty());
}

TEST(Yaml, RefusesWhatASettingsFileHasNoUseFor) {
    EXPECT_EQ(problem("a: &x 1\n"), "f:1:4: anchors (&name) are not allowed");
    EXPECT_EQ(problem("a: &x {b: 1}\n"), "f:1:4: anchors (&name) are not allowed");
    EXPECT_EQ(problem("a: !!str 1\n"), "f:1:4: tags (!name) are not allowed");
    EXPECT_EQ(problem("a: !t [1]\n"), "f:1:4: tags (!name) are not allowed");
    EXPECT_EQ(problem("a: 1\n---\nb: 2\n"), "f:2:1: a second document begins here, one is allowed");
    EXPECT_THAT(problem("? [1]\n: 2\n"), HasSubstr("f:1:3: a key is a list or a map"));
    EXPECT_THAT(problem("? {a: 1}\n: 2\n"), HasSubstr("f:1:3: a key is a list or a map"));
    EXPECT_EQ(problem("~: 2\n"), "f:1:1: a key is empty, keys are names");
    EXPECT_EQ(problem("a: *x\n"), "f:1:4: not YAML: the referenced anchor is not defined");
    EXPECT_EQ(problem("a: \xff\n"), "f: is not UTF-8");
}

TEST(Yaml, DeepNestingIsRefusedAndNotFollowed) {
    EXPECT_THAT(problem("a: " + std::string(100'000, '[')), HasSubstr("f:"));
    std::string closed = "a: " + std::string(2'000, '[') + std::string(2'000, ']');
    EXPECT_THAT(problem(closed), HasSubstr("f:1:"));
}

TEST(Yaml, ColumnsCountCharactersAndLinesMayEndEitherWay) {
    Problems problems;
    const Node root = read("f", "# \xc3\xa9\r\na: 1\r\n\"\xc3\xa9\xc3\xa9\": x\n", problems);
    EXPECT_THAT(problems, IsEmpty());
    ASSERT_EQ(root.members.size(), 2u);
    EXPECT_EQ(to_string(root.members[0].place), "f:2:4");
    EXPECT_EQ(to_string(root.members[1].place), "f:3:7");
}

} // namespace
} // namespace queen::settings::yaml
