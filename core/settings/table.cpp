#include "settings/table.hpp"

#include "settings/address.hpp"
#include "settings/values.hpp"

#include <algorithm>
#include <cctype>

namespace queen::settings {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
constexpr std::int64_t kDescriptors = 1'048'576; ///< Linux' usual hard limit (fs.nr_open)

// Bounds without another source are guesses at what cannot be meant: wide enough for tests and for
// odd machines, narrow enough to catch a slip of the unit.
constexpr std::array kOptions{
    Option{"listen",
           Type::address,
           "",
           "127.0.0.1:6632",
           0,
           65535,
           "",
           "Address and port of the HTTP interface; [::1]:6632 for IPv6.",
           {"PORT"},
           [](Settings& s, Value v) {
               s.listen_address = std::move(v.text);
               s.port = static_cast<std::uint16_t>(v.number);
           }},
    Option{
        "data",
        Type::text,
        "",
        "auto",
        0,
        0,
        "",
        "Directory of the embedded database and other files; auto: /var/lib/queen for root, else "
        "$XDG_DATA_HOME/queen or ~/.local/share/queen.",
        {},
        [](Settings& s, Value v) { s.data_directory = std::move(v.text); }},
    Option{"server_id",
           Type::text,
           "",
           "auto",
           0,
           0,
           "",
           "Name of this broker among others; auto: the host's name, else queen- and 8 hex digits.",
           {"QUEEN_SERVER_ID"},
           [](Settings& s, Value v) { s.server_id = std::move(v.text); }},

    Option{"database.url",
           Type::connection,
           "",
           "embedded",
           0,
           0,
           "",
           "embedded for a private PostgreSQL in the data directory, or yours: postgresql://..., "
           "host=... dbname=..., or file:PATH to read either from.",
           {},
           [](Settings& s, Value v) {
               s.database.embedded = v.text == "embedded";
               s.database.url = s.database.embedded ? std::string() : std::move(v.text);
           }},
    Option{"database.sessions",
           Type::whole,
           "sessions",
           "0",
           0,
           1000,
           "",
           "Database sessions, each with a worker thread; 0: 8 per core, 8 to 64.",
           {"DB_POOL_SIZE"},
           [](Settings& s, Value v) { s.database.sessions = v.number; }},
    Option{"database.statement_timeout",
           Type::duration,
           "",
           "30s",
           10,
           kHour,
           "",
           "A statement that runs longer is cancelled.",
           {"QUEEN_STMT_TIMEOUT_MS"},
           [](Settings& s, Value v) { s.database.statement_timeout = milliseconds(v.number); }},
    Option{"database.apply_schema",
           Type::boolean,
           "",
           "true",
           0,
           0,
           "",
           "Create or update the schema queen at start.",
           {"QUEEN_APPLY_SCHEMA"},
           [](Settings& s, Value v) { s.database.apply_schema = v.flag; }},

    Option{"limits.head",
           Type::size,
           "",
           "16KiB",
           kKiB,
           kMiB,
           "",
           "A request's line and header fields together.",
           {},
           [](Settings& s, Value v) { s.limits.head_bytes = v.number; }},
    Option{"limits.uri",
           Type::size,
           "",
           "8KiB",
           256,
           kMiB,
           "",
           "A request's path and query.",
           {},
           [](Settings& s, Value v) { s.limits.uri_bytes = v.number; }},
    Option{"limits.fields",
           Type::whole,
           "fields",
           "100",
           8,
           10'000,
           "",
           "Header fields of a request.",
           {},
           [](Settings& s, Value v) { s.limits.fields = v.number; }},
    Option{"limits.body",
           Type::size,
           "",
           "64MiB",
           kKiB,
           kGiB,
           "",
           "A request's body; larger ones are answered 413.",
           {"QUEEN_MAX_BODY_BYTES"},
           [](Settings& s, Value v) { s.limits.body_bytes = v.number; }},
    Option{"limits.bodies_in_flight",
           Type::size,
           "",
           "512MiB",
           kKiB,
           64 * kGiB,
           "",
           "All bodies being received or worked on.",
           {},
           [](Settings& s, Value v) { s.limits.bodies_in_flight_bytes = v.number; }},
    Option{"limits.answer",
           Type::size,
           "",
           "64MiB",
           kKiB,
           kGiB,
           "",
           "Messages of one pop's answer.",
           {},
           [](Settings& s, Value v) { s.limits.answer_bytes = v.number; }},
    Option{"limits.connections",
           Type::whole,
           "connections",
           "0",
           0,
           kDescriptors,
           "",
           "Open connections; 0: what the descriptor limit allows.",
           {},
           [](Settings& s, Value v) { s.limits.connections = v.number; }},
    Option{"limits.parked",
           Type::whole,
           "pops",
           "0",
           0,
           kDescriptors,
           "",
           "Pops that wait for messages; 0: as many as connections.",
           {},
           [](Settings& s, Value v) { s.limits.parked = v.number; }},
    Option{"limits.head_time",
           Type::duration,
           "",
           "10s",
           10,
           kHour,
           "",
           "From the first byte of a request to the end of its head.",
           {},
           [](Settings& s, Value v) { s.limits.head_time = milliseconds(v.number); }},
    Option{"limits.body_progress_time",
           Type::duration,
           "",
           "30s",
           10,
           kHour,
           "",
           "A body that brings no byte for this long ends the connection.",
           {},
           [](Settings& s, Value v) { s.limits.body_progress_time = milliseconds(v.number); }},
    Option{"limits.idle_time",
           Type::duration,
           "",
           "75s",
           10,
           24 * kHour,
           "",
           "An open connection without a request is closed after it.",
           {},
           [](Settings& s, Value v) { s.limits.idle_time = milliseconds(v.number); }},
    Option{"limits.write_time",
           Type::duration,
           "",
           "60s",
           10,
           kHour,
           "",
           "An answer of which the client takes no byte for this long ends the connection.",
           {},
           [](Settings& s, Value v) { s.limits.write_time = milliseconds(v.number); }},
    Option{"limits.max_wait",
           Type::duration,
           "",
           "60s",
           1,
           kHour,
           "",
           "Upper bound of a pop's timeout.",
           {},
           [](Settings& s, Value v) { s.limits.max_wait = milliseconds(v.number); }},

    Option{"pop.default_timeout",
           Type::duration,
           "",
           "30s",
           1,
           kHour,
           "",
           "How long a waiting pop waits when it names no timeout.",
           {"DEFAULT_TIMEOUT", "POP_DEFAULT_TIMEOUT_MS"},
           [](Settings& s, Value v) { s.pop.default_timeout = milliseconds(v.number); }},
    Option{"pop.default_batch",
           Type::whole,
           "messages",
           "200",
           1,
           100'000,
           "",
           "Messages of a pop that names no batch.",
           {},
           [](Settings& s, Value v) { s.pop.default_batch = v.number; }},
    Option{"pop.default_subscription",
           Type::choice,
           "",
           "all",
           0,
           0,
           "all|new",
           "Where a new consumer group begins: all that is kept, or new messages only.",
           {"DEFAULT_SUBSCRIPTION_MODE"},
           [](Settings& s, Value v) {
               s.pop.default_subscription =
                   v.text == "new" ? Subscription::Mode::fresh : Subscription::Mode::all;
           }},
    Option{"pop.backoff_initial",
           Type::duration,
           "",
           "100ms",
           1,
           kMinute,
           "",
           "A parked pop that nothing wakes looks again after this.",
           {"POP_WAIT_INITIAL_INTERVAL_MS"},
           [](Settings& s, Value v) { s.pop.backoff_initial = milliseconds(v.number); }},
    Option{"pop.backoff_threshold",
           Type::whole,
           "looks",
           "3",
           0,
           1000,
           "",
           "Looks before the interval begins to grow.",
           {"POP_WAIT_BACKOFF_THRESHOLD"},
           [](Settings& s, Value v) { s.pop.backoff_threshold = v.number; }},
    Option{"pop.backoff_multiplier",
           Type::real,
           "",
           "2.0",
           1,
           100,
           "",
           "Growth of the interval with each look.",
           {"POP_WAIT_BACKOFF_MULTIPLIER"},
           [](Settings& s, Value v) { s.pop.backoff_multiplier = v.real; }},
    Option{"pop.backoff_max",
           Type::duration,
           "",
           "1s",
           1,
           kMinute,
           "",
           "Longest interval between two looks.",
           {"POP_WAIT_MAX_INTERVAL_MS"},
           [](Settings& s, Value v) { s.pop.backoff_max = milliseconds(v.number); }},
    Option{"pop.pending_gate",
           Type::boolean,
           "",
           "true",
           0,
           0,
           "",
           "Ask the database whether anything is pending before a parked pop tries a claim.",
           {"QUEEN_POP_PENDING_GATE"},
           [](Settings& s, Value v) { s.pop.pending_gate = v.flag; }},

    Option{"segments.zstd_level",
           Type::whole,
           "",
           "3",
           1,
           19,
           "",
           "Compression of stored segments: 1 is fastest, 19 smallest.",
           {"QUEEN_V2_ZSTD_LEVEL"},
           [](Settings& s, Value v) { s.zstd_level = v.number; }},

    Option{"compat.configure_default",
           Type::choice,
           "",
           "replace",
           0,
           0,
           "replace|merge",
           "What configure does without a mode: replace all options of the queue, or merge.",
           {},
           [](Settings& s, Value v) { s.configure_merges = v.text == "merge"; }},

    Option{"log.level",
           Type::choice,
           "",
           "information",
           0,
           0,
           "fatal|critical|error|warning|notice|information|debug|trace",
           "The least severe lines that are written.",
           {"LOG_LEVEL"},
           [](Settings& s, Value v) { s.log_level = std::move(v.text); }},
    Option{"log.json",
           Type::boolean,
           "",
           "false",
           0,
           0,
           "",
           "Lines as JSON objects instead of key=value.",
           {"QUEEN_LOG_JSON"},
           [](Settings& s, Value v) { s.log_json = v.flag; }},

    Option{
        "plugins",
        Type::plugins,
        "",
        "[{name: sqlscan, path: sqlscan.so}]",
        0,
        0,
        "",
        "Plugins to load: a name for this file, the library's path, and the plugin's own options.",
        {},
        [](Settings& s, Value v) { s.plugins = std::move(v.plugins); }},
    Option{"candidates.default",
           Type::text,
           "",
           "sqlscan",
           0,
           0,
           "",
           "Name of the plugin that says where a pop looks for messages.",
           {},
           [](Settings& s, Value v) { s.default_source = std::move(v.text); }},
    Option{"plugin_folders",
           Type::texts,
           "",
           "[]",
           0,
           0,
           "",
           "Where relative plugin paths are looked up, in order; empty: ../plugins and "
           "../lib/queen/plugins beside the program.",
           {},
           [](Settings& s, Value v) { s.plugin_folders = std::move(v.texts); }},
};

Result<Value> in_bounds(const Option& option, Value value, std::int64_t number,
                        std::string_view text) {
    if (number < option.min || number > option.max) {
        return fail(Errc::invalid_argument, shown(text) + " is out of bounds");
    }
    value.number = number;
    return value;
}

std::vector<std::string> split_choices(std::string_view choices) {
    std::vector<std::string> out;
    while (!choices.empty()) {
        const std::size_t bar = std::min(choices.find('|'), choices.size());
        out.emplace_back(choices.substr(0, bar));
        choices.remove_prefix(std::min(bar + 1, choices.size()));
    }
    return out;
}

Result<Value> read_choice(const Option& option, std::string_view text) {
    const auto choices = split_choices(option.choices);
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
        Value value;
        value.text = text;
        return value;
    }
    const std::string near = nearest(text, choices);
    return fail(Errc::invalid_argument, shown(text) + " is not known" +
                                            (near.empty() ? "" : "; did you mean " + near + "?"));
}

