#include "base/json.hpp"
#include "settings/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::settings {
namespace {

/// The schema of an option, by its dotted name.
json::Value schema_of(json::Value root, std::string_view name) {
    json::Value properties = root["properties"];
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) {
        return properties[name];
    }
    const json::Value section = properties[name.substr(0, dot)];
    const json::Value map =
        section["oneOf"].is(json::Kind::array) ? section["oneOf"].at(1) : section;
    EXPECT_EQ(map["additionalProperties"].boolean(), false) << name;
    return map["properties"][name.substr(dot + 1)];
}

TEST(Schema, NamesEveryOptionWithItsTypeBoundsAndDefault) {
    const auto document = json::Document::parse(json_schema());
    ASSERT_TRUE(document.has_value()) << document.error().message;
    const json::Value root = document->root();
    EXPECT_EQ(root["additionalProperties"].boolean(), false);
    for (const Option& option : options()) {
        const json::Value schema = schema_of(root, option.name);
        ASSERT_TRUE(schema.is(json::Kind::object)) << option.name;
        EXPECT_THAT(std::string(schema["description"].string()),
                    ::testing::StartsWith(std::string(option.meaning)))
            << option.name;
        EXPECT_FALSE(schema["default"].is(json::Kind::missing)) << option.name;
        switch (option.type) {
        case Type::whole:
            EXPECT_EQ(schema["type"].string(), "integer") << option.name;
            EXPECT_EQ(schema["minimum"].integer(), option.min) << option.name;
            EXPECT_EQ(schema["maximum"].integer(), option.max) << option.name;
            break;
        case Type::real:
            EXPECT_EQ(schema["type"].string(), "number") << option.name;
            break;
        case Type::boolean:
            EXPECT_EQ(schema["type"].string(), "boolean") << option.name;
            EXPECT_TRUE(schema["default"].boolean().has_value()) << option.name;
            break;
        case Type::choice:
            EXPECT_GE(schema["enum"].size(), 2u) << option.name;
            break;
        case Type::texts:
        case Type::plugins:
            EXPECT_EQ(schema["type"].string(), "array") << option.name;
            break;
        case Type::duration:
        case Type::size:
            EXPECT_FALSE(schema["pattern"].string().empty()) << option.name;
            [[fallthrough]];
        case Type::text:
        case Type::address:
        case Type::connection:
        case Type::secret:
            EXPECT_EQ(schema["type"].string(), "string") << option.name;
            EXPECT_EQ(schema["default"].string(), option.fallback) << option.name;
            break;
        }
    }
}

TEST(Schema, NamesNothingElse) {
    const auto document = json::Document::parse(json_schema());
    ASSERT_TRUE(document.has_value());
    const json::Value properties = document->root()["properties"];
    std::size_t named = 0;
    for (std::size_t i = 0; i < properties.size(); ++i) {
        const json::Value section = properties.value_at(i);
        const json::Value map =
            section["oneOf"].is(json::Kind::array) ? section["oneOf"].at(1) : section;
        named += map["properties"].is(json::Kind::object) ? map["properties"].size() : 1;
    }
    EXPECT_EQ(named, options().size());
}

} // namespace
} // namespace queen::settings
