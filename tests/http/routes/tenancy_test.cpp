#include "http/routes/api.hpp"
#include "model/names.hpp"

namespace queen::test {
namespace {

const std::string kOther = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

Headers tenant(const std::string& id) {
    return {{"X-Queen-Tenant", id}};
}
Api::Security shared() {
    return {.tenants = true};
}

TEST(Tenancy, TEN1_TheHeaderNamesTheTenantOfTheWholeRequest) {
    Api api(shared());
    const std::string push = R"({"items":[{"queue":"q","payload":1}]})";
    api.ask("POST", "/api/v1/push", push, tenant(kOther));
    api.ask("POST", "/api/v1/push", push, tenant("3F2504E0-4F89-11D3-9A0C-0305E82C3301"));
    api.ask("POST", "/api/v1/push", push, tenant(""));
    api.ask("POST", "/api/v1/push", push);
    ASSERT_EQ(api.store.pushed.size(), 4u);
    EXPECT_EQ(api.store.pushed[0].tenant, kOther);
    EXPECT_EQ(api.store.pushed[1].tenant, kOther) << "in lower case";
    EXPECT_EQ(api.store.pushed[2].tenant, kDefaultTenant);
    EXPECT_EQ(api.store.pushed[3].tenant, kDefaultTenant);

    api.ask("GET", "/api/v1/pop/queue/q", "", tenant(kOther));
    EXPECT_EQ(api.store.pops.back().args.tenant, kOther);
    api.ask("GET", "/api/v1/resources/queues/q", "", tenant(kOther));
    EXPECT_EQ(api.store.figures.back().tenant, kOther);
    api.ask("POST", "/api/v1/lease/" + std::string(kLeaseId) + "/extend", "", tenant(kOther));
    EXPECT_EQ(api.store.renewed_for.back(), kOther);
}

TEST(Tenancy, TEN2_WhatIsNoTenantIsRefusedOnEveryRoute) {
    Api api(shared());
    for (const std::string& text :
         {std::string("x"), kOther + "0", "{" + kOther + "}", std::string(32, 'a'), " " + kOther}) {
        for (const std::string_view path : {"/status", "/api/v1/resources/queues", "/health"}) {
            const auto refused = api.ask("GET", path, "", tenant(text));
            EXPECT_EQ(refused.status, 400) << text;
            EXPECT_EQ(at(refused.body, "error"), "invalid x-queen-tenant header (must be a UUID)");
        }
    }
    const auto twice =
        api.ask("GET", "/status", "", {{"x-queen-tenant", kOther}, {"X-Queen-Tenant", kOther}});
    EXPECT_EQ(twice.status, 400) << "whose word counts?";
    EXPECT_EQ(api.store.calls, 0u);
}

TEST(Tenancy, SwitchedOffTheHeaderMeansNothing) {
    Api api;
    api.ask("POST", "/api/v1/push", R"({"items":[{"queue":"q","payload":1}]})", tenant(kOther));
    EXPECT_EQ(api.store.pushed.at(0).tenant, kDefaultTenant);
    EXPECT_EQ(api.ask("GET", "/status", "", tenant("x")).status, 200);
}

TEST(Tenancy, TEN1_TheTokenIsAskedForBeforeTheTenant) {
    auto security = shared();
    security.verifier = std::make_shared<const auth::Verifier>(
        auth::Rules{}, std::vector<auth::Key>{auth::Key::secret("s")}, nullptr);
    Api api(std::move(security));
    EXPECT_EQ(api.ask("GET", "/status", "", tenant("x")).status, 401);
    EXPECT_EQ(api.ask("GET", "/health", "", tenant("x")).status, 400);
}

} // namespace
} // namespace queen::test