/// Words of the contract's variables that this broker spells out.
std::string spelled_out(const Option& option, std::string_view text) {
    std::string word(text);
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (option.name == "log.level") {
        return word == "info" ? "information" : word == "warn" ? "warning" : word;
    }
    if (word == "new-only" || word == "new_only" || word == "newonly") {
        return "new";
    }
    return word;
}

Result<Value> check(const Option& option, std::string_view text) {
    Value value;
    switch (option.type) {
    case Type::text:
        if (text.empty()) {
            return fail(Errc::invalid_argument, "is empty");
        }
        if (std::any_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
            return fail(Errc::invalid_argument, shown(text) + " has control characters");
        }
        value.text = text;
        return value;
    case Type::connection:
        value.text = text;
        return value;
    case Type::texts:
    case Type::plugins: // read from the tree (load.cpp), never from one text
        return fail(Errc::invalid_argument, "is a single value");
    case Type::whole: {
        const auto number = parse_whole(text);
        return number ? in_bounds(option, value, *number, text) : fail(number.error());
    }
    case Type::real: {
        const auto number = parse_real(text);
        if (!number) {
            return fail(number.error());
        }
        value.real = *number;
        if (*number < static_cast<double>(option.min) ||
            *number > static_cast<double>(option.max)) {
            return fail(Errc::invalid_argument, shown(text) + " is out of bounds");
        }
        return value;
    }
    case Type::boolean: {
        const auto flag = parse_yaml_boolean(text);
        if (!flag) {
            return fail(flag.error());
        }
        value.flag = *flag;
        return value;
    }
    case Type::duration: {
        const auto time = parse_duration(text);
        if (!time) {
            return fail(time.error());
        }
        const auto whole = std::chrono::duration_cast<milliseconds>(*time);
        if (whole != *time) {
            return fail(Errc::invalid_argument, shown(text) + " is not in whole milliseconds");
        }
        return in_bounds(option, value, whole.count(), text);
    }
    case Type::size: {
        const auto bytes = parse_size(text);
        return bytes ? in_bounds(option, value, *bytes, text) : fail(bytes.error());
    }
    case Type::choice:
        return read_choice(option, text);
    case Type::address: {
        auto address = parse_address(text);
        if (!address) {
            return fail(address.error());
        }
        value.text = std::move(address->host);
        value.number = address->port;
        return value;
    }
    }
    return fail(Errc::internal, "unknown type of option");
}

