// Who is let in, over a real broker; and what stops a start.
#include "http/broker/security_fixture.hpp"
#include "support/tokens.hpp"

namespace queen::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "0123456789abcdef0123456789abcdef";

TEST_F(SecurityTest, K39_ARealBrokerAsksForTokens) {
    const auto broker = start({"JWT_ENABLED=true", "JWT_SECRET=" + kSecret});
    HttpClient http(broker->port());
    const auto ask = [&](std::string_view role, std::string_view method, std::string_view target,
                         std::string_view body = {}) {
        Headers headers;
        if (role != "-") {
            headers.emplace_back("Authorization", "Bearer " + token_of_role(role, kSecret, "svc"));
        }
        return http.request(method, target, body, headers);
    };
    const std::string push = R"({"items":[{"queue":"q","transactionId":"t","payload":1}]})";
    struct Row {
        std::string_view method, target, body;
        int none, reader, producer, user, admin;
    };
    for (const Row& row :
         {Row{"GET", "/health", "", 200, 200, 200, 200, 200},
          Row{"GET", "/metrics/prometheus", "", 200, 200, 200, 200, 200},
          Row{"POST", "/api/v1/push", push, 401, 403, 201, 201, 201},
          Row{"GET", "/api/v1/resources/queues", "", 401, 200, 403, 200, 200},
          Row{"GET", "/api/v1/pop/queue/none", "", 401, 403, 403, 204, 204},
          Row{"GET", "/api/v1/system/candidates", "", 401, 403, 403, 403, 200},
          Row{"GET", "/internal/api/inter-instance/stats", "", 401, 403, 403, 403, 200},
          Row{"DELETE", "/api/v1/resources/queues/none", "", 401, 403, 403, 403, 200}}) {
        EXPECT_EQ(ask("-", row.method, row.target, row.body).status, row.none) << row.target;
        EXPECT_EQ(ask("read-only", row.method, row.target, row.body).status, row.reader)
            << row.target;
        EXPECT_EQ(ask("write-only", row.method, row.target, row.body).status, row.producer)
            << row.target;
        EXPECT_EQ(ask("read-write", row.method, row.target, row.body).status, row.user)
            << row.target;
        EXPECT_EQ(ask("admin", row.method, row.target, row.body).status, row.admin) << row.target;
    }
    const auto popped = ask("read-write", "GET", "/api/v1/pop/queue/q");
    EXPECT_THAT(popped.body, HasSubstr(R"("producerSub":"svc")"));
    EXPECT_THAT(broker->output(), Not(HasSubstr(kSecret)));
}

TEST_F(SecurityTest, CFG10_AProtectionThatCannotTakeEffectStopsTheStart) {
    EXPECT_THAT(refusal({"JWT_ENABLED=true"}), HasSubstr("no key to check tokens with"));
    EXPECT_THAT(refusal({"JWT_ENABLED=true", "JWT_ALGORITHM=RS256", "JWT_PUBLIC_KEY=nonsense"}),
                HasSubstr("auth.public_key: invalid"));
    // Nobody listens on the port of discard.
    EXPECT_THAT(
        refusal({"JWT_ENABLED=true", "JWT_ALGORITHM=auto", "JWT_JWKS_URL=http://127.0.0.1:9/keys"}),
        HasSubstr("auth.jwks_url: http://127.0.0.1:9/keys cannot be read"));
    const auto output = refusal({"QUEEN_ENCRYPTION_KEY=sesame"});
    EXPECT_THAT(output, HasSubstr("64 hex digits"));
    EXPECT_THAT(output, Not(HasSubstr("sesame")));
    EXPECT_THAT(refusal({"QUEEN_TENANCY_HEADER=1"}), HasSubstr("tenancy.trusted_proxy"));
}

} // namespace
} // namespace queen::test
