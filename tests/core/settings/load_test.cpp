#include "load_support.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>

namespace queen::settings::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Load, AnEmptyFileMeansTheDefaults) {
    for (const char* yaml : {"", "# nothing\n", "limits:\npop:\n", "{}"}) {
        const Loaded loaded = accepted(yaml);
        const Settings& s = loaded.settings;
        EXPECT_EQ(s.listen_address, "127.0.0.1");
        EXPECT_EQ(s.port, 6632);
        EXPECT_TRUE(s.database.embedded);
        EXPECT_EQ(s.database.url, "");
        EXPECT_EQ(s.database.statement_timeout, 30s);
        EXPECT_TRUE(s.database.apply_schema);
        EXPECT_EQ(s.limits.head_bytes, 16 * 1024);
        EXPECT_EQ(s.limits.body_bytes, 64 << 20);
        EXPECT_EQ(s.limits.bodies_in_flight_bytes, 512 << 20);
        EXPECT_EQ(s.limits.idle_time, 75s);
        EXPECT_EQ(s.limits.max_wait, 60s);
        EXPECT_EQ(s.pop.backoff_multiplier, 2.0);
        EXPECT_EQ(s.pop.default_subscription, Subscription::Mode::all);
        EXPECT_EQ(s.zstd_level, 3);
        EXPECT_TRUE(s.ack.registry);
        EXPECT_EQ(s.ack.registry_bytes, 64 << 20);
        EXPECT_TRUE(s.dedup.cache);
        EXPECT_EQ(s.dedup.cache_bytes, 512 << 20);
        EXPECT_FALSE(s.configure_merges);
        EXPECT_EQ(s.log_level, "information");
        ASSERT_EQ(s.plugins.size(), 3u);
        EXPECT_EQ(s.plugins[0].name, "hotlist");
        EXPECT_EQ(s.plugins[0].path, "hotlist.so");
        EXPECT_EQ(s.plugins[1].name, "sqlscan");
        EXPECT_EQ(s.plugins[2].name, "timers");
        EXPECT_EQ(s.default_source, "hotlist");
        EXPECT_THAT(loaded.warnings, IsEmpty());
    }
}

TEST(Load, EveryFaultIsReportedAtOnceWithItsPlace) {
    const std::string yaml = R"(listen: 127.0.0.1
lissten: 1
limits:
  body: 64
  head: 16 KiB
  fields: many
  uri: 20KiB
  uri: 4KiB
  write_time: 10
  idle_time: 1500us
  heads: 3
  max_wait: 2h
pop:
  default_subscription: nwe
  pending_gate: yes
  backoff_multiplier: .nan
zstd_level: 4
database: [a]
plugins:
  - name: x
  - {name: "a b", path: p.so, opts: 3}
  - hello
  - {name: x, path: y.so, path: z.so, options: 3}
candidates:
  default: hotlist
  routes: []
  split: {}
log: verbose
data:
)";
    EXPECT_EQ(
        faults(yaml),
        R"(q.yaml:1:9: listen: "127.0.0.1" has no port; allowed: ADDRESS:PORT as 127.0.0.1:6632 or [::1]:6632, port 0 to 65535
q.yaml:2:1: lissten: is unknown; did you mean listen?
q.yaml:4:9: limits.body: "64" has no unit; write a whole number with its unit, as 512B, 16KiB, 64MiB or 1GiB; allowed: 1KiB to 1GiB
q.yaml:5:9: limits.head: "16 KiB" is not readable; write a whole number with its unit, as 512B, 16KiB, 64MiB or 1GiB; allowed: 1KiB to 1MiB
q.yaml:6:11: limits.fields: "many" is not a whole number; allowed: 8 to 10000 fields
q.yaml:8:3: limits.uri: is repeated, first at line 7; allowed: once
q.yaml:9:15: limits.write_time: "10" has no unit; write a whole number with its unit, as 250ms, 30s, 5m or 1h; allowed: 10ms to 1h
q.yaml:10:14: limits.idle_time: "1500us" is not in whole milliseconds; allowed: 10ms to 1d
q.yaml:11:3: limits.heads: is unknown; did you mean head?
q.yaml:12:13: limits.max_wait: "2h" is out of bounds; allowed: 1ms to 1h
q.yaml:14:25: pop.default_subscription: "nwe" is not known; did you mean new?; allowed: all, new
q.yaml:15:17: pop.pending_gate: "yes" is not a boolean; allowed: true or false
q.yaml:16:23: pop.backoff_multiplier: ".nan" is not a number; allowed: 1 to 100
q.yaml:17:1: zstd_level: is unknown; did you mean segments.zstd_level?
q.yaml:18:11: database: is a list; allowed: a map of url, sessions, statement_timeout, apply_schema
q.yaml:20:5: plugins: an entry has no path
q.yaml:21:12: plugins.name: "a b" is no name; allowed: 1 to 64 letters, digits, '_', '-', '.'
q.yaml:21:31: plugins.opts: is unknown; allowed here: name, path, options
q.yaml:22:5: plugins: an entry is a single value; allowed: {name: NAME, path: FILE.so, options: {...}}
q.yaml:23:27: plugins.path: is repeated, first at line 23; allowed: once
q.yaml:23:48: plugins.options: is a single value; allowed: a map of the plugin's options
q.yaml:23:12: plugins: the name "x" is repeated, first at line 20; allowed: one name once
q.yaml:26:3: candidates.routes: is not offered by this version (sources by queue name); allowed: candidates.default alone
q.yaml:27:3: candidates.split: is not offered by this version (two sources side by side); allowed: candidates.default alone
q.yaml:28:6: log: is a single value; allowed: a map of level, json
q.yaml:29:1: data: has no value; allowed: text without control characters
)");
}

