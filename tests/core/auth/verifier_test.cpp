#include "auth/authenticator.hpp"
#include "auth/verifier.hpp"
#include "base/base64.hpp"
#include "base/text.hpp"
#include "core/auth/vectors.hpp"
#include "support/tokens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::auth {
namespace {

using test::signed_token;
using testing::HasSubstr;

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";
constexpr std::string_view kHs256 = R"({"alg":"HS256"})";

WallTime at(std::int64_t seconds) {
    return WallTime(std::chrono::seconds(seconds));
}

Verifier verifier(std::vector<Key> keys, Rules rules = {}, std::int64_t now = 1'800'000'100) {
    return {std::move(rules), std::move(keys), nullptr, [now] { return at(now); }};
}

std::string outcome(const Verifier& verifier, std::string_view token) {
    const auto identity = verifier.verify(token);
    return identity ? identity->subject : std::string(text_of(identity.error()));
}

// RFC 7515 A.1 and RFC 8037 A.4: published, so nobody's code agrees with itself alone.
TEST(Key, TheVectorsOfTheStandardsVerify) {
    const Key hmac =
        Key::secret(*from_base64url("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH7"
                                    "5aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"));
    EXPECT_TRUE(hmac.verifies(
        Algorithm::hs256,
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogI"
        "mh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
        *from_base64url("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")));
    const Key ed = *Key::ed25519(*from_base64url("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"));
    EXPECT_TRUE(ed.verifies(
        Algorithm::eddsa, "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        *from_base64url(
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvp"
            "Ar_MuM0KAg")));
}

TEST(Key, PemTextIsToldApart) {
    EXPECT_EQ(Key::from_pem(vectors::kRsaPem)->family(), Family::rsa);
    EXPECT_EQ(Key::from_pem(vectors::kEdPem)->family(), Family::ed25519);
    const auto why = [](std::string_view pem) { return Key::from_pem(pem).error().message; };
    EXPECT_THAT(why(vectors::kShortRsaPem), HasSubstr("1024 bits is too short"));
    EXPECT_THAT(why(vectors::kPrivatePem), HasSubstr("private key"));
    std::string damaged(vectors::kRsaPem);
    damaged[60] = '!';
    EXPECT_EQ(why(damaged), "invalid RSA public key PEM");
    EXPECT_EQ(why("-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----\n"),
              "invalid Ed public key PEM");
}

TEST(KeySet, UsableKeysAreTakenAndOthersLeftOut) {
    const std::string rsa = R"("kty":"RSA","e":"AQAB","n":")" + std::string(vectors::kRsaModulus);
    const std::string shorter =
        R"("kty":"RSA","e":"AQAB","n":")" + std::string(vectors::kShortModulus);
    const std::string set =
        R"({"keys":[{)" + rsa + R"(","kid":"a","use":"sig","alg":"RS256"},{)" + rsa +
        R"(","kid":"b"},{)" + rsa + R"(","kid":"for encryption","use":"enc"},{)" + rsa +
        R"(","kid":"another family","alg":"EdDSA"},{)" + rsa +
        R"(","kid":"unknown algorithm","alg":"PS256"},{)" + shorter +
        R"(","kid":"short"},{"kty":"oct","k":"c2VjcmV0","kid":"secret"},)"
        R"({"kty":"EC","crv":"P-256","kid":"ec"},{"kty":"OKP","crv":"Ed25519","kid":"c","x":")" +
        std::string(vectors::kEdX) + R"("},{"kty":"OKP","crv":"Ed25519","x":"AA"},7]})";
    const auto keys = read_key_set(set);
    ASSERT_TRUE(keys.has_value());
    ASSERT_EQ(keys->size(), 3u);
    EXPECT_EQ(keys->at(0).id + keys->at(1).id + keys->at(2).id, "abc");
    EXPECT_EQ(keys->at(0).only, Algorithm::rs256);
    EXPECT_EQ(keys->at(2).key.family(), Family::ed25519);
    for (const std::string_view text : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[]})"}) {
        EXPECT_FALSE(read_key_set(text).has_value()) << text;
    }
}