Result<Value> explain(const Option& option, Result<Value> result) {
    if (!result) {
        const std::string what = allowed(option);
        if (!what.empty()) {
            result.error().message += "; allowed: " + what;
        }
    }
    return result;
}

} // namespace

std::span<const Option> options() {
    return kOptions;
}

const Option* find_option(std::string_view name) {
    const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                    [&](const Option& option) { return option.name == name; });
    return found == kOptions.end() ? nullptr : &*found;
}

std::string allowed(const Option& option) {
    switch (option.type) {
    case Type::whole:
        return std::to_string(option.min) + " to " + std::to_string(option.max) +
               (option.unit.empty() ? "" : " " + std::string(option.unit));
    case Type::real:
        return std::to_string(option.min) + " to " + std::to_string(option.max);
    case Type::duration:
        return format_duration(milliseconds(option.min)) + " to " +
               format_duration(milliseconds(option.max));
    case Type::size:
        return format_size(option.min) + " to " + format_size(option.max);
    case Type::boolean:
        return "true or false";
    case Type::choice: {
        std::string out;
        for (const std::string& choice : split_choices(option.choices)) {
            out += (out.empty() ? "" : ", ") + choice;
        }
        return out;
    }
    case Type::address:
        return "ADDRESS:PORT as 127.0.0.1:6632 or [::1]:6632, port 0 to 65535";
    case Type::connection:
        return "embedded, postgresql://..., host=... dbname=..., or file:PATH";
    case Type::text:
        return "text without control characters";
    case Type::texts:
        return "a list of texts";
    case Type::plugins:
        return "a list of {name: NAME, path: FILE.so, options: {...}}";
    }
    return {};
}