TEST(Load, WhatIsNotYamlNamesTheLine) {
    EXPECT_EQ(faults("log: {level: debug\nlisten: x"),
              "q.yaml:2:7: not YAML: end of map flow not found\n");
    EXPECT_EQ(faults("listen: [::1]:6632\n"), "q.yaml:1:14: not YAML: end of map not found\n");
    EXPECT_EQ(faults("- a\n"),
              "q.yaml:1:1: is a list; allowed: a map of listen, data, server_id, database, limits, "
              "pop, groups, segments, ack, dedup, statistics, metrics, switches, maintenance, "
              "compat, log, plugins, candidates, plugin_folders, timers, encryption, auth, "
              "tenancy\n");
}

TEST(Load, ValuesThatContradictEachOtherAreFoundWhereSomebodyWroteOne) {
    EXPECT_EQ(
        faults("limits: {body: 600MiB}\n"),
        "q.yaml:1:16: limits.body: is above limits.bodies_in_flight; allowed: at most that\n");
    EXPECT_EQ(faults("limits: {bodies_in_flight: 1MiB}\n"),
              "q.yaml:1:28: limits.bodies_in_flight: is below limits.body; allowed: at least "
              "that\n");
    EXPECT_EQ(faults("pop: {default_timeout: 2m}\n"),
              "q.yaml:1:24: pop.default_timeout: is above limits.max_wait; allowed: at most "
              "that\n");
    EXPECT_EQ(
        faults("pop: {backoff_initial: 2s}\n"),
        "q.yaml:1:24: pop.backoff_initial: is above pop.backoff_max; allowed: at most that\n");
    EXPECT_EQ(faults("limits: {uri: 20KiB}\n"),
              "q.yaml:1:15: limits.uri: is above limits.head; allowed: at most that\n");
}

TEST(Load, TheDefaultSourceMustBeALoadedPlugin) {
    EXPECT_EQ(faults("candidates:\n  default: ring\n"),
              "q.yaml:2:12: candidates.default: ring is no plugin of this configuration; "
              "allowed: hotlist, sqlscan, timers\n");
    EXPECT_EQ(faults("plugins:\n  - {name: ring, path: ring.so}\n"),
              "q.yaml:2:3: candidates.default: hotlist is no plugin of this configuration; "
              "allowed: ring\n");
    EXPECT_EQ(faults("plugins: []\n"),
              "q.yaml:1:10: candidates.default: hotlist is no plugin of this configuration; "
              "allowed: the name of a plugin under plugins\n");
    const Loaded loaded =
        accepted("plugins: [{name: ring, path: ring.so}]\ncandidates: {default: ring}\n");
    EXPECT_EQ(loaded.settings.default_source, "ring");
    EXPECT_EQ(loaded.settings.default_source_place.line, 2);
    EXPECT_EQ(loaded.settings.default_source_place.column, 23);
}

