#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace queen::bench {

/// One reading of a broker's Prometheus exposition: each series under `name{labels}` as printed.
class Scrape {
public:
    static Scrape parse(std::string_view exposition);
    static Scrape of(std::uint16_t port); ///< @throws std::runtime_error unless answered 200

    /// Sum of all series of the family whose labels contain every one of `labels`, each written
    /// `name="value"`. Zero when there is none.
    double sum(std::string_view family, std::initializer_list<std::string_view> labels = {}) const;
    /// Values of a family by one label.
    std::map<std::string, double> by(std::string_view family, std::string_view label) const;
    /// What was added since `before`.
    Scrape since(const Scrape& before) const;

private:
    std::map<std::string, double, std::less<>> series_;
};

/// Waits until the broker's page shows at least that much of a family.
/// @throws std::runtime_error after a minute
void await_figure(std::uint16_t port, std::string_view family, double least);

} // namespace queen::bench
