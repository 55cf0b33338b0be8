// F-42, ME-13: what an old broker says names no tenant, while the brokers that hear it serve
// several. Whoever has such a queue there is told; nobody gets what is another's.
#include "cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace queen::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kA = 0, kB = 1;

const Headers kFirst{{"x-queen-tenant", "11111111-1111-4111-8111-111111111111"}};
const Headers kSecond{{"x-queen-tenant", "22222222-2222-4222-8222-222222222222"}};
const std::string kPop = "/api/v1/pop/queue/q?wait=true&timeout=58000&autoAck=true";

int push(Api& api, const std::string& id, const Headers& tenant) {
    return api.http
        .request("POST", "/api/v1/push",
                 R"({"items":[{"queue":"q","partition":"p","transactionId":")" + id +
                     R"(","payload":1}]})",
                 tenant)
        .status;
}

/// Length, type and JSON, as an old broker wrote them.
std::string frame(char type, const std::string& json) {
    const std::size_t length = 1 + json.size();
    std::string out;
    for (const int shift : {24, 16, 8, 0}) {
        out += static_cast<char>(length >> shift);
    }
    return out + type + json;
}

/// Its first word; the mac is HMAC-SHA256 of the nonce with the secret of the cluster.
std::string hello() {
    return frame(4, R"({"server_id":"old","nonce":"0123456789abcdef0123456789abcdef",)"
                    R"("mac":"80e09561784b69aeae0f2f7f759351f0d5b3b32b307177783bb6f351dea68a02)"
                    R"("})");
}

TEST(Tenants, F42_AHintWithoutATenantWakesWhoHasTheQueueAndShowsNobodyAnothers) {
    Cluster cluster({.more = "tenancy: {header: true, trusted_proxy: true}\n",
                     .mesh_options = "secret: \"0123456789abcdef\", require_challenge: false"});
    auto& a = *cluster[kA].api;
    // What a says must not arrive: then b hears of what is stored from the old one alone.
    cluster.each_link(&TcpProxy::cut);
    cluster.await_at_most(kA, "queen_mesh_peers_connected{plugin=\"mesh\"}", 0);
    auto seconds = cluster.park_at(kB, kPop, kSecond);
    HttpClient old(cluster[kB].mesh_port);
    old.send(hello());
    int number = 0;
    for (const std::string tenant : {"", R"(,"tenant":"default")"}) {
        auto firsts = cluster.park_at(kB, kPop, kFirst);
        const Cause cause(cluster, kB);
        const auto id = "first's " + std::to_string(++number);
        ASSERT_EQ(push(a, id, kFirst), 201);
        old.send(frame(1, R"({"queue":"q","partition":"p")" + tenant + "}"));
        EXPECT_THAT(Api::read_pop(firsts.read()).ids(), ElementsAre(id));
        cause.was_a_hint("stored");
        EXPECT_EQ(cause.grown("queen_peer_hints_heard_total{kind=\"stored\"}"), 1) << "none of a";
        EXPECT_EQ(cause.grown("queen_peer_hints_fanned_out_total"), 1);
    }
    EXPECT_FALSE(seconds.readable(std::chrono::milliseconds(0)));
    ASSERT_EQ(push(*cluster[kB].api, "second's", kSecond), 201);
    EXPECT_THAT(Api::read_pop(seconds.read()).ids(), ElementsAre("second's"));
}

} // namespace
} // namespace queen::test