TEST(Load, PluginOptionsKeepTheirTextOrderPlacesAndRepeats) {
    const Loaded loaded = accepted(R"(plugins:
  - name: hotlist
    path: /opt/hotlist.so
    options:
      floor: 30s
      shards: "8"
      floor: 10s
      list: [1, 2]
      none:
)");
    ASSERT_EQ(loaded.settings.plugins.size(), 1u);
    const PluginSettings& plugin = loaded.settings.plugins[0];
    EXPECT_EQ(plugin.path, "/opt/hotlist.so");
    EXPECT_EQ(plugin.place.line, 2);
    ASSERT_EQ(plugin.options.size(), 5u);
    EXPECT_EQ(plugin.options[0].first, "floor");
    EXPECT_EQ(plugin.options[0].second.text, "30s");
    EXPECT_EQ(plugin.options[0].second.place.line, 5);
    EXPECT_EQ(plugin.options[0].second.place.column, 14);
    EXPECT_EQ(plugin.options[0].second.key_place.column, 7);
    EXPECT_EQ(plugin.options[1].second.text, "8");
    EXPECT_EQ(plugin.options[2].first, "floor");
    EXPECT_EQ(plugin.options[2].second.text, "10s");
    EXPECT_TRUE(plugin.options[2].second.scalar);
    EXPECT_FALSE(plugin.options[3].second.scalar);
    EXPECT_EQ(plugin.options[4].second.text, "");
    EXPECT_TRUE(plugin.options[4].second.scalar);
}

TEST(Load, LaterLayersWin) {
    const std::string yaml = "listen: 127.0.0.2:7000\nlimits:\n  body: 1MiB\n  fields: 50\n";
    const Loaded loaded = accepted(yaml, with({{"QUEEN_MAX_BODY_BYTES", "2048"}, {"PORT", "8000"}}),
                                   {{"limits.body", "4KiB"}});
    EXPECT_EQ(loaded.settings.limits.body_bytes, 4096);
    EXPECT_EQ(loaded.settings.limits.fields, 50);
    EXPECT_EQ(loaded.settings.listen_address, "127.0.0.2");
    EXPECT_EQ(loaded.settings.port, 8000);
    EXPECT_EQ(effective(loaded, "limits.body").source, "command line");
    EXPECT_EQ(effective(loaded, "limits.fields").source, "q.yaml:4:11");
    EXPECT_EQ(effective(loaded, "listen").source, "environment PORT");
    EXPECT_EQ(effective(loaded, "listen").value, "127.0.0.2:8000");
    EXPECT_EQ(effective(loaded, "limits.head").source, "the built-in default");
    EXPECT_EQ(accepted(yaml, with({{"QUEEN_MAX_BODY_BYTES", "2048"}})).settings.limits.body_bytes,
              2048);
    EXPECT_EQ(accepted(yaml).settings.limits.body_bytes, 1 << 20);
}

TEST(Load, OverridesAreCheckedLikeTheFile) {
    EXPECT_EQ(faults("", quiet(), {{"log.levl", "debug"}}),
              "command line: log.levl: is unknown; did you mean log.level?\n");
    EXPECT_EQ(faults("", quiet(), {{"limits.idle_time", "5"}}),
              "command line: limits.idle_time: \"5\" has no unit; write a whole number with its "
              "unit, as 250ms, 30s, 5m or 1h; allowed: 10ms to 1d\n");
    EXPECT_EQ(faults("", quiet(), {{"data", ""}}),
              "command line: data: has no value; allowed: text without control characters\n");
    const Loaded loaded = accepted("", quiet(),
                                   {{"listen", "[::1]:0"},
                                    {"database", "host=db"},
                                    {"plugin_folders", "[/a, /b]"},
                                    {"plugins", "[{name: p, path: p.so}]"},
                                    {"candidates.default", "p"}});
    EXPECT_EQ(loaded.settings.listen_address, "::1");
    EXPECT_EQ(loaded.settings.port, 0);
    EXPECT_EQ(loaded.settings.database.url, "host=db");
    EXPECT_THAT(loaded.settings.plugin_folders, ElementsAre("/a", "/b"));
    EXPECT_EQ(loaded.settings.plugins.at(0).name, "p");
    EXPECT_EQ(faults("", quiet(), {{"port", "66000"}}),
              "command line: listen: \"66000\" is no port; allowed: 0 to 65535\n");
    const Loaded port =
        accepted("listen: 127.0.0.2:80\n", with({{"PORT", "81"}}), {{"port", "82"}});
    EXPECT_EQ(port.settings.listen_address, "127.0.0.2");
    EXPECT_EQ(port.settings.port, 82);
    EXPECT_THAT(faults("", quiet(), {{"plugins", "[{name: p"}}),
                HasSubstr("command line: plugins: is not YAML; allowed: a list of {name"));
}

