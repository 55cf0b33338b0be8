#include "load_support.hpp"
#include "settings/environment.hpp"

#include <gmock/gmock.h>

namespace queen::settings::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Environment, EachVariableReachesItsOption) {
    const Loaded loaded = accepted("", with({{"PORT", "7001"},
                                             {"DB_POOL_SIZE", "160"},
                                             {"QUEEN_STMT_TIMEOUT_MS", "1500"},
                                             {"QUEEN_APPLY_SCHEMA", "off"},
                                             {"QUEEN_MAX_BODY_BYTES", "123456"},
                                             {"QUEEN_SERVER_ID", "s-1"},
                                             {"POP_DEFAULT_TIMEOUT_MS", "2500"},
                                             {"POP_WAIT_INITIAL_INTERVAL_MS", "50"},
                                             {"POP_WAIT_BACKOFF_THRESHOLD", "5"},
                                             {"POP_WAIT_BACKOFF_MULTIPLIER", "1.5"},
                                             {"POP_WAIT_MAX_INTERVAL_MS", "900"},
                                             {"DEFAULT_SUBSCRIPTION_MODE", "new-only"},
                                             {"QUEEN_POP_PENDING_GATE", "No"},
                                             {"QUEEN_V2_ZSTD_LEVEL", "1"},
                                             {"QUEEN_ACK_REGISTRY", "0"},
                                             {"QUEEN_ACK_REGISTRY_MB", "8"},
                                             {"QUEEN_DEDUP_CACHE", "0"},
                                             {"QUEEN_DEDUP_CACHE_MB", "64"},
                                             {"LOG_LEVEL", "WARN"},
                                             {"QUEEN_LOG_JSON", "YES"}}));
    const Settings& s = loaded.settings;
    EXPECT_EQ(s.port, 7001);
    EXPECT_EQ(s.database.sessions, 160);
    EXPECT_EQ(s.database.statement_timeout, 1500ms);
    EXPECT_FALSE(s.database.apply_schema);
    EXPECT_TRUE(s.database.embedded);
    EXPECT_EQ(s.limits.body_bytes, 123456);
    EXPECT_EQ(s.server_id, "s-1");
    EXPECT_EQ(s.pop.default_timeout, 2500ms);
    EXPECT_EQ(s.pop.backoff_initial, 50ms);
    EXPECT_EQ(s.pop.backoff_threshold, 5);
    EXPECT_EQ(s.pop.backoff_multiplier, 1.5);
    EXPECT_EQ(s.pop.backoff_max, 900ms);
    EXPECT_EQ(s.pop.default_subscription, Subscription::Mode::fresh);
    EXPECT_FALSE(s.pop.pending_gate);
    EXPECT_EQ(s.zstd_level, 1);
    EXPECT_FALSE(s.ack.registry);
    EXPECT_EQ(s.ack.registry_bytes, 8 << 20);
    EXPECT_FALSE(s.dedup.cache);
    EXPECT_EQ(s.dedup.cache_bytes, 64 << 20);
    EXPECT_EQ(s.log_level, "warning");
    EXPECT_TRUE(s.log_json);
    EXPECT_THAT(loaded.warnings, IsEmpty());
}

TEST(Environment, AnEmptyValueIsTheDefault) {
    const Loaded loaded = accepted("", with({{"PORT", ""},
                                             {"QUEEN_LOG_JSON", ""},
                                             {"DB_POOL_SIZE", ""},
                                             {"PG_HOST", ""},
                                             {"QUEEN_HOTLIST", ""},
                                             {"JWT_ENABLED", ""},
                                             {"QUEEN_ENCRYPTION_KEY", ""}}));
    EXPECT_EQ(loaded.settings.port, 6632);
    EXPECT_TRUE(loaded.settings.database.embedded);
    EXPECT_EQ(effective(loaded, "listen").source, "the built-in default");
    EXPECT_THAT(loaded.warnings, IsEmpty());
}

