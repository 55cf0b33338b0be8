#include "model/names.hpp"
#include "settings/address.hpp"
#include "settings/connection.hpp"
#include "settings/layers.hpp"
#include "settings/security_options.hpp"
#include "settings/values.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace queen::settings {
namespace {

constexpr std::uintmax_t kLargestFile = 4u << 20;
constexpr std::string_view kAuto = "auto";

std::string variable(const Environment& env, const char* name) {
    const auto found = env.find(name);
    return found == env.end() ? std::string() : found->second;
}

std::string folder_of(const std::string& file) {
    const auto parent = std::filesystem::path(file).parent_path();
    return parent.empty() ? "." : parent.string();
}

/// The later of two layers is the one somebody changed last, so that is where to look.
const Place& written_place(const Held& a, const Held& b) {
    return a.built_in ? b.place : a.place;
}

/// `small` must not exceed `large`.
void check_order(Layers& layers, std::string_view small, std::string_view large) {
    if (layers.faulty(small) || layers.faulty(large)) {
        return;
    }
    const Held& less = layers.held(small);
    const Held& more = layers.held(large);
    if (less.value.number > more.value.number) {
        const bool blame_small = !less.built_in;
        layers.complain(written_place(less, more), blame_small ? small : large,
                        blame_small
                            ? "is above " + std::string(large) + "; allowed: at most that"
                            : "is below " + std::string(small) + "; allowed: at least that");
    }
}

void check_source(Layers& layers) {
    if (layers.faulty("plugins") || layers.faulty("candidates.default")) {
        return;
    }
    const Held& source = layers.held("candidates.default");
    const Held& plugins = layers.held("plugins");
    std::string names;
    for (const PluginSettings& plugin : plugins.value.plugins) {
        if (plugin.name == source.value.text) {
            return;
        }
        names += (names.empty() ? "" : ", ") + plugin.name;
    }
    layers.complain(written_place(source, plugins), "candidates.default",
                    source.value.text + " is no plugin of this configuration; allowed: " +
                        (names.empty() ? "the name of a plugin under plugins" : names));
}

void resolve_data(Layers& layers, const Environment& env) {
    Held& data = layers.held("data");
    std::string& path = data.value.text;
    const std::string xdg = variable(env, "XDG_DATA_HOME");
    const std::string home = variable(env, "HOME");
    if (path == kAuto) {
        if (geteuid() == 0) {
            path = "/var/lib/queen";
        } else if (xdg.starts_with('/')) { // the XDG rule: relative ones are not valid
            path = xdg + "/queen";
        } else if (home.starts_with('/')) {
            path = home + "/.local/share/queen";
        } else {
            layers.complain(data.place, "data",
                            "is auto, and neither XDG_DATA_HOME nor HOME is set; allowed: a path");
        }
    } else if (path.starts_with('~')) {
        layers.complain(data.place, "data",
                        shown(path) + " is not expanded; allowed: a path without ~");
    } else {
        std::error_code failed;
        const auto absolute = std::filesystem::absolute(path, failed);
        path = failed ? path : absolute.lexically_normal().string();
    }
}

/// Other brokers, administrators and the database are told the name.
void resolve_server_id(Layers& layers, const Environment& env) {
    const Held& held = layers.held("server_id");
    std::string& id = layers.held("server_id").value.text;
    if (id != kAuto) {
        if (const auto sound = check_name("it", id); !sound) {
            layers.complain(held.place, "server_id",
                            shown(id) + " cannot be told to others: " + sound.error().message +
                                "; allowed: 1 to 255 bytes of UTF-8 without control characters");
        }
        return;
    }
    id = variable(env, "HOSTNAME");
    if (!check_name("it", id)) {
        id.clear();
    }
    if (id.empty()) {
        std::random_device device;
        std::array<char, 16> digits{};
        std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(device()));
        id = "queen-" + std::string(digits.data());
    }
}

void resolve_folders(Layers& layers) {
    auto& folders = layers.held("plugin_folders").value.texts;
    if (!folders.empty()) {
        return;
    }
    std::error_code failed;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
    const auto beside = failed ? std::filesystem::path(".") : program.parent_path();
    for (const char* folder : {"../plugins", "../lib/queen/plugins"}) {
        folders.push_back((beside / folder).lexically_normal().string());
    }
}

std::string text_of(const Option& option, const Value& value) {
    switch (option.type) {
    case Type::text:
    case Type::choice:
        return value.text;
    case Type::whole:
        return std::to_string(value.number);
    case Type::real:
        return format_real(value.real);
    case Type::boolean:
        return value.flag ? "true" : "false";
    case Type::duration:
        return format_duration(std::chrono::milliseconds(value.number));
    case Type::size:
        return format_size(value.number);
    case Type::address:
        return format_address({value.text, static_cast<std::uint16_t>(value.number)});
    case Type::secret:
        return value.text == kNone ? value.text : "***";
    case Type::connection:
        return value.text == "embedded" ? value.text : masked_connection(value.text);
    case Type::texts:
    case Type::plugins: {
        std::string out;
        for (const std::string& item : value.texts) {
            out += (out.empty() ? "" : ", ") + item;
        }
        return "[" + out + "]";
    }
    }
    return {};
}