TEST(Load, AnAddressThatOthersReachIsWarnedAbout) {
    for (const char* listen : {"0.0.0.0:6632", "192.168.1.5:80", "'[::]:6632'"}) {
        const Loaded loaded = accepted(std::string("listen: ") + listen + "\n");
        ASSERT_EQ(loaded.warnings.size(), 1u) << listen;
        EXPECT_THAT(loaded.warnings[0], HasSubstr("q.yaml:1:9: listen: "));
        EXPECT_THAT(loaded.warnings[0], HasSubstr("reachable from other machines"));
        const std::string asked = "auth: {enabled: true, secret: 0123456789abcdef0123456789abcdef}";
        EXPECT_THAT(accepted(std::string("listen: ") + listen + "\n" + asked).warnings, IsEmpty())
            << "who is asked for a token is no stranger";
    }
    for (const char* listen : {"127.0.0.1:6632", "127.9.9.9:80", "'[::1]:6632'", "localhost:0"}) {
        EXPECT_THAT(accepted(std::string("listen: ") + listen + "\n").warnings, IsEmpty())
            << listen;
    }
}

TEST(Load, TheDataDirectoryDependsOnTheUserAndTheEnvironment) {
    if (geteuid() == 0) {
        EXPECT_EQ(accepted("").settings.data_directory, "/var/lib/queen");
    } else {
        EXPECT_EQ(accepted("").settings.data_directory, "/home/ada/.local/share/queen");
        EXPECT_EQ(accepted("", with({{"XDG_DATA_HOME", "/data"}})).settings.data_directory,
                  "/data/queen");
    }
    EXPECT_EQ(accepted("data: /srv/queen\n").settings.data_directory, "/srv/queen");
    EXPECT_EQ(accepted("data: ./x/../y\n").settings.data_directory,
              (std::filesystem::current_path() / "y").string());
    EXPECT_EQ(faults("data: ~/queen\n"),
              "q.yaml:1:7: data: \"~/queen\" is not expanded; allowed: a path without ~\n");
}

TEST(Load, TheServerIsNamedAfterItsHostElseByChance) {
    EXPECT_EQ(accepted("").settings.server_id, "alpha");
    EXPECT_EQ(accepted("server_id: one\n").settings.server_id, "one");
    EXPECT_EQ(accepted("", with({{"QUEEN_SERVER_ID", "two"}})).settings.server_id, "two");
    const std::string id = accepted("", {{"HOME", "/home/ada"}}).settings.server_id;
    EXPECT_THAT(id, ::testing::MatchesRegex("queen-[0-9a-f]{8}"));
    EXPECT_NE(accepted("", {{"HOME", "/home/ada"}}).settings.server_id, id);
}

TEST(Load, AServerIdThatOthersCannotBeToldIsRefusedWhereItStands) {
    const std::string allowed = "; allowed: 1 to 255 bytes of UTF-8 without control characters\n";
    EXPECT_EQ(faults("server_id: \"\"\n"),
              "q.yaml:1:12: server_id: is empty; allowed: text without control characters\n");
    const std::string most(255, 'x');
    EXPECT_EQ(accepted("server_id: " + most + "\n").settings.server_id, most);
    EXPECT_THAT(faults("\nserver_id: " + most + "y\n"),
                AllOf(StartsWith("q.yaml:2:12: server_id: "),
                      EndsWith(": it is longer than 255 bytes (256)" + allowed)));
    EXPECT_THAT(faults("server_id: \"a\\x85b\"\n"),
                EndsWith("it must not contain control characters" + allowed));
    const std::string id = accepted("", with({{"HOSTNAME", most + "y"}})).settings.server_id;
    EXPECT_THAT(id, ::testing::MatchesRegex("queen-[0-9a-f]{8}")) << "auto finds another";
}

