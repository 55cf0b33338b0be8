#include "pluginhost/plugin_check.hpp"

#include <filesystem>
#include <utility>

namespace queen::pluginhost {

std::vector<PluginCheck> check_plugins(const settings::Loaded& loaded,
                                       const settings::Environment& environment) {
    Inherited inherited;
    for (const settings::Effective& entry : loaded.effective) {
        inherited[entry.name] = entry.value;
    }
    std::vector<PluginCheck> checks;
    for (const settings::PluginSettings& plugin : loaded.settings.plugins) {
        PluginCheck check;
        check.name = plugin.name;
        check.place = plugin.place;
        const auto path = find_library(loaded.settings.plugin_folders, plugin.path);
        if (!path) {
            check.inspection.path = plugin.path;
            check.inspection.verdict = path.error().message;
        } else {
            std::error_code ignored;
            check.found = std::filesystem::exists(*path, ignored);
            check.inspection = inspect(std::filesystem::path(*path).lexically_normal().string());
        }
        if (check.inspection.fits) {
            auto checked = check_options(plugin, check.inspection.options, environment, inherited);
            if (!checked) {
                check.options = std::move(checked.error());
            }
        }
        checks.push_back(std::move(check));
    }
    return checks;
}

} // namespace queen::pluginhost
