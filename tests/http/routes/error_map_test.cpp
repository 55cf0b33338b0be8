#include "http/error_map.hpp"
#include "http/routes/api.hpp"

#include <set>

namespace queen::test {
namespace {

using http::error_reply;
using http::procedure_reply;
using http::rule_for;

struct Mapped {
    Errc code;
    int status;
    const char* word;
    int retry_after;
};

constexpr Mapped kMap[] = {
    {Errc::invalid_argument, 400, "bad_request", 0},
    {Errc::name_too_long, 413, "name_too_long", 0},
    {Errc::not_found, 404, "not_found", 0},
    {Errc::conflict, 409, "conflict", 0},
    {Errc::unavailable, 500, "unavailable", 1},
    {Errc::timeout, 500, "timeout", 0},
    {Errc::transient, 503, "retry", 1},
    {Errc::store_failed, 500, "store_failed", 0},
    {Errc::corrupt, 500, "corrupt", 0},
    {Errc::unsupported, 501, "not_implemented", 0},
    {Errc::overloaded, 503, "overloaded", 1},
    {Errc::internal, 500, "internal", 0},
    {Errc::too_large, 413, "too_large", 0},
    {Errc::shutting_down, 503, "shutting_down", 1},
};

TEST(ErrorMap, EveryErrcHasItsStatusCodeAndRetryAfter) {
    std::set<std::string_view> words;
    for (const Mapped& mapped : kMap) {
        const auto rule = rule_for(mapped.code);
        EXPECT_EQ(rule.status, mapped.status) << mapped.word;
        EXPECT_EQ(rule.code, mapped.word);
        EXPECT_EQ(rule.retry_after.count(), mapped.retry_after) << mapped.word;
        EXPECT_TRUE(words.insert(rule.code).second) << "two errors share " << rule.code;
        const auto reply = error_reply({mapped.code, "why", {}});
        EXPECT_EQ(reply.status, mapped.status);
        EXPECT_EQ(at(reply.body, "code"), mapped.word);
        EXPECT_EQ(header(reply, "Retry-After"), mapped.retry_after == 0 ? "" : "1");
    }
    // The last number of the enum: a new one must get a line above.
    EXPECT_EQ(std::size(kMap), static_cast<std::size_t>(Errc::shutting_down));
}

TEST(ErrorMap, AMissingSessionIsTheContractsPool) {
    EXPECT_EQ(error_reply({Errc::unavailable, "no session within 30 s", {}}, "renew failed").body,
              R"({"error":"pool","code":"unavailable","detail":"no session within 30 s"})");
}

TEST(ErrorMap, TheContextStandsBeforeFaultsOfOursOnly) {
    EXPECT_EQ(at(error_reply({Errc::store_failed, "boom", {}}, "configure failed").body, "error"),
              "configure failed: boom");
    EXPECT_EQ(at(error_reply({Errc::not_found, "Queue not found", {}}, "x failed").body, "error"),
              "Queue not found");
}

TEST(ErrorMap, TextsAreEscaped) {
    const auto reply = error_reply({Errc::internal, "a \"quoted\"\n\ttext \\ \x01", {}});
    EXPECT_EQ(at(reply.body, "error"), "a \"quoted\"\n\ttext \\ \x01");
}

TEST(ErrorMap, AProceduresOwnErrorIsPassedOnWithItsStatus) {
    const std::string ok = R"({"configured":true,"error":null})";
    EXPECT_EQ(procedure_reply(ok).status, 200);
    EXPECT_EQ(procedure_reply(ok).body, ok);
    EXPECT_EQ(procedure_reply(R"([1,2])").status, 200);
    EXPECT_EQ(procedure_reply(R"({"error":"Queue Not Found"})").status, 404);
    EXPECT_EQ(procedure_reply(R"({"error":"disk full"})").status, 500);
    EXPECT_EQ(procedure_reply(R"({"error":"too small","invalid":["leaseTime"]})").status, 400);
    EXPECT_EQ(procedure_reply("nonsense").status, 500);
}

} // namespace
} // namespace queen::test
