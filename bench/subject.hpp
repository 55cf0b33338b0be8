#pragma once
#include "process_figures.hpp"
#include "scrape.hpp"
#include "support/broker_process.hpp"
#include "support/temp_directory.hpp"

#include <queen/plugin/types.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace queen::bench {

/// What a stretch of time cost.
struct Cost {
    Scrape added; ///< what the broker counted
    std::chrono::nanoseconds wall{};
    std::chrono::nanoseconds broker_cpu{};
    std::chrono::nanoseconds postgres_cpu{};

    double seconds() const { return std::chrono::duration<double>(wall).count(); }
    /// Statements of the reseed floor.
    double floor_statements() const;
    /// A family by statement, over claims, scans and probes.
    double of_pops(std::string_view family) const;
};

std::string fixed(double value, int digits); ///< for a table

/// A broker with one candidate source and a fresh embedded PostgreSQL of its own, both ended with
/// the object.
class Subject {
public:
    /// @param source name of a plugin of ours @param extra more YAML
    explicit Subject(std::string source, const std::string& extra = {});

    const std::string& source() const noexcept { return source_; }
    std::uint16_t port() const noexcept { return broker_.port(); }
    pid_t pid() const noexcept { return broker_.pid(); }

    /// Begins a measured stretch.
    void begin();
    /// What it cost since begin().
    Cost end() const;

private:
    pid_t postmaster() const;
    std::chrono::nanoseconds postgres_cpu() const;

    const std::string source_;
    test::TempDirectory directory_;
    test::BrokerProcess broker_;
    Scrape scrape_;
    SteadyTime started_{};
    std::chrono::nanoseconds broker_cpu_{};
    std::chrono::nanoseconds postgres_cpu_{};
};

} // namespace queen::bench
