#pragma once
#include "cluster/tcp_proxy.hpp"
#include "support/api.hpp"
#include "support/broker_process.hpp"
#include "support/candidate_source.hpp"
#include "support/exposition.hpp"
#include "support/postgres.hpp"
#include "support/temp_directory.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace queen::test {

/// What carries the hints between brokers.
enum class Transport {
    tcp,    ///< mesh.so, over links that the test can spoil
    notify, ///< meshpg.so, through the database
};

/// The transport this run of the program is about: QUEEN_TEST_MESH (mesh or meshpg), or TCP.
Transport transport_under_test();

/// Several brokers over one database, each with a data directory of its own, that hint each other
/// through a mesh.
class Cluster {
public:
    struct Options {
        int brokers = 2;
        bool mesh = true;
        Transport transport = Transport::tcp; ///< of the mesh
        /// Whether brokers look for themselves as rarely as the settings allow: whoever is answered
        /// then was told. Else as they do by default.
        bool patient = true;
        std::string dead_threshold = "60s"; ///< of the mesh; not reached where it does not matter
        std::string more{};                 ///< YAML of every broker
        std::string mesh_options{};         ///< more of the mesh's, "name: value" each
        bool timers = false;   ///< whether the first broker, and it alone, fires timers
        std::string plugins{}; ///< likewise, more items of the list of plugins
        /// NAME=value of each broker by its place; those beyond have none.
        std::vector<std::vector<std::string>> environments{};
    };
    /// Starts them all, and returns once each is connected to each.
    explicit Cluster(Options options);

    struct Node {
        std::string name; ///< its server id: "a", "b", ...
        std::uint16_t mesh_port = 0;
        std::unique_ptr<BrokerProcess> process; ///< null: not running
        std::unique_ptr<Api> api;
    };
    Node& operator[](std::size_t index) { return nodes_[index]; }
    /// What `from` dials when it dials `to`. Over TCP alone.
    TcpProxy& link(std::size_t from, std::size_t to) { return *links_.at({from, to}); }
    /// All links between brokers.
    void each_link(void (TcpProxy::*change)());

    std::string conninfo() const { return TestPostgres::shared().conninfo(database_); }

    void start(std::size_t index);
    void kill9(std::size_t index);
    void connected(); ///< waits until each running broker sends to each other one
    /// How often another broker hears of one partition that was pushed to once.
    double times_told() const { return options_.transport == Transport::tcp ? 2 : 1; }

    Exposition metrics(std::size_t index) const;
    double metric(std::size_t index, const std::string& series) const;
    /// Waits until a GET answers with that text in its body. Fails the test after a minute.
    void await_body(std::size_t index, const std::string& target, const std::string& text) const;
    /// Waits until a series is at least that. Fails the test after a minute.
    void await(std::size_t index, const std::string& series, double at_least) const;
    void await_at_most(std::size_t index, const std::string& series, double value) const;

    /// A pop that waits at a broker; parked when this returns.
    HttpClient park(std::size_t at, const std::string& queue, const std::string& more,
                    const std::string& partition = {}) const;
    HttpClient park_at(std::size_t at, const std::string& target,
                       const Headers& headers = {}) const;

private:
    std::string config(std::size_t index) const;
    std::string mesh_plugin(std::size_t index) const;

    const Options options_;
    const std::string database_ = TestPostgres::shared().create_database();
    TempDirectory directory_;
    std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<TcpProxy>> links_;
    std::vector<Node> nodes_;
};

/// Why a parked pop of a broker was answered: its counters before and after. It begins before the
/// pop is parked: a push is told twice, and the later hint of an earlier one may wake the pop just
/// before the one that is meant, which it then finds without being woken again.
class Cause {
public:
    Cause(const Cluster& cluster, std::size_t broker)
        : cluster_(cluster), broker_(broker), before_(cluster.metrics(broker)) {}
    /// How much a series has grown.
    double grown(const std::string& series) const;
    /// Whether hints of the kind were heard and somebody was woken by an event. Of a patient
    /// cluster that is the cause: its floors lie behind the time-out of a pop, and nothing else
    /// wakes. But sqlscan has a pop look again by itself soon after each hint, so that the look
    /// that finds something may be an earlier hint's; of it no more is asked than that the hint
    /// came.
    void was_a_hint(const std::string& kind) const;

private:
    const Cluster& cluster_;
    const std::size_t broker_;
    const Exposition before_;
};

} // namespace queen::test
