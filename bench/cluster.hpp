#pragma once
#include "app/embedded_postgres.hpp"
#include "process_figures.hpp"
#include "support/broker_process.hpp"
#include "support/temp_directory.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace queen::bench {

/// CPU of a cluster's processes, and time.
struct Used {
    std::chrono::nanoseconds wall{};
    std::vector<std::chrono::nanoseconds> brokers; ///< in the order they were added
    std::chrono::nanoseconds postgres{};
    Used& operator+=(const Used& other);
    double seconds() const { return std::chrono::duration<double>(wall).count(); }
};

/// Brokers over one database, on a PostgreSQL that serves nobody else and writes as a real one
/// does; all of it ends with the object, and with the thread that made it.
class Cluster {
public:
    /// @param settings of PostgreSQL, over those of an embedded one
    explicit Cluster(std::map<std::string, std::string> settings = {});

    /// Starts a broker. @param config YAML beside the database's address
    void add(const std::string& config);
    std::size_t size() const noexcept { return brokers_.size(); }
    std::uint16_t port(std::size_t broker) const { return brokers_.at(broker)->port(); }
    std::string conninfo() const { return postgres_->conninfo(); }
    std::string postgres_log() const; ///< what the server said so far

    Used used() const; ///< until now
    /// Since an earlier used().
    Used since(const Used& before) const;

private:
    test::TempDirectory directory_;
    std::unique_ptr<app::EmbeddedPostgres> postgres_;
    std::vector<std::unique_ptr<test::BrokerProcess>> brokers_;
};

/// A list of plugins for the configuration. @param more further entries, each `{name: ..., ...}`
std::string plugins(const std::vector<std::string>& more);

} // namespace queen::bench