std::string_view env_unit(const Option& option) {
    switch (option.type) {
    case Type::duration:
        return "ms";
    case Type::size:
        return "bytes";
    case Type::address:
        return "the port alone";
    case Type::text:
    case Type::whole:
    case Type::real:
    case Type::boolean:
    case Type::choice:
    case Type::connection:
    case Type::texts:
    case Type::plugins:
        break;
    }
    return {};
}

Result<Value> read_value(const Option& option, std::string_view text) {
    return explain(option, check(option, text));
}

Result<Value> read_env_value(const Option& option, std::string_view text) {
    Value value;
    switch (option.type) {
    case Type::duration:
    case Type::size: {
        const auto number = parse_whole(text);
        auto result =
            number ? in_bounds(option, value, *number, text) : Result<Value>(fail(number.error()));
        if (!result) {
            result.error().message += "; allowed: " + std::to_string(option.min) + " to " +
                                      std::to_string(option.max) + " " +
                                      std::string(env_unit(option));
        }
        return result;
    }
    case Type::boolean: {
        const auto flag = parse_env_boolean(text);
        if (!flag) {
            return fail(flag.error());
        }
        value.flag = *flag;
        return value;
    }
    case Type::choice:
        return explain(option, read_choice(option, spelled_out(option, text)));
    case Type::address:
    case Type::text:
    case Type::whole:
    case Type::real:
    case Type::connection:
    case Type::texts:
    case Type::plugins:
        break;
    }
    return read_value(option, text);
}

} // namespace queen::settings