TEST(Verifier, TokensOfEachAlgorithmAreTakenWithTheirKey) {
    const Verifier rsa = verifier({*Key::from_pem(vectors::kRsaPem)});
    for (const std::string_view token : {vectors::kRS256, vectors::kRS384, vectors::kRS512}) {
        const auto identity = rsa.verify(token);
        ASSERT_TRUE(identity.has_value()) << text_of(identity.error());
        EXPECT_EQ(identity->subject, "service-a");
        EXPECT_EQ(identity->roles, Roles().add(Role::read_write));
    }
    EXPECT_EQ(outcome(verifier({*Key::from_pem(vectors::kEdPem)}), vectors::kEdDSA), "service-a");
    EXPECT_EQ(
        outcome(verifier({Key::secret(kSecret)}), signed_token(kHs256, R"({"sub":"b"})", kSecret)),
        "b");
}

// The attacks that tokens are known for.
TEST(Verifier, AUTH3_NoAlgorithmIsTakenThatTheSettingsDoNotNameOrNoKeyIsFor) {
    const Key rsa = *Key::from_pem(vectors::kRsaPem);
    const Key hmac = Key::secret(kSecret);
    const std::string claims = R"({"sub":"mallory","role":"admin"})";
    // HMAC with the text of the public key, which everybody has.
    for (const std::string_view secret : {vectors::kRsaPem, vectors::kRsaModulus}) {
        EXPECT_EQ(outcome(verifier({rsa}), signed_token(kHs256, claims, secret)),
                  "Unsupported token algorithm");
        EXPECT_EQ(outcome(verifier({rsa, hmac}), signed_token(kHs256, claims, secret)),
                  "Invalid token signature");
    }
    for (const std::string_view header :
         {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":""})", R"({"alg":"hs256"})",
          R"({"alg":"PS256"})", R"({"alg":"ES256"})"}) {
        EXPECT_EQ(outcome(verifier({rsa, hmac}), signed_token(header, claims, kSecret)),
                  "Unsupported token algorithm")
            << header;
        const std::string unsigned_token = to_base64url(header) + "." + to_base64url(claims) + ".";
        EXPECT_EQ(outcome(verifier({rsa, hmac}), unsigned_token), "Unsupported token algorithm");
    }
    // One algorithm means that one.
    EXPECT_EQ(outcome(verifier({hmac}, {.algorithm = Algorithm::hs512}),
                      signed_token(kHs256, claims, kSecret)),
              "Unsupported token algorithm");
    EXPECT_EQ(outcome(verifier({rsa}, {.algorithm = Algorithm::rs512}), vectors::kRS256),
              "Unsupported token algorithm");
    EXPECT_EQ(outcome(verifier({rsa, hmac}, {.algorithm = Algorithm::rs256}),
                      signed_token(kHs256, claims, kSecret)),
              "Unsupported token algorithm");
    // A signature of one algorithm under the name of another.
    const auto parts = std::string(vectors::kRS384);
    const std::size_t dot = parts.find('.');
    EXPECT_EQ(outcome(verifier({rsa}), to_base64url(R"({"alg":"RS256"})") + parts.substr(dot)),
              "Invalid token signature");
}

TEST(Verifier, AUTH3_AChangedTokenIsRefusedWhereverItWasChanged) {
    const Verifier hmac = verifier({Key::secret(kSecret)});
    const std::string token = signed_token(kHs256, R"({"sub":"a","role":"read-only"})", kSecret);
    ASSERT_EQ(outcome(hmac, token), "a");
    for (std::size_t i = 0; i < token.size(); ++i) {
        std::string changed = token;
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        EXPECT_FALSE(hmac.verify(changed).has_value()) << "byte " << i;
    }
    EXPECT_EQ(outcome(hmac, signed_token(kHs256, "{}", "another secret")),
              "Invalid token signature");
    EXPECT_EQ(outcome(hmac, token.substr(0, token.rfind('.') + 1)), "Invalid token signature");
}

TEST(Verifier, WhatIsNoTokenIsABadHeader) {
    const Verifier hmac = verifier({Key::secret(kSecret)});
    const std::string good = signed_token(kHs256, "{}", kSecret);
    for (const std::string& text :
         {std::string(), std::string("x"), std::string(".."), std::string("a.b.c"), good + ".",
          good + ".x", "." + good, good.substr(0, good.rfind('.')), good + std::string(9000, 'A'),
          signed_token("7", "{}", kSecret), signed_token("{}", "{}", kSecret),
          signed_token(R"({"alg":7})", "{}", kSecret),
          signed_token(R"({"alg":"HS256","kid":7})", "{}", kSecret),
          signed_token(R"({"alg":"HS256","crit":["b64"]})", "{}", kSecret),
          signed_token(kHs256, "[]", kSecret), signed_token(kHs256, "{", kSecret)}) {
        EXPECT_EQ(outcome(hmac, text), "Bad token header") << text;
    }
}

