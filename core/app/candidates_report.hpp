#pragma once
#include "base/json.hpp"
#include "pluginhost/plugin_host.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::app {

/// A plugin's figures as they come: each name once, the last value counts. A plugin is trusted, yet
/// what it says must not break the answer or fill it, so names that are empty or over kLongestName
/// and figures beyond kMost are left out, and what is no finite number is null.
class CandidateFigures final : public plugin::Stats {
public:
    static constexpr std::size_t kMost = 256;       ///< a guess; the largest source has some 30
    static constexpr std::size_t kLongestName = 64; ///< bytes

    void add(std::string_view name, double value) override;
    void write(json::Writer& writer) const; ///< one object
    std::optional<double> value(std::string_view name) const;

private:
    std::vector<std::pair<std::string, double>> all_;
};

/// The answer of GET /api/v1/system/candidates: {default, sources: [{name, id, version, loaded,
/// paused, verdict, faults: {kind: count}, stats: {name: number}}]}, in YAML's order. Asks each
/// source for its figures; a paused one is not asked and has none.
/// @thread any but the network's: it calls plugins
void write_candidates(json::Writer& writer, std::string_view default_source,
                      const pluginhost::PluginHost& plugins);

/// What became of each plugin, and what it did wrong since: the value of `plugins` in GET /status.
void write_status(json::Writer& writer, const std::vector<pluginhost::PluginStatus>& plugins);

/// {name, id, version, loaded, paused, verdict, faults, stats} of a plugin that was asked.
void write_plugin(json::Writer& writer, const pluginhost::PluginStatus& status,
                  const CandidateFigures& figures);

} // namespace queen::app
