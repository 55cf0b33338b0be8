#include "app/candidates_report.hpp"

#include <algorithm>
#include <cmath>

namespace queen::app {
namespace {

bool is_source(const pluginhost::PluginStatus& status) {
    return std::find(status.kinds.begin(), status.kinds.end(), QUEEN_CANDIDATES) !=
           status.kinds.end();
}

/// {kind: count} of what a plugin did wrong; what never happened is left out.
void write_faults(json::Writer& writer, const pluginhost::FaultCounts& faults) {
    writer.begin_object();
    for (std::size_t kind = 0; kind < pluginhost::kFaultKinds; ++kind) {
        if (const auto count = faults.by_kind.at(kind); count > 0) {
            writer.key(to_string(static_cast<pluginhost::Fault>(kind)))
                .integer(static_cast<std::int64_t>(count));
        }
    }
    writer.end_object();
}

} // namespace

void CandidateFigures::add(std::string_view name, double value) {
    if (name.empty() || name.size() > kLongestName) {
        return;
    }
    const auto known = std::find_if(all_.begin(), all_.end(),
                                    [&](const auto& figure) { return figure.first == name; });
    if (known != all_.end()) {
        known->second = value;
    } else if (all_.size() < kMost) {
        all_.emplace_back(name, value);
    }
}

std::optional<double> CandidateFigures::value(std::string_view name) const {
    const auto known = std::find_if(all_.begin(), all_.end(),
                                    [&](const auto& figure) { return figure.first == name; });
    return known == all_.end() ? std::nullopt : std::optional(known->second);
}

void CandidateFigures::write(json::Writer& writer) const {
    writer.begin_object();
    for (const auto& [name, value] : all_) {
        writer.key(name);
        if (std::isfinite(value)) {
            writer.number(value);
        } else {
            writer.null();
        }
    }
    writer.end_object();
}

void write_plugin(json::Writer& writer, const pluginhost::PluginStatus& status,
                  const CandidateFigures& figures) {
    writer.begin_object().key("name").string(status.name).key("id").string(status.id);
    writer.key("version").string(status.version).key("loaded").boolean(status.loaded);
    writer.key("paused").boolean(status.paused).key("verdict").string(status.verdict);
    writer.key("faults");
    write_faults(writer, status.faults);
    writer.key("stats");
    figures.write(writer);
    writer.end_object();
}

void write_candidates(json::Writer& writer, std::string_view default_source,
                      const pluginhost::PluginHost& plugins) {
    writer.begin_object().key("default").string(default_source).key("sources").begin_array();
    for (const auto& status : plugins.status()) {
        // Of a refused plugin nobody knows what it would have been.
        if (status.loaded && !is_source(status)) {
            continue;
        }
        CandidateFigures figures;
        if (const auto source = plugins.source(status.name)) {
            source->stats(figures);
        }
        write_plugin(writer, status, figures);
    }
    writer.end_array().end_object();
}

void write_status(json::Writer& writer, const std::vector<pluginhost::PluginStatus>& plugins) {
    writer.begin_array();
    for (const auto& plugin : plugins) {
        writer.begin_object().key("name").string(plugin.name).key("path").string(plugin.path);
        writer.key("id").string(plugin.id).key("version").string(plugin.version);
        writer.key("kinds").begin_array();
        for (const auto& kind : plugin.kinds) {
            writer.string(kind);
        }
        writer.end_array().key("loaded").boolean(plugin.loaded);
        writer.key("paused").boolean(plugin.paused).key("verdict").string(plugin.verdict);
        writer.key("faults");
        write_faults(writer, plugin.faults);
        writer.end_object();
    }
    writer.end_array();
}

} // namespace queen::app