TEST(Verifier, TimesHoldWithTheSkewAndNotASecondLonger) {
    const auto when = [](const std::string& claims, std::int64_t now) {
        return outcome(verifier({Key::secret(kSecret)}, {.skew = std::chrono::seconds(30)}, now),
                       signed_token(kHs256, R"({"sub":"ok",)" + claims + "}", kSecret));
    };
    EXPECT_EQ(when(R"("exp":1000)", 1029), "ok");
    EXPECT_EQ(when(R"("exp":1000)", 1030), "Token has expired");
    EXPECT_EQ(when(R"("exp":1000.9)", 1029), "ok");
    EXPECT_EQ(when(R"("exp":"1000")", 1), "Token has expired") << "no number";
    EXPECT_EQ(when(R"("exp":null)", 1), "Token has expired");
    EXPECT_EQ(when(R"("exp":1e300)", 1000), "ok");
    EXPECT_EQ(when(R"("exp":-1e300)", 1000), "Token has expired");
    EXPECT_EQ(when(R"("nbf":1000)", 970), "ok");
    EXPECT_EQ(when(R"("nbf":1000)", 969), "Token not yet valid");
    EXPECT_EQ(when(R"("nbf":true)", 5000), "Token not yet valid");
    EXPECT_EQ(when(R"("iat":1000)", 970), "ok");
    EXPECT_EQ(when(R"("iat":1000)", 969), "Token issued in the future");
    EXPECT_EQ(when(R"("x":1)", 1), "ok") << "exp is optional";
}

