#include "settings/document.hpp"
#include "settings/layers.hpp"
#include "settings/table.hpp"
#include "settings/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace queen::settings {
namespace {

std::string shipped() {
    std::ifstream in(QUEEN_SOURCE_DIR "/config/queen.yaml");
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Table, TheShippedFileIsTheTableWrittenOut) {
    // `queenctl config default > config/queen.yaml` after a change of the table.
    EXPECT_EQ(shipped(), default_document());
}

TEST(Table, TheShippedFileReadsBackAsTheTablesDefaults) {
    Problems problems;
    const yaml::Node root = yaml::read("queen.yaml", shipped(), problems);
    ASSERT_TRUE(problems.empty());
    std::set<std::string, std::less<>> seen;
    const auto compare = [&](const std::string& name, const yaml::Node& node) {
        const Option* option = find_option(name);
        ASSERT_NE(option, nullptr) << name;
        EXPECT_TRUE(seen.insert(name).second) << name;
        if (option->type != Type::texts && option->type != Type::plugins) {
            EXPECT_EQ(node.text, option->fallback) << name;
        }
    };
    for (const yaml::Node& member : root.members) {
        if (!member.is(yaml::Node::Kind::map)) {
            compare(member.key, member);
            continue;
        }
        for (const yaml::Node& inner : member.members) {
            compare(member.key + "." + inner.key, inner);
        }
    }
    for (const Option& option : options()) {
        EXPECT_TRUE(seen.contains(option.name)) << option.name;
    }
}

TEST(Table, EveryRowIsWhole) {
    std::set<std::string_view> names, variables;
    for (const Option& option : options()) {
        EXPECT_TRUE(names.insert(option.name).second) << option.name;
        EXPECT_FALSE(option.meaning.empty()) << option.name;
        EXPECT_EQ(option.meaning.back(), '.') << option.name;
        EXPECT_LE(option.min, option.max) << option.name;
        EXPECT_NE(option.put, nullptr) << option.name;
        EXPECT_FALSE(allowed(option).empty()) << option.name;
        for (const std::string_view variable : option.env) {
            EXPECT_TRUE(variable.empty() || variables.insert(variable).second) << variable;
        }
        if (option.type != Type::texts && option.type != Type::plugins) {
            EXPECT_TRUE(read_value(option, option.fallback).has_value()) << option.name;
        }
    }
}

TEST(Table, BoundsAreInclusiveOnBothSides) {
    for (const Option& option : options()) {
        const auto text = [&](std::int64_t number) -> std::string {
            switch (option.type) {
            case Type::whole:
            case Type::real:
                return std::to_string(number);
            case Type::duration:
                return number < 0 ? "" : format_duration(std::chrono::milliseconds(number));
            case Type::size:
                return number < 0 ? "" : format_size(number);
            case Type::text:
            case Type::boolean:
            case Type::choice:
            case Type::address:
            case Type::connection:
            case Type::secret:
            case Type::texts:
            case Type::plugins:
                break;
            }
            return {};
        };
        if (text(option.min).empty()) {
            continue;
        }
        EXPECT_TRUE(read_value(option, text(option.min)).has_value()) << option.name;
        EXPECT_TRUE(read_value(option, text(option.max)).has_value()) << option.name;
        EXPECT_FALSE(read_value(option, text(option.max + 1)).has_value()) << option.name;
        if (option.min > 0) {
            EXPECT_FALSE(read_value(option, text(option.min - 1)).has_value()) << option.name;
        }
    }
}

TEST(Table, EveryOptionReachesItsField) {
    // Two settings filled from different values must differ in every field that an option has.
    for (const Option& option : options()) {
        Settings one{}, two{};
        Value a, b;
        a.number = 7;
        b.number = 9;
        a.real = 7;
        b.real = 9;
        a.flag = false;
        b.flag = true;
        a.text = option.type == Type::choice ? std::string(option.fallback) : "embedded";
        b.text = option.type == Type::choice
                     ? std::string(option.choices.substr(option.choices.rfind('|') + 1))
                     : "other";
        a.texts = {"x"};
        b.texts = {"y"};
        a.plugins.resize(1);
        b.plugins.resize(2);
        option.put(one, a);
        option.put(two, b);
        const auto image = [](const Settings& s) {
            std::string out = s.listen_address + "|" + std::to_string(s.port) + "|" +
                              s.data_directory + "|" + s.server_id + "|" + s.database.url + "|" +
                              std::to_string(s.database.embedded) + s.default_source + s.log_level;
            for (const std::int64_t number : {s.database.sessions,
                                              s.database.statement_timeout.count(),
                                              s.limits.head_bytes,
                                              s.limits.uri_bytes,
                                              s.limits.fields,
                                              s.limits.body_bytes,
                                              s.limits.bodies_in_flight_bytes,
                                              s.limits.answer_bytes,
                                              s.limits.connections,
                                              s.limits.parked,
                                              s.limits.head_time.count(),
                                              s.limits.body_progress_time.count(),
                                              s.limits.idle_time.count(),
                                              s.limits.write_time.count(),
                                              s.limits.max_wait.count(),
                                              s.pop.default_timeout.count(),
                                              s.pop.backoff_initial.count(),
                                              s.pop.backoff_threshold,
                                              s.pop.backoff_max.count(),
                                              static_cast<std::int64_t>(s.pop.backoff_multiplier),
                                              static_cast<std::int64_t>(s.pop.default_subscription),
                                              s.maintenance.retention_interval.count(),
                                              s.maintenance.retention_batch,
                                              s.maintenance.retention_parallelism,
                                              s.maintenance.retention_due_cap,
                                              s.maintenance.safety_walk.count(),
                                              std::int64_t{s.maintenance.partition_cleanup},
                                              s.maintenance.partition_cleanup_days,
                                              s.maintenance.history_days,
                                              s.pop.default_batch,
                                              s.groups.repair_interval.count(),
                                              s.system.statistics_interval.count(),
                                              s.system.metrics_flush.count(),
                                              s.system.switches_refresh.count(),
                                              s.timers.max_payload,
                                              s.timers.max_horizon.count(),
                                              s.timers.max_ops,
                                              s.zstd_level,
                                              s.ack.registry_bytes,
                                              static_cast<std::int64_t>(s.ack.registry),
                                              s.dedup.cache_bytes,
                                              static_cast<std::int64_t>(s.dedup.cache),
                                              static_cast<std::int64_t>(s.plugins.size()),
                                              static_cast<std::int64_t>(s.database.apply_schema),
                                              static_cast<std::int64_t>(s.pop.pending_gate),
                                              static_cast<std::int64_t>(s.configure_merges),
                                              static_cast<std::int64_t>(s.log_json)}) {
                out += "|" + std::to_string(number);
            }
            for (const std::string& text :
                 {s.encryption.key, s.auth.algorithm, s.auth.secret, s.auth.public_key,
                  s.auth.jwks_url, s.auth.issuer, s.auth.audience, s.auth.role_claim,
                  s.auth.roles_claim, s.auth.role_admin, s.auth.role_read_write,
                  s.auth.role_read_only, s.auth.role_write_only}) {
                out += "|" + text;
            }
            for (const std::int64_t number :
                 {static_cast<std::int64_t>(s.auth.enabled), s.auth.jwks_refresh.count(),
                  s.auth.jwks_timeout.count(), s.auth.clock_skew.count(),
                  static_cast<std::int64_t>(s.tenancy.header),
                  static_cast<std::int64_t>(s.tenancy.trusted_proxy)}) {
                out += "|" + std::to_string(number);
            }
            for (const std::string& path : s.auth.skip_paths) {
                out += "|" + path;
            }
            for (const std::string& folder : s.plugin_folders) {
                out += "|" + folder;
            }
            return out;
        };
        EXPECT_NE(image(one), image(two)) << option.name;
    }
}

} // namespace
} // namespace queen::settings
