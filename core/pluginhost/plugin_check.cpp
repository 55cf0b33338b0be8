#include "pluginhost/plugin_check.hpp"

#include "pluginhost/plugin_host.hpp"

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
    const settings::PluginSettings* driver = nullptr;
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
                check.problems = std::move(checked.error());
            }
            if (check.inspection.kinds == std::vector<std::string>{QUEEN_TIMERS}) {
                if (driver != nullptr) {
                    check.problems.push_back(problem(plugin.place, plugin.name, "",
                                                     second_driver(driver->name, driver->place)));
                }
                driver = &plugin;
            }
        }
        checks.push_back(std::move(check));
    }
    return checks;
}

} // namespace queen::pluginhost
