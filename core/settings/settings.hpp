#pragma once
#include "base/result.hpp"
#include "model/subscription.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace queen::settings {

/// Where a value was written. Lines and columns from 1; line 0: not from a file.
struct Place {
    std::string file; ///< "config/queen.yaml", "the built-in default", "environment PORT"
    int line = 0;
    int column = 0;
};

struct DatabaseSettings {
    bool embedded = true;
    std::string url;           ///< libpq URI or keyword list when not embedded; secrets resolved
    std::int64_t sessions = 0; ///< 0: 8 per core, 8 to 64
    std::chrono::milliseconds statement_timeout{30'000};
    bool apply_schema = true;
};

struct LimitSettings {
    std::int64_t head_bytes, uri_bytes, fields, body_bytes, bodies_in_flight_bytes, answer_bytes;
    std::int64_t connections, parked; ///< 0: what the descriptor limit allows
    std::chrono::milliseconds head_time, body_progress_time, idle_time, write_time;
    std::chrono::milliseconds max_wait; ///< upper bound of `timeout`
};

struct AckSettings {
    bool registry = true;
    std::int64_t registry_bytes = 0;
};

struct DedupSettings {
    bool cache = true;
    std::int64_t cache_bytes = 0;
};

/// What the broker does for itself now and then.
struct SystemSettings {
    std::chrono::milliseconds statistics_interval{10'000};
    std::chrono::milliseconds metrics_flush{60'000};
    std::chrono::milliseconds switches_refresh{60'000};
};

/// What a request may ask for.
struct TimerSettings {
    std::int64_t max_payload = std::int64_t{1} << 20; ///< bytes of a message, packed and unpacked
    std::chrono::milliseconds max_horizon{7'776'000'000};
    std::int64_t max_ops = 256;
};

struct GroupSettings {
    std::chrono::milliseconds repair_interval{5'000};
};

struct PopSettings {
    std::chrono::milliseconds default_timeout{30'000};
    std::chrono::milliseconds backoff_initial{100};
    std::int64_t backoff_threshold = 3;
    double backoff_multiplier = 2.0;
    std::chrono::milliseconds backoff_max{1'000};
    Subscription::Mode default_subscription = Subscription::Mode::all;
    std::int64_t default_batch = 200;
    bool pending_gate = true;
};

struct EncryptionSettings {
    std::string key; ///< 64 hex digits; "": none
};

/// What a request's token must be. Texts that may be absent are "" then.
struct AuthSettings {
    bool enabled = false;
    std::string algorithm; ///< HS256 to HS512, RS256 to RS512, EdDSA, auto
    std::string secret, public_key, jwks_url;
    std::chrono::milliseconds jwks_refresh{3'600'000}, jwks_timeout{5'000};
    std::string issuer, audience;
    std::chrono::milliseconds clock_skew{30'000};
    std::vector<std::string> skip_paths;
    std::string role_claim, roles_claim;
    std::string role_admin, role_read_write, role_read_only, role_write_only;
};

struct TenancySettings {
    bool header = false;        ///< tenants come in x-queen-tenant
    bool trusted_proxy = false; ///< and somebody trusted sets it
};

/// What one broker at a time does for all of them.
struct MaintenanceSettings {
    std::chrono::milliseconds retention_interval{5'000};
    std::int64_t retention_batch = 1000;
    std::int64_t retention_parallelism = 1;
    std::int64_t retention_due_cap = 0;                ///< 0: derived
    std::chrono::milliseconds safety_walk{86'400'000}; ///< 0: only the first one
    bool partition_cleanup = true;
    std::int64_t partition_cleanup_days = 30;
    std::int64_t history_days = 90;
};

/// A plugin named in YAML. Values are kept as text with their places until the plugin's own option
/// table is known.
struct PluginSettings {
    struct Value {
        std::string text;
        bool scalar = true; ///< false: a list or a map, which no option takes
        Place place;        ///< of the value
        Place key_place;
    };
    std::string name;
    std::string path; ///< as written; relative ones are looked up in the plugin folders
    Place place;
    std::vector<std::pair<std::string, Value>> options; ///< in order, repeated ones included
};

struct Settings {
    std::string listen_address = "127.0.0.1";
    std::uint16_t port = 6632;
    std::string data_directory;
    std::string server_id;
    DatabaseSettings database;
    LimitSettings limits;
    PopSettings pop;
    GroupSettings groups;
    std::int64_t zstd_level = 3;
    AckSettings ack;
    DedupSettings dedup;
    SystemSettings system;
    TimerSettings timers;
    MaintenanceSettings maintenance;
    bool configure_merges = false; ///< compat.configure_default: merge
    EncryptionSettings encryption;
    AuthSettings auth;
    TenancySettings tenancy;
    std::string log_level = "information";
    bool log_json = false;
    std::vector<PluginSettings> plugins;
    std::string default_source; ///< name of a plugin
    Place default_source_place;
    std::vector<std::string> plugin_folders; ///< searched in order for relative paths
};

/// What `queenctl config show` prints: effective value and where it came from, secrets masked.
struct Effective {
    std::string name, value, source;
};

struct Loaded {
    Settings settings;
    std::vector<Effective> effective;
    std::vector<std::string> warnings;
};

/// One problem, ready to print: `file:line:column: option: what is wrong, what is allowed`.
using Problems = std::vector<std::string>;

using Environment = std::map<std::string, std::string>;
Environment process_environment();

/// Built-in defaults, then the file (if any), then the environment, then `overrides` (command line:
/// option name to its text; also `port` for the port of `listen`, `database` for database.url). All
/// problems at once.
/// @source CFG-1 to CFG-6, ENV-1 to ENV-6
tl::expected<Loaded, Problems> load(const std::optional<std::string>& file, const Environment& env,
                                    const std::map<std::string, std::string>& overrides);
/// The same over text, `name` standing for the file in messages.
tl::expected<Loaded, Problems> load_text(const std::string& name, const std::string& yaml,
                                         const Environment& env,
                                         const std::map<std::string, std::string>& overrides);

/// JSON Schema of the file, from the same table.
std::string json_schema();

} // namespace queen::settings