TEST(Environment, WhatDoesNotParseIsFatalAndNamesTheVariable) {
    EXPECT_EQ(faults("", with({{"PORT", "66000"}})),
              "environment PORT: listen: \"66000\" is no port; allowed: 0 to 65535\n");
    EXPECT_EQ(
        faults("", with({{"DB_POOL_SIZE", "1e3"}})),
        "environment DB_POOL_SIZE: database.sessions: \"1e3\" is not a whole number; allowed: "
        "0 to 1000 sessions\n");
    EXPECT_EQ(
        faults("", with({{"QUEEN_STMT_TIMEOUT_MS", "30s"}})),
        "environment QUEEN_STMT_TIMEOUT_MS: database.statement_timeout: \"30s\" is not a whole "
        "number; allowed: 10 to 3600000 ms\n");
    EXPECT_EQ(
        faults("", with({{"QUEEN_MAX_BODY_BYTES", "-1"}})),
        "environment QUEEN_MAX_BODY_BYTES: limits.body: \"-1\" is out of bounds; allowed: 1024 "
        "to 1073741824 bytes\n");
    for (const std::string text : {"0", "9223372036854775807"}) {
        EXPECT_EQ(faults("", with({{"QUEEN_DEDUP_CACHE_MB", text}})),
                  "environment QUEEN_DEDUP_CACHE_MB: dedup.cache_size: \"" + text +
                      "\" is out of bounds; allowed: 1 to 1048576 MiB\n");
    }
    EXPECT_EQ(
        faults("", with({{"QUEEN_LOG_JSON", "maybe"}})),
        "environment QUEEN_LOG_JSON: log.json: \"maybe\" is not a boolean; write true, 1, yes, "
        "on or false, 0, no, off\n");
    EXPECT_EQ(faults("", with({{"DEFAULT_SUBSCRIPTION_MODE", "latest"}})),
              "environment DEFAULT_SUBSCRIPTION_MODE: pop.default_subscription: \"latest\" is not "
              "known; allowed: all, new\n");
    EXPECT_EQ(
        faults("", with({{"QUEEN_HOTLIST", "2"}})),
        "environment QUEEN_HOTLIST: candidates.default: \"2\" is not a boolean; write true, 1, "
        "yes, on or false, 0, no, off\n");
}

TEST(Environment, OfTwoNamesForOneOptionTheFirstWinsAndTheOtherIsMentioned) {
    const Loaded loaded =
        accepted("", with({{"DEFAULT_TIMEOUT", "1000"}, {"POP_DEFAULT_TIMEOUT_MS", "2000"}}));
    EXPECT_EQ(loaded.settings.pop.default_timeout, 1s);
    EXPECT_THAT(loaded.warnings,
                ElementsAre("environment POP_DEFAULT_TIMEOUT_MS: pop.default_timeout: is not used, "
                            "DEFAULT_TIMEOUT wins"));
    EXPECT_THAT(
        accepted("", with({{"DEFAULT_TIMEOUT", "1000"}, {"POP_DEFAULT_TIMEOUT_MS", "1000"}}))
            .warnings,
        IsEmpty());
}

TEST(Environment, WhatOnlyAPluginCanDoStopsTheBootWhereNoneTakesIt) {
    const auto env = with({{"QUEEN_MESH_PEERS", "b:6633"},
                           {"QUEEN_UDP_PEERS", ""},
                           {"QUEEN_SYNC_ENABLED", "true"},
                           {"QUEEN_MESH_PORT", "6633"}});
    EXPECT_THAT(accepted("", env).warnings, IsEmpty()) << "plugins are not known yet";
    Problems problems;
    std::vector<std::string> warnings;
    check_plugin_variables(env, {"QUEEN_MESH_PORT"}, problems, warnings);
    EXPECT_THAT(problems,
                ElementsAre("environment QUEEN_MESH_PEERS: asks for a mesh with other brokers, and "
                            "no plugin of this broker takes it; name one under plugins, or unset "
                            "the variable, so that nobody relies on what is not there"));
    EXPECT_THAT(warnings, ElementsAre("environment QUEEN_SYNC_ENABLED: no plugin of this broker "
                                      "takes it, and it has no effect"));
    problems.clear();
    warnings.clear();
    check_plugin_variables(env, {"QUEEN_MESH_PEERS", "QUEEN_MESH_PORT", "QUEEN_SYNC_ENABLED"},
                           problems, warnings);
    EXPECT_THAT(problems, IsEmpty());
    EXPECT_THAT(warnings, IsEmpty());
}