TEST(Load, PluginFoldersLieBesideTheProgramUnlessNamed) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    EXPECT_THAT(accepted("").settings.plugin_folders,
                ElementsAre((program / "../plugins").lexically_normal().string(),
                            (program / "../lib/queen/plugins").lexically_normal().string()));
    EXPECT_THAT(accepted("plugin_folders: [/opt/p]\n").settings.plugin_folders,
                ElementsAre("/opt/p"));
    EXPECT_EQ(faults("plugin_folders: [/opt/p, [x]]\n"),
              "q.yaml:1:26: plugin_folders: is a list; allowed: a list of texts\n");
}

TEST(Load, FilesThatCannotBeReadAreNamed) {
    EXPECT_EQ(load("/nowhere/q.yaml", quiet(), {}).error(),
              Problems{"/nowhere/q.yaml: cannot be read: No such file or directory"});
    EXPECT_EQ(load("/tmp", quiet(), {}).error(),
              Problems{"/tmp: cannot be read: it is a directory"});
    EXPECT_TRUE(load(std::nullopt, quiet(), {}).has_value());
}

TEST(Load, TheShippedFileChangesNothing) {
    const auto shipped = load(QUEEN_SOURCE_DIR "/config/queen.yaml", quiet(), {});
    ASSERT_TRUE(shipped.has_value()) << shipped.error().front();
    const Loaded plain = accepted("");
    ASSERT_EQ(shipped->effective.size(), plain.effective.size());
    for (std::size_t i = 0; i < plain.effective.size(); ++i) {
        EXPECT_EQ(shipped->effective[i].name, plain.effective[i].name);
        EXPECT_EQ(shipped->effective[i].value, plain.effective[i].value);
        EXPECT_THAT(shipped->effective[i].source, HasSubstr("config/queen.yaml"));
    }
}

/// Text that a person's slips and a broken editor make of a file: pieces of YAML put together.
std::string scrambled(std::mt19937& random) {
    static constexpr std::array kPieces{
        "listen",    ": ",       ":",          "\n",      "\n  ",  "- ",          "[",
        "]",         "{",        "}",          ", ",      "\"",    "'",           "#",
        "&a ",       "*a",       "!!x ",       "|\n",     ">\n",   "? ",          "limits",
        "plugins",   "name",     "path",       "options", "pop",   "30s",         "64MiB",
        "true",      "\t",       "%YAML",      "---\n",   "...\n", "database",    "file:",
        "/dev/null", "\xc3\xa9", "\xff",       "<<",      "~",     "embedded",    "\\x",
        "\\",        "\r\n",     "candidates", "default", "=",     "\xef\xbb\xbf"};
    std::uniform_int_distribution<std::size_t> piece(0, kPieces.size() - 1);
    std::uniform_int_distribution<int> length(1, 40);
    std::string text;
    for (int i = length(random); i > 0; --i) {
        text += kPieces[piece(random)];
    }
    return text;
}

TEST(Load, AnyTextIsAcceptedOrRefusedButNeverThrown) {
    std::mt19937 random(20261129);
    int refused = 0;
    for (int round = 0; round < 4000; ++round) {
        const std::string text = scrambled(random);
        SCOPED_TRACE(::testing::PrintToString(text));
        const auto loaded = load_text("q.yaml", text, quiet(), {});
        if (!loaded) {
            ++refused;
            ASSERT_FALSE(loaded.error().empty());
            for (const std::string& problem : loaded.error()) {
                ASSERT_THAT(problem, ::testing::StartsWith("q.yaml:"));
                ASSERT_EQ(problem.find('\n'), std::string::npos);
            }
        }
    }
    EXPECT_GT(refused, 2000); // the pieces do make faults
}

TEST(Load, EveryCutOfTheShippedFileIsAcceptedOrRefused) {
    std::ifstream in(QUEEN_SOURCE_DIR "/config/queen.yaml");
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    ASSERT_GT(whole.size(), 1000u);
    for (std::size_t cut = 0; cut < whole.size(); cut += 7) {
        const auto loaded = load_text("q.yaml", whole.substr(0, cut), quiet(), {});
        ASSERT_TRUE(loaded.has_value() || !loaded.error().empty()) << cut;
    }
}

} // namespace
} // namespace queen::settings::testing