TEST(Verifier, IssuerAndAudienceAreCheckedWhenTheSettingsNameThem) {
    const Rules rules{.issuer = "https://id.example", .audience = "queen"};
    const auto with = [&](const std::string& claims) {
        return outcome(verifier({Key::secret(kSecret)}, rules),
                       signed_token(kHs256, R"({"sub":"ok",)" + claims + "}", kSecret));
    };
    const std::string issuer = R"("iss":"https://id.example",)";
    EXPECT_EQ(with(issuer + R"("aud":"queen")"), "ok");
    EXPECT_EQ(with(issuer + R"("aud":["x","queen"])"), "ok");
    EXPECT_EQ(with(issuer + R"("aud":["x"])"), "Invalid token audience");
    EXPECT_EQ(with(issuer + R"("aud":{"queen":"queen"})"), "Invalid token audience");
    EXPECT_EQ(with(issuer + R"("x":1)"), "Invalid token audience");
    EXPECT_EQ(with(R"("aud":"queen")"), "Invalid token issuer");
    EXPECT_EQ(with(R"("iss":"https://id.example.evil","aud":"queen")"), "Invalid token issuer");
    EXPECT_EQ(outcome(verifier({*Key::from_pem(vectors::kEdPem)}, rules), vectors::kEdDSA),
              "service-a");
}

TEST(Verifier, RolesComeFromEitherClaimUnderTheNamesOfTheSettings) {
    const auto roles = [](const std::string& claims, Rules rules = {}) {
        return verifier({Key::secret(kSecret)}, std::move(rules))
            .verify(signed_token(kHs256, claims, kSecret))
            ->roles;
    };
    EXPECT_EQ(roles(R"({"role":"admin"})"), Roles().add(Role::admin));
    EXPECT_EQ(roles(R"({"roles":["read-only","write-only","x",7]})"),
              Roles().add(Role::read_only).add(Role::write_only));
    EXPECT_EQ(roles(R"({"role":"read-only","roles":"read-write"})"),
              Roles().add(Role::read_only).add(Role::read_write));
    EXPECT_TRUE(roles(R"({"role":"Admin","roles":["ADMIN"," admin"]})").none());
    EXPECT_TRUE(roles(R"({"role":["admin"]})").none());
    EXPECT_TRUE(roles("{}").none());
    const Rules named{.role_claim = "r", .roles_claim = "rs", .admin = "boss"};
    EXPECT_EQ(roles(R"({"r":"boss"})", named), Roles().add(Role::admin));
    EXPECT_TRUE(roles(R"({"role":"admin","r":"admin"})", named).none());
}

TEST(Verifier, AUTH2_WhichRoleMayWhat) {
    struct Row {
        Role role;
        bool read, write, both, admin;
    };
    for (const Row& row : {Row{Role::read_only, true, false, false, false},
                           Row{Role::write_only, false, true, false, false},
                           Row{Role::read_write, true, true, true, false},
                           Row{Role::admin, true, true, true, true}}) {
        const Roles roles = Roles().add(row.role);
        EXPECT_TRUE(roles.may(Level::open));
        EXPECT_EQ(roles.may(Level::page), row.read);
        EXPECT_EQ(roles.may(Level::read_only), row.read);
        EXPECT_EQ(roles.may(Level::write_only), row.write);
        EXPECT_EQ(roles.may(Level::read_write), row.both);
        EXPECT_EQ(roles.may(Level::admin), row.admin);
    }
    const Roles two = Roles().add(Role::read_only).add(Role::write_only);
    EXPECT_FALSE(two.may(Level::read_write)) << "to look and to push is not to take";
    EXPECT_FALSE(Roles().may(Level::read_only));
}

class FixedKeys final : public KeySource {
public:
    explicit FixedKeys(std::vector<NamedKey> keys)
        : keys_(std::make_shared<const std::vector<NamedKey>>(std::move(keys))) {}
    std::shared_ptr<const std::vector<NamedKey>> keys() const override { return keys_; }
    void missed() override { ++misses; }
    int misses = 0;

private:
    std::shared_ptr<const std::vector<NamedKey>> keys_;
};

TEST(Verifier, PublishedKeysAreFoundByTheirId) {
    const auto keys = std::make_shared<FixedKeys>(
        std::vector<NamedKey>{{"rsa-0", {}, *Key::from_pem(vectors::kRsaPem)},
                              {"rsa-1", Algorithm::rs256, *Key::from_pem(vectors::kRsaPem)},
                              {"ed-1", {}, *Key::from_pem(vectors::kEdPem)}});
    const Verifier with({}, {}, keys, [] { return at(1'800'000'100); });
    EXPECT_EQ(outcome(with, vectors::kRS256WithKid), "service-a");
    EXPECT_EQ(outcome(with, vectors::kEdDSAWithKid), "service-a");
    EXPECT_EQ(outcome(with, vectors::kEdDSA), "service-a") << "the only one that it can be for";
    EXPECT_EQ(keys->misses, 0);
    EXPECT_EQ(outcome(with, vectors::kRS256), "Unknown key ID") << "for which of the two?";
    EXPECT_EQ(outcome(with, signed_token(R"({"alg":"EdDSA","kid":"rsa-1"})", "{}", kSecret)),
              "Unknown key ID")
        << "a key of another family";
    EXPECT_EQ(outcome(with, signed_token(R"({"alg":"RS256","kid":"new"})", "{}", kSecret)),
              "Unknown key ID");
    EXPECT_EQ(keys->misses, 3);
    EXPECT_EQ(outcome(with, signed_token(R"({"alg":"RS256","kid":"rsa-1"})", "{}", kSecret)),
              "Invalid token signature");
    EXPECT_EQ(outcome(with, signed_token(kHs256, "{}", kSecret)), "Unsupported token algorithm")
        << "published keys are no secrets";
    EXPECT_EQ(keys->misses, 3);
}

TEST(TokenOf, ASchemeInAnyCaseOrABareToken) {
    EXPECT_EQ(token_of("Bearer abc"), "abc");
    EXPECT_EQ(token_of("bEARER \t abc "), "abc");
    EXPECT_EQ(token_of(" abc "), "abc");
    EXPECT_EQ(token_of("Bearerabc"), "Bearerabc");
    EXPECT_EQ(token_of("Bearer"), "");
    EXPECT_EQ(token_of("Bearer  "), "");
    EXPECT_EQ(token_of(""), "");
    EXPECT_EQ(token_of("Basic abc"), "Basic abc") << "no token: a bad header";
}

} // namespace
} // namespace queen::auth