TEST(Environment, ProtectionThisVersionCannotGiveStopsTheBoot) {
    EXPECT_EQ(faults("", with({{"JWT_ENABLED", "ture"}})),
              "environment JWT_ENABLED: auth.enabled: \"ture\" is not a boolean; write true, 1, "
              "yes, on or false, "
              "0, no, off\n");
    EXPECT_THAT(
        accepted("", with({{"JWT_ENABLED", "false"}, {"QUEEN_TENANCY_HEADER", "off"}})).warnings,
        IsEmpty());
}

TEST(Environment, CFG10_AProtectionThatCannotTakeEffectStopsTheBoot) {
    EXPECT_EQ(faults("", with({{"JWT_ENABLED", "True"}})),
              "environment JWT_ENABLED: auth.enabled: is true and there is no key to check tokens "
              "with; allowed: with auth.secret, auth.public_key or auth.jwks_url\n");
    EXPECT_EQ(faults("", with({{"JWT_ENABLED", "1"}, {"JWT_PUBLIC_KEY", "x"}})),
              "environment JWT_ENABLED: auth.algorithm: HS256 needs auth.secret; allowed with the "
              "key there is: RS256, RS384, RS512, EdDSA, auto\n")
        << "the default algorithm is said to be at fault where authentication was asked for";
    EXPECT_EQ(faults("", with({{"JWT_ENABLED", "1"},
                               {"JWT_SECRET", std::string(32, 's')},
                               {"JWT_ALGORITHM", "EdDSA"}})),
              "environment JWT_ALGORITHM: auth.algorithm: EdDSA needs auth.public_key or "
              "auth.jwks_url; allowed with the key there is: HS256, HS384, HS512, auto\n");
    EXPECT_THAT(faults("", with({{"JWT_ENABLED", "1"}, {"JWT_ALGORITHM", "none"}})),
                HasSubstr("auth.algorithm: \"none\" is not known"));
    EXPECT_THAT(faults("", with({{"JWT_JWKS_URL", "ftp://keys"}})),
                HasSubstr("auth.jwks_url: is no address of the web"));
    EXPECT_THAT(
        faults("", with({{"QUEEN_TENANCY_HEADER", "1"}})),
        HasSubstr("environment QUEEN_TENANCY_HEADER: tenancy.header: lets every client name "
                  "any tenant unless a proxy sets x-queen-tenant"));
    EXPECT_TRUE(accepted("", with({{"QUEEN_TENANCY_HEADER", "1"}, {"QUEEN_KV_TRUSTED_PROXY", "1"}}))
                    .settings.tenancy.header);
    for (const std::string key : {"00ff", "secret-in-the-log"}) {
        EXPECT_EQ(faults("", with({{"QUEEN_ENCRYPTION_KEY", key}})),
                  "environment QUEEN_ENCRYPTION_KEY: encryption.key: is no key; allowed: 64 hex "
                  "digits (256 bits), or file:PATH\n");
    }
    EXPECT_THAT(faults("auth: {skip_paths: [health]}"), HasSubstr("\"health\" is no path"));
    EXPECT_THAT(faults("auth: {role_read_only: admin}"),
                HasSubstr("auth.role_read_only: is the name of auth.role_admin too"));
}

