#include "settings/environment.hpp"

#include "settings/table.hpp"
#include "settings/values.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace queen::settings {
namespace {

/// A variable that only a plugin can do something about.
struct OfPlugins {
    std::string_view name;
    std::string_view asks_for; ///< "": it only tunes
};

constexpr std::array kOfPlugins{
    OfPlugins{"QUEEN_MESH_PEERS", "a mesh with other brokers"},
    OfPlugins{"QUEEN_UDP_PEERS", "a mesh with other brokers"},
    OfPlugins{"QUEEN_MESH_PORT", ""},
    OfPlugins{"QUEEN_UDP_NOTIFY_PORT", ""},
    OfPlugins{"QUEEN_SYNC_ENABLED", ""},
    OfPlugins{"QUEEN_SYNC_SECRET", ""},
    OfPlugins{"QUEEN_SYNC_HEARTBEAT_MS", ""},
    OfPlugins{"QUEEN_SYNC_DEAD_THRESHOLD_MS", ""},
};

/// Beginnings of names. The variables of a plugin stand in its own option table and are not here.
constexpr std::array<std::string_view, 15> kUnsupported{
    "QUEEN_ADMISSION_", "QUEEN_SEG_",       "QUEEN_VEGAS_",        "QUEEN_V2_BUNDLE_",
    "QUEEN_V2_FUSION_", "QUEEN_POP_FUSION", "QUEEN_POP_AUTOPILOT", "QUEEN_ACK_FUSION",
    "FILE_BUFFER_",     "QUEEN_TIMERS_",    "QUEEN_SYNC_",         "JWT_",
    "QUEEN_KV_",        "RUST_LOG",         "QUEEN_LOG_RATES_MS",
};

/// A variable of an option's row.
bool is_option(std::string_view name) {
    const auto all = options();
    return std::any_of(all.begin(), all.end(), [&](const Option& option) {
        return std::find(option.env.begin(), option.env.end(), name) != option.env.end();
    });
}

} // namespace

Environment process_environment() {
    Environment env;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos) {
            env.emplace(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    return env;
}

void check_other_variables(const Environment& env, std::vector<std::string>& warnings) {
    for (const auto& entry : env) {
        const std::string& name = entry.first; // a lambda of clang 14 captures no binding
        const bool of_plugins =
            std::any_of(kOfPlugins.begin(), kOfPlugins.end(),
                        [&](const OfPlugins& variable) { return variable.name == name; });
        const bool unsupported =
            std::any_of(kUnsupported.begin(), kUnsupported.end(),
                        [&](std::string_view beginning) { return name.starts_with(beginning); });
        if (!entry.second.empty() && unsupported && !of_plugins && !is_option(name)) {
            warnings.push_back("environment " + name +
                               ": is not supported by this version and has no effect");
        }
    }
}

void check_plugin_variables(const Environment& env, const std::set<std::string>& taken,
                            Problems& problems, std::vector<std::string>& warnings) {
    for (const OfPlugins& variable : kOfPlugins) {
        const auto found = env.find(std::string(variable.name));
        if (found == env.end() || found->second.empty() || taken.contains(found->first)) {
            continue;
        }
        if (variable.asks_for.empty()) {
            warnings.push_back("environment " + found->first +
                               ": no plugin of this broker takes it, and it has no effect");
        } else {
            problems.push_back("environment " + found->first + ": asks for " +
                               std::string(variable.asks_for) +
                               ", and no plugin of this broker takes it; name one under plugins, "
                               "or unset the variable, so that nobody relies on what is not there");
        }
    }
}

} // namespace queen::settings
