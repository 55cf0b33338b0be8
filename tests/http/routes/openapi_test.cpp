// GET /openapi.json against the route table: neither knows what the other does not.
#include "http/levels.hpp"
#include "http/openapi.hpp"
#include "http/route_table.hpp"
#include "http/routes/api.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace queen::test {
namespace {

using testing::ElementsAreArray;
using testing::StartsWith;

/// "get /api/v1/dlq/{id}/replay".
std::string operation(std::string_view method, std::string_view pattern) {
    std::string text(method);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    text += ' ';
    bool open = false;
    for (const char c : pattern) {
        if (c == ':' || c == '*') {
            text += '{';
            open = true;
            continue;
        }
        if (c == '/' && open) {
            text += '}';
            open = false;
        }
        text += c;
    }
    return text + (open ? "}" : "");
}

class OpenApiTest : public testing::Test {
protected:
    void SetUp() override {
        auto parsed = json::Document::parse(http::openapi_document());
        ASSERT_TRUE(parsed) << parsed.error().message;
        document = std::make_unique<json::Document>(std::move(*parsed));
    }
    json::Value root() const { return document->root(); }
    /// Calls `with` for each operation.
    template <class With>
    void each(With with) const {
        const auto paths = root()["paths"];
        for (std::size_t i = 0; i < paths.size(); ++i) {
            const auto methods = paths.value_at(i);
            for (std::size_t j = 0; j < methods.size(); ++j) {
                with(std::string(methods.key_at(j)) + " " + std::string(paths.key_at(i)),
                     methods.value_at(j));
            }
        }
    }

    std::unique_ptr<json::Document> document;
};

TEST_F(OpenApiTest, DescribesExactlyTheRoutesThatAreServed) {
    std::set<std::string> described, served;
    each([&](const std::string& name, json::Value) { described.insert(name); });
    for (const auto& route : http::all_routes()) {
        if (route.handle != nullptr) {
            served.insert(operation(route.method, route.pattern));
        }
    }
    EXPECT_THAT(described, ElementsAreArray(served));
}

TEST_F(OpenApiTest, EachOperationDeclaresItsPathParametersAndItsErrors) {
    EXPECT_THAT(std::string(root()["openapi"].string()), StartsWith("3.1."));
    std::set<std::string> ids;
    each([&](const std::string& name, json::Value operation_of) {
        SCOPED_TRACE(name);
        std::set<std::string> declared, used;
        const auto parameters = operation_of["parameters"];
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const auto parameter = parameters.at(i);
            if (parameter["in"].string() == "path") {
                EXPECT_TRUE(parameter["required"].boolean().value_or(false));
                declared.insert(std::string(parameter["name"].string()));
            }
        }
        for (std::size_t at = name.find('{'); at != std::string::npos;
             at = name.find('{', at + 1)) {
            used.insert(name.substr(at + 1, name.find('}', at) - at - 1));
        }
        EXPECT_EQ(declared, used);
        EXPECT_TRUE(ids.insert(std::string(operation_of["operationId"].string())).second);
        EXPECT_FALSE(operation_of["summary"].string().empty());
        EXPECT_TRUE(operation_of["responses"]["4XX"].is(json::Kind::object));
        EXPECT_TRUE(operation_of["responses"]["5XX"].is(json::Kind::object));
    });
}

/// The role that an operation names is the one that its route asks for.
TEST_F(OpenApiTest, EachOperationNamesTheLevelOfItsRoute) {
    const auto word = [](auth::Level level) -> std::string {
        switch (level) {
        case auth::Level::open:
        case auth::Level::page:
            return "public";
        case auth::Level::read_only:
            return "read-only";
        case auth::Level::write_only:
            return "write-only";
        case auth::Level::read_write:
            return "read-write";
        case auth::Level::admin:
            return "admin";
        }
        return {};
    };
    std::map<std::string, std::string> described, asked;
    each([&](const std::string& name, json::Value operation_of) {
        described[name] = operation_of["x-level"].string();
    });
    for (const auto& route : http::all_routes()) {
        if (route.handle != nullptr) {
            asked[operation(route.method, route.pattern)] = word(http::level_of(route));
        }
    }
    EXPECT_EQ(described, asked);
}

/// Every "$ref" leads somewhere.
TEST_F(OpenApiTest, ReferencesLeadToSchemas) {
    const std::string_view text = http::openapi_document();
    constexpr std::string_view kReference = "\"$ref\": \"#/components/schemas/";
    std::size_t seen = 0;
    for (std::size_t at = text.find(kReference); at != std::string_view::npos;
         at = text.find(kReference, at + 1)) {
        const auto begin = at + kReference.size();
        const auto name = text.substr(begin, text.find('"', begin) - begin);
        EXPECT_TRUE(root()["components"]["schemas"][name].is(json::Kind::object)) << name;
        ++seen;
    }
    EXPECT_GT(seen, 10u);
}

} // namespace
} // namespace queen::test