TEST(Environment, VariablesOfSecurityReachTheirOptions) {
    const std::string key(64, 'a');
    const std::string secret(32, 's');
    const Loaded loaded = accepted("", with({{"QUEEN_ENCRYPTION_KEY", key},
                                             {"JWT_ENABLED", "yes"},
                                             {"JWT_ALGORITHM", "auto"},
                                             {"JWT_SECRET", secret},
                                             {"JWT_PUBLIC_KEY", "-----BEGIN\\nKEY-----"},
                                             {"JWT_JWKS_URL", "https://id.example/keys"},
                                             {"JWT_JWKS_REFRESH_INTERVAL", "120"},
                                             {"JWT_JWKS_TIMEOUT_MS", "700"},
                                             {"JWT_ISSUER", "https://id.example"},
                                             {"JWT_AUDIENCE", "queen"},
                                             {"JWT_CLOCK_SKEW", "5"},
                                             {"JWT_SKIP_PATHS", "/health, /,,"},
                                             {"JWT_ROLES_CLAIM", "r"},
                                             {"JWT_ROLES_ARRAY_CLAIM", "rs"},
                                             {"JWT_ROLE_ADMIN", "boss"},
                                             {"JWT_ROLE_READ_WRITE", "rw"},
                                             {"JWT_ROLE_READ_ONLY", "ro"},
                                             {"JWT_ROLE_WRITE_ONLY", "wo"}}));
    const Settings& s = loaded.settings;
    EXPECT_EQ(s.encryption.key, key);
    EXPECT_TRUE(s.auth.enabled);
    EXPECT_EQ(s.auth.algorithm, "auto");
    EXPECT_EQ(s.auth.secret, secret);
    EXPECT_EQ(s.auth.public_key, "-----BEGIN\nKEY-----");
    EXPECT_EQ(s.auth.jwks_url, "https://id.example/keys");
    EXPECT_EQ(s.auth.jwks_refresh, 120s);
    EXPECT_EQ(s.auth.jwks_timeout, 700ms);
    EXPECT_EQ(s.auth.issuer, "https://id.example");
    EXPECT_EQ(s.auth.audience, "queen");
    EXPECT_EQ(s.auth.clock_skew, 5s);
    EXPECT_THAT(s.auth.skip_paths, ElementsAre("/health", "/"));
    EXPECT_EQ(s.auth.role_claim + s.auth.roles_claim, "rrs");
    EXPECT_EQ(s.auth.role_admin + s.auth.role_read_write + s.auth.role_read_only +
                  s.auth.role_write_only,
              "bossrwrowo");
    EXPECT_THAT(loaded.warnings, IsEmpty());
    for (const Effective& entry : loaded.effective) {
        EXPECT_THAT(entry.value, ::testing::Not(HasSubstr(key)));
        EXPECT_THAT(entry.value, ::testing::Not(HasSubstr(secret)));
    }
    EXPECT_EQ(effective(loaded, "auth.secret").value, "***");
    EXPECT_EQ(effective(loaded, "encryption.key").source, "environment QUEEN_ENCRYPTION_KEY");
}

TEST(Environment, WhatIsWeakOrPreparedAndSwitchedOffIsWarnedAbout) {
    EXPECT_THAT(accepted("", with({{"JWT_SECRET", "s3"}})).warnings,
                ElementsAre("environment JWT_SECRET: auth.secret: has no effect while auth.enabled "
                            "is false; nobody is asked for a token"));
    EXPECT_THAT(accepted("", with({{"JWT_ENABLED", "1"}, {"JWT_SECRET", "s3"}})).warnings,
                ElementsAre(HasSubstr("auth.secret: is shorter than 32 bytes")));
    EXPECT_THAT(accepted("", with({{"JWT_ENABLED", "1"},
                                   {"JWT_ALGORITHM", "auto"},
                                   {"JWT_JWKS_URL", "http://keys.example/x"}}))
                    .warnings,
                ElementsAre(HasSubstr("auth.jwks_url: comes without TLS")));
    EXPECT_THAT(accepted("", with({{"JWT_ENABLED", "1"},
                                   {"JWT_ALGORITHM", "auto"},
                                   {"JWT_JWKS_URL", "http://127.0.0.1:9/x"}}))
                    .warnings,
                IsEmpty());
}

TEST(Environment, VariablesThatOnlyTuneAMissingPartAreWarnedAbout) {
    EXPECT_THAT(
        accepted("",
                 with({{"QUEEN_ADMISSION_MAX", "128"}, {"FILE_BUFFER_DIR", "/x"}, {"PATH", "/"}}))
            .warnings,
        ElementsAre(
            "environment FILE_BUFFER_DIR: is not supported by this version and has no effect",
            "environment QUEEN_ADMISSION_MAX: is not supported by this version and has no "
            "effect"));
}

