#include "metrics/page.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace queen::metrics {
namespace {

constexpr std::size_t kFigureNameBytes = 64;

prometheus::MetricType type_of(Kind kind) {
    switch (kind) {
    case Kind::counter:
        return prometheus::MetricType::Counter;
    case Kind::gauge:
        return prometheus::MetricType::Gauge;
    case Kind::histogram:
        return prometheus::MetricType::Histogram;
    }
    return prometheus::MetricType::Untyped;
}

std::vector<std::string_view> split(std::string_view names) {
    std::vector<std::string_view> out;
    while (!names.empty()) {
        const auto end = names.find(' ');
        out.push_back(names.substr(0, end));
        names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
    }
    return out;
}

bool fits_a_figure(std::string_view name) {
    return !name.empty() && name.size() <= kFigureNameBytes &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
           });
}

} // namespace

struct Page::Model {
    std::vector<prometheus::MetricFamily> families;
    std::unordered_map<std::string, std::size_t> index; ///< by name
    std::unordered_set<std::string> series;             ///< family and label values, joined
    /// Names of samples that are not their family's: those of histograms.
    std::unordered_set<std::string> taken;

    std::size_t announce(std::string name, std::string help, Kind kind) {
        if (kind == Kind::histogram) {
            for (const char* suffix : {"_bucket", "_sum", "_count"}) {
                taken.insert(name + suffix);
            }
        }
        index.emplace(name, families.size());
        families.push_back({std::move(name), std::move(help), type_of(kind), {}});
        return families.size() - 1;
    }

    /// @return null when there is such a series already, or the labels do not fit the family
    prometheus::ClientMetric* series_of(const Family& family, const LabelValues& values) {
        const auto names = split(family.labels);
        const auto found = index.find(std::string(family.name));
        if (found == index.end() || names.size() != values.size()) {
            return nullptr;
        }
        std::string key(family.name);
        prometheus::ClientMetric metric;
        for (std::size_t i = 0; i < names.size(); ++i) {
            // No label value of ours holds this byte; one that did could only hide a series.
            key.append(1, '\0').append(values[i]);
            metric.label.push_back({std::string(names[i]), std::string(values[i])});
        }
        if (!series.insert(std::move(key)).second) {
            return nullptr;
        }
        auto& metrics = families[found->second].metric;
        metrics.push_back(std::move(metric));
        return &metrics.back();
    }
};

Page::Page() : model_(std::make_unique<Model>()) {
    for (const Family* family : all_families()) {
        model_->announce(std::string(family->name), std::string(family->help), family->kind);
    }
}

Page::~Page() = default;

bool Page::add(const Family& family, const LabelValues& labels, double value) {
    if (!std::isfinite(value) || family.kind == Kind::histogram) {
        return false;
    }
    auto* metric = model_->series_of(family, labels);
    if (metric == nullptr) {
        return false;
    }
    (family.kind == Kind::counter ? metric->counter.value : metric->gauge.value) = value;
    return true;
}

bool Page::add(const Family& family, const LabelValues& labels,
               const LatencyHistogram::Snapshot& histogram) {
    if (family.kind != Kind::histogram) {
        return false;
    }
    auto* metric = model_->series_of(family, labels);
    if (metric == nullptr) {
        return false;
    }
    constexpr double kMicroseconds = 1e6; // a divisor: 100 / 1e6 prints as 0.0001, 100 * 1e-6 not
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
        count += histogram.buckets[i];
        const bool bounded = i < LatencyHistogram::kBoundsMicroseconds.size();
        metric->histogram.bucket.push_back(
            {count,
             bounded ? static_cast<double>(LatencyHistogram::kBoundsMicroseconds[i]) / kMicroseconds
                     : INFINITY});
    }
    metric->histogram.sample_count = count;
    metric->histogram.sample_sum = histogram.sum.count();
    return true;
}

bool Page::add_figure(const FigureKind& of, std::string_view plugin, std::string_view name,
                      double value) {
    if (!fits_a_figure(name) || !std::isfinite(value)) {
        return false;
    }
    const std::string full = std::string(of.prefix).append(name);
    const auto kind = full.ends_with("_total") ? Kind::counter : Kind::gauge;
    if ((kind == Kind::counter && value < 0) || model_->taken.contains(full)) {
        return false;
    }
    for (const Family* family : all_families()) {
        if (family->name == full) {
            return false;
        }
    }
    if (!model_->index.contains(full)) {
        model_->announce(full, std::string(of.help), kind);
    }
    return add({.name = full, .kind = kind, .labels = of.label, .help = {}}, {plugin}, value);
}

void PluginFigures::add(std::string_view name, double value) {
    if (taken_ < kMostFigures && page_.add_figure(kind_, plugin_, name, value)) {
        ++taken_;
    } else {
        ++dropped_;
    }
}

std::string Page::text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, model_->families);
    return std::move(out).str();
}

} // namespace queen::metrics
