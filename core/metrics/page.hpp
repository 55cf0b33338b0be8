#pragma once
#include "base/histogram.hpp"
#include "metrics/families.hpp"

#include <queen/plugin/common.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::metrics {

/// The values of a series' labels, in the order in which its family names them.
using LabelValues = std::vector<std::string_view>;

/// Figures that plugins of one kind name themselves: `<prefix><name>{<label>}`.
struct FigureKind {
    std::string_view prefix, label, help;
};
inline constexpr FigureKind kSourceFigures{"queen_candidates_", "source",
                                           "A figure that the candidate source gives of itself; "
                                           "the README of its plugin says what it is."};
inline constexpr FigureKind kSweeperFigures{"queen_sweeper_", "kind",
                                            "A figure that the driver of timers gives of itself; "
                                            "the README of its plugin says what it is."};
inline constexpr FigureKind kMeshFigures{
    "queen_mesh_", "plugin",
    "A figure that the mesh gives of itself; the README of its plugin says what it is."};

/// One scrape on its way: every family of families.hpp with what was added to it, then the figures
/// of plugins. Model and text are prometheus-cpp's, which nothing outside of page.cpp
/// knows.
///
/// Invariant: the text is a valid exposition whatever was added: HELP and TYPE for each family, no
/// series twice, label values escaped.
/// @thread one at a time
/// @source MET-1
class Page {
public:
    Page();
    ~Page();
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    /// Of a counter or a gauge. @return false, nothing added, when the series is there already, the
    /// number of labels is not the family's or the value is no number
    bool add(const Family& family, const LabelValues& labels, double value);
    bool add(const Family& family, double value) { return add(family, {}, value); }
    /// Of a histogram, in seconds; the same.
    bool add(const Family& family, const LabelValues& labels,
             const LatencyHistogram::Snapshot& histogram);

    /// A figure that a plugin names itself: a counter when the name ends in _total, else a gauge.
    /// @return false, nothing added: the name is not 1 to 64 of [a-z0-9_], means something else on
    /// this page, was given twice, or the value is no number
    /// @source MET-4
    bool add_figure(const FigureKind& kind, std::string_view plugin, std::string_view name,
                    double value);

    /// The exposition, text format 0.0.4.
    std::string text() const;
    static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

private:
    struct Model;
    std::unique_ptr<Model> model_;
};

/// Puts what a plugin says of itself on the page: at most kMostFigures, what does not fit is left
/// out and counted, so that no plugin can spoil the page or grow it without bound.
/// @source MET-4
class PluginFigures final : public plugin::Stats {
public:
    static constexpr std::size_t kMostFigures = 64;

    PluginFigures(Page& page, const FigureKind& kind, std::string_view plugin)
        : page_(page), kind_(kind), plugin_(plugin) {}
    void add(std::string_view name, double value) override;
    std::size_t dropped() const noexcept { return dropped_; }

private:
    Page& page_;
    const FigureKind& kind_;
    const std::string_view plugin_;
    std::size_t taken_ = 0, dropped_ = 0;
};

} // namespace queen::metrics