TEST(Environment, HotlistOffRoutesEveryQueueToTheScan) {
    const std::string two = "plugins: [{name: ring, path: r.so}, {name: sqlscan, path: s.so}]\n"
                            "candidates: {default: ring}\n";
    const Loaded off = accepted(two, with({{"QUEEN_HOTLIST", "0"}}));
    EXPECT_EQ(off.settings.default_source, "sqlscan");
    EXPECT_EQ(effective(off, "candidates.default").source, "environment QUEEN_HOTLIST");
    EXPECT_THAT(off.warnings, ElementsAre("environment QUEEN_HOTLIST: candidates.default: every "
                                          "queue takes its candidates from sqlscan"));
    EXPECT_EQ(accepted(two, with({{"QUEEN_HOTLIST", "1"}})).settings.default_source, "ring");
    EXPECT_EQ(faults("plugins: [{name: ring, path: r.so}]\ncandidates: {default: ring}\n",
                     with({{"QUEEN_HOTLIST", "false"}})),
              "environment QUEEN_HOTLIST: candidates.default: sqlscan is no plugin of this "
              "configuration; allowed: ring\n");
}

TEST(Environment, PgVariablesSelectAnExternalDatabase) {
    const Loaded loaded =
        accepted("", with({{"PG_HOST", "db.example"}, {"PG_PASSWORD", "o'k \\x"}}));
    EXPECT_FALSE(loaded.settings.database.embedded);
    EXPECT_EQ(loaded.settings.database.url,
              "host='db.example' port='5432' user='postgres' password='o\\'k \\\\x' "
              "dbname='postgres'");
    EXPECT_EQ(effective(loaded, "database.url").value,
              "user=postgres password=*** dbname=postgres host=db.example port=5432");
    EXPECT_EQ(effective(loaded, "database.url").source, "environment PG_HOST");
    EXPECT_THAT(accepted("", with({{"PG_DB", "queen"}, {"PG_USER", "q"}})).settings.database.url,
                HasSubstr("user='q' password='postgres' dbname='queen'"));
    EXPECT_THAT(accepted("", with({{"PG_DB", "b"}, {"PG_DATABASE", "a"}})).settings.database.url,
                HasSubstr("dbname='a'"));
}

TEST(Environment, PgVariablesAndAWrittenEmbeddedContradictEachOther) {
    const std::string conflict = "database.url: is embedded, but environment PG_USER selects an "
                                 "external database; allowed: one of the two\n";
    EXPECT_EQ(faults("database: embedded\n", with({{"PG_USER", "x"}})), "q.yaml:1:11: " + conflict);
    EXPECT_EQ(faults("database:\n  url: embedded\n", with({{"PG_USER", "x"}})),
              "q.yaml:2:8: " + conflict);
    const Loaded replaced = accepted("database: {url: host=a}\n", with({{"PG_HOST", "b"}}));
    EXPECT_THAT(replaced.settings.database.url, HasSubstr("host='b'"));
    EXPECT_THAT(replaced.warnings,
                ElementsAre("environment PG_HOST: database.url: replaces the one "
                            "at q.yaml:1:17"));
    // The command line is above both.
    EXPECT_TRUE(accepted("", with({{"PG_HOST", "b"}}), {{"database", "embedded"}})
                    .settings.database.embedded);
}

TEST(Environment, PgSslVariablesChooseWhatTheServerMustProve) {
    EXPECT_THAT(accepted("", with({{"PG_USE_SSL", "true"}, {"PG_SSL_REJECT_UNAUTHORIZED", "0"}}))
                    .settings.database.url,
                HasSubstr("sslmode='require'"));
    EXPECT_EQ(
        faults("", with({{"PG_USE_SSL", "si"}})),
        "environment PG_USE_SSL: database.url: \"si\" is not a boolean; write true, 1, yes, on "
        "or false, 0, no, off\n");
    EXPECT_EQ(faults("", with({{"PG_PORT", "0"}})),
              "environment PG_PORT: database.url: \"0\" is no port; allowed: 1 to 65535\n");
}

} // namespace
} // namespace queen::settings::testing