/// The core cannot know which of a plugin's options are secret, so it goes by the name.
bool secret_name(std::string_view name) {
    constexpr std::array<std::string_view, 4> kWords{"secret", "password", "token", "key"};
    return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
    });
}

std::vector<Effective> effective_of(const Layers& layers) {
    std::vector<Effective> out;
    for (const Option& option : options()) {
        const Held& held = layers.held(option.name);
        const std::string source = to_string(held.place);
        if (option.type != Type::plugins) {
            out.push_back({std::string(option.name), text_of(option, held.value),
                           source + (held.reference.empty() ? "" : ", " + held.reference)});
            continue;
        }
        for (const PluginSettings& plugin : held.value.plugins) {
            const std::string name = "plugins." + plugin.name;
            const std::string place = held.built_in ? source : to_string(plugin.place);
            out.push_back({name + ".path", plugin.path, place});
            for (const auto& [key, value] : plugin.options) {
                out.push_back({name + ".options." + key,
                               secret_name(key) ? "***"
                               : value.scalar   ? value.text
                                                : "(not a single value)",
                               to_string(value.place)});
            }
        }
    }
    return out;
}

tl::expected<Loaded, Problems> finish(Layers& layers, const Environment& env) {
    check_order(layers, "limits.uri", "limits.head");
    check_order(layers, "limits.body", "limits.bodies_in_flight");
    check_order(layers, "pop.backoff_initial", "pop.backoff_max");
    check_order(layers, "pop.default_timeout", "limits.max_wait");
    check_source(layers);
    check_security(layers);
    resolve_data(layers, env);
    resolve_server_id(layers, env);
    resolve_folders(layers);
    if (!layers.problems().empty()) {
        return tl::unexpected(std::move(layers.problems()));
    }
    Loaded loaded;
    loaded.effective = effective_of(layers);
    const Held& listen = layers.held("listen");
    const Address address{listen.value.text, static_cast<std::uint16_t>(listen.value.number)};
    if (!address.loopback() && !layers.held("auth.enabled").value.flag) {
        layers.warnings().push_back(
            to_string(listen.place) + ": listen: " + format_address(address) +
            " is reachable from other machines, and this broker asks nobody who they are; switch "
            "auth.enabled on, or put a proxy or a firewall before it");
    }
    loaded.settings.default_source_place = layers.held("candidates.default").place;
    for (const Option& option : options()) {
        option.put(loaded.settings, layers.held(option.name).value);
    }
    loaded.warnings = std::move(layers.warnings());
    return loaded;
}

tl::expected<Loaded, Problems> load_layers(const std::optional<std::string>& name,
                                           const std::string& yaml, const Environment& env,
                                           const std::map<std::string, std::string>& overrides) {
    Layers layers;
    if (name) {
        layers.add_file(*name, yaml, folder_of(*name));
    }
    // Named on the command line, the database is not a matter of the environment.
    Environment rest = env;
    if (overrides.contains("database.url") || overrides.contains("database")) {
        std::erase_if(rest, [](const auto& entry) { return entry.first.starts_with("PG_"); });
    }
    layers.add_environment(rest);
    layers.add_overrides(overrides);
    return finish(layers, env);
}

} // namespace

tl::expected<Loaded, Problems> load(const std::optional<std::string>& file, const Environment& env,
                                    const std::map<std::string, std::string>& overrides) {
    if (!file) {
        return load_layers(std::nullopt, {}, env, overrides);
    }
    std::error_code failed;
    const auto status = std::filesystem::status(*file, failed);
    if (std::filesystem::is_directory(status)) {
        return tl::unexpected(Problems{*file + ": cannot be read: it is a directory"});
    }
    errno = 0;
    std::ifstream in(*file, std::ios::binary);
    if (!in) {
        return tl::unexpected(Problems{*file + ": cannot be read: " + std::strerror(errno)});
    }
    if (std::filesystem::is_regular_file(status) &&
        std::filesystem::file_size(*file, failed) > kLargestFile) {
        return tl::unexpected(Problems{*file + ": cannot be read: it is larger than 4 MiB"});
    }
    std::ostringstream text;
    text << in.rdbuf();
    return load_layers(*file, std::move(text).str(), env, overrides);
}

tl::expected<Loaded, Problems> load_text(const std::string& name, const std::string& yaml,
                                         const Environment& env,
                                         const std::map<std::string, std::string>& overrides) {
    return load_layers(name, yaml, env, overrides);
}

} // namespace queen::settings
