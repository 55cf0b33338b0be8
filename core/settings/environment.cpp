#include "settings/environment.hpp"

#include "settings/table.hpp"
#include "settings/values.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace queen::settings {
namespace {

struct Dangerous {
    std::string_view name;
    bool boolean; ///< false: any text asks for it
    std::string_view asks_for;
};

constexpr std::array kDangerous{
    Dangerous{"QUEEN_MESH_PEERS", false, "a mesh with other brokers"},
    Dangerous{"QUEEN_UDP_PEERS", false, "a mesh with other brokers"},
};

/// Beginnings of names. The variables of a plugin stand in its own option table and are not here.
constexpr std::array<std::string_view, 17> kUnsupported{
    "QUEEN_ADMISSION_",
    "QUEEN_SEG_",
    "QUEEN_VEGAS_",
    "QUEEN_V2_BUNDLE_",
    "QUEEN_V2_FUSION_",
    "QUEEN_POP_FUSION",
    "QUEEN_POP_AUTOPILOT",
    "QUEEN_ACK_FUSION",
    "FILE_BUFFER_",
    "QUEEN_TIMERS_",
    "QUEEN_SYNC_",
    "QUEEN_MESH_PORT",
    "QUEEN_UDP_NOTIFY_PORT",
    "JWT_",
    "QUEEN_KV_",
    "RUST_LOG",
    "QUEEN_LOG_RATES_MS",
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

void check_other_variables(const Environment& env, Problems& problems,
                           std::vector<std::string>& warnings) {
    for (const Dangerous& variable : kDangerous) {
        const auto found = env.find(std::string(variable.name));
        if (found == env.end() || found->second.empty()) {
            continue;
        }
        if (variable.boolean) {
            const auto on = parse_env_boolean(found->second);
            if (!on) {
                problems.push_back("environment " + found->first + ": " + on.error().message);
                continue;
            }
            if (!*on) {
                continue;
            }
        }
        problems.push_back("environment " + found->first + ": asks for " +
                           std::string(variable.asks_for) +
                           ", which this version does not offer; it starts only with the variable "
                           "unset, so that nobody relies on what is not there");
    }
    for (const auto& entry : env) {
        const std::string& name = entry.first; // a lambda of clang 14 captures no binding
        const bool dangerous =
            std::any_of(kDangerous.begin(), kDangerous.end(),
                        [&](const Dangerous& variable) { return variable.name == name; });
        const bool unsupported =
            std::any_of(kUnsupported.begin(), kUnsupported.end(),
                        [&](std::string_view beginning) { return name.starts_with(beginning); });
        if (!entry.second.empty() && unsupported && !dangerous && !is_option(name)) {
            warnings.push_back("environment " + name +
                               ": is not supported by this version and has no effect");
        }
    }
}

} // namespace queen::settings
