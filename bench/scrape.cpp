#include "scrape.hpp"

#include "pause.hpp"
#include "support/http_client.hpp"

#include <cstdlib>
#include <stdexcept>

namespace queen::bench {
namespace {

std::string_view family_of(std::string_view series) {
    return series.substr(0, series.find('{'));
}

/// Value of a label as printed; empty without it. Names and values of the series that are read here
/// hold no quotes.
std::string_view label_of(std::string_view series, std::string_view label) {
    const std::string wanted = std::string(label) + "=\"";
    const auto at = series.find(wanted);
    if (at == std::string_view::npos) {
        return {};
    }
    const auto begin = at + wanted.size();
    return series.substr(begin, series.find('"', begin) - begin);
}

} // namespace

Scrape Scrape::parse(std::string_view text) {
    Scrape scrape;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        const auto space = line.rfind(' ');
        if (line.empty() || line.front() == '#' || space == std::string_view::npos) {
            continue;
        }
        scrape.series_[std::string(line.substr(0, space))] =
            std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
    }
    return scrape;
}

Scrape Scrape::of(std::uint16_t port) {
    const auto response = test::HttpClient(port).get("/metrics/prometheus");
    if (response.status != 200) {
        throw std::runtime_error("GET /metrics/prometheus: " + std::to_string(response.status));
    }
    return parse(response.body);
}

double Scrape::sum(std::string_view family, std::initializer_list<std::string_view> labels) const {
    double total = 0;
    for (auto at = series_.lower_bound(family);
         at != series_.end() && at->first.starts_with(family); ++at) {
        bool fits = family_of(at->first) == family;
        for (const auto label : labels) {
            fits = fits && at->first.find(label) != std::string::npos;
        }
        total += fits ? at->second : 0;
    }
    return total;
}

std::map<std::string, double> Scrape::by(std::string_view family, std::string_view label) const {
    std::map<std::string, double> values;
    for (auto at = series_.lower_bound(family);
         at != series_.end() && at->first.starts_with(family); ++at) {
        if (family_of(at->first) == family) {
            values[std::string(label_of(at->first, label))] += at->second;
        }
    }
    return values;
}

Scrape Scrape::since(const Scrape& before) const {
    Scrape difference = *this;
    for (auto& [series, value] : difference.series_) {
        if (const auto old = before.series_.find(series); old != before.series_.end()) {
            value -= old->second;
        }
    }
    return difference;
}

void await_figure(std::uint16_t port, std::string_view family, double least) {
    for (int tries = 0; tries < 1200; ++tries) {
        if (Scrape::of(port).sum(family) >= least) {
            return;
        }
        pause(std::chrono::milliseconds(50));
    }
    throw std::runtime_error(std::string(family) + " stayed below " + std::to_string(least) +
                             " for a minute");
}

} // namespace queen::bench
