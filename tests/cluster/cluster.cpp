#include "cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace queen::test {
namespace {

template <class Condition>
bool soon(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
    }
    return true;
}

double value(const Exposition& page, const std::string& series) {
    const auto found = page.by_series.find(series);
    return found == page.by_series.end() ? 0 : found->second;
}

} // namespace

Transport transport_under_test() {
    const char* name = std::getenv("QUEEN_TEST_MESH");
    const std::string mesh = name == nullptr ? "mesh" : name;
    if (mesh != "mesh" && mesh != "meshpg") {
        throw std::runtime_error("QUEEN_TEST_MESH is " + mesh + ", not mesh or meshpg");
    }
    return mesh == "mesh" ? Transport::tcp : Transport::notify;
}

Cluster::Cluster(Options options) : options_(std::move(options)) {
    const auto count = static_cast<std::size_t>(options_.brokers);
    nodes_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        nodes_[i].name = std::string(1, static_cast<char>('a' + i));
        nodes_[i].mesh_port = free_port();
    }
    for (std::size_t from = 0; from < count; ++from) {
        for (std::size_t to = 0; to < count; ++to) {
            if (from != to) {
                links_[{from, to}] = std::make_unique<TcpProxy>(nodes_[to].mesh_port);
            }
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        start(i);
    }
    if (options_.mesh) {
        connected();
    }
}

std::string Cluster::config(std::size_t index) const {
    std::string text = "server_id: " + nodes_[index].name + "\ndatabase: {url: \"" + conninfo() +
                       "\", sessions: 6}\n" + options_.more;
    std::string ring = "{name: hotlist, path: hotlist.so";
    std::string scan = "{name: sqlscan, path: sqlscan.so";
    if (options_.patient) {
        text += "pop: {backoff_initial: 60s, backoff_max: 60s}\n"
                "groups: {repair_interval: 1h}\nswitches: {refresh: 1h}\n";
        ring += ", options: {reseed: 1h, unserved_trim: 0s, idle_sweep: 0s}";
        scan += ", options: {scan_every: 60s}";
    }
    text += "plugins:\n  - " + ring + "}\n  - " + scan + "}\n" + options_.plugins;
    if (options_.timers && index == 0) {
        text += "  - {name: timers, path: timers.so}\n";
    }
    if (options_.mesh) {
        text += "  - {name: mesh, path: " + mesh_plugin(index) +
                ", dead_threshold: " + options_.dead_threshold +
                (options_.mesh_options.empty() ? "" : ", " + options_.mesh_options) + "}}\n";
    }
    return text + serving(source_under_test());
}

/// Its file and the first of its options.
std::string Cluster::mesh_plugin(std::size_t index) const {
    if (options_.transport == Transport::notify) {
        return "meshpg.so, options: {heartbeat: 500ms";
    }
    std::string peers;
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
        if (to != index) {
            peers += (peers.empty() ? "127.0.0.1:" : ",127.0.0.1:") +
                     std::to_string(links_.at({index, to})->port());
        }
    }
    return "mesh.so, options: {port: " + std::to_string(nodes_[index].mesh_port) + ", peers: \"" +
           peers + "\", heartbeat: 100ms";
}

void Cluster::start(std::size_t index) {
    auto& node = nodes_[index];
    BrokerOptions options{.config = config(index),
                          .data_directory = directory_.path() + "/" + node.name};
    if (index < options_.environments.size()) {
        options.environment = options_.environments[index];
    }
    node.process = std::make_unique<BrokerProcess>(std::move(options));
    node.api = std::make_unique<Api>(node.process->port());
}

void Cluster::kill9(std::size_t index) {
    auto& node = nodes_[index];
    node.api.reset();
    node.process->kill9();
    node.process.reset();
}

void Cluster::each_link(void (TcpProxy::*change)()) {
    for (const auto& [ends, link] : links_) {
        (link.get()->*change)();
    }
}

void Cluster::connected() {
    double running = 0;
    for (const auto& node : nodes_) {
        running += node.process ? 1 : 0;
    }
    const bool tcp = options_.transport == Transport::tcp;
    const std::string others = tcp ? "peers_connected" : "servers_alive";
    const std::string sent = "queen_mesh_notifications_sent_total{plugin=\"mesh\"}";
    std::map<std::size_t, double> so_far;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].process) {
            await(i, "queen_mesh_" + others + "{plugin=\"mesh\"}", running - 1);
            so_far[i] = tcp ? 0 : metric(i, sent);
        }
    }
    // meshpg publishes hints from the end of the turn in which it hears the first other broker;
    // what it says after it showed that one, it says at the end of that turn or later.
    for (const auto& [i, count] : so_far) {
        if (!tcp) {
            await(i, sent, count + 1);
        }
    }
}

Exposition Cluster::metrics(std::size_t index) const {
    return parse_exposition(
        HttpClient(nodes_[index].process->port()).get("/metrics/prometheus").body);
}

double Cluster::metric(std::size_t index, const std::string& series) const {
    return value(metrics(index), series);
}

void Cluster::await(std::size_t index, const std::string& series, double at_least) const {
    EXPECT_TRUE(soon([&] { return metric(index, series) >= at_least; }))
        << nodes_[index].name << ": " << series << " is " << metric(index, series) << ", not "
        << at_least;
}

void Cluster::await_at_most(std::size_t index, const std::string& series, double value) const {
    EXPECT_TRUE(soon([&] { return metric(index, series) <= value; }))
        << nodes_[index].name << ": " << series << " is " << metric(index, series);
}

void Cluster::await_body(std::size_t index, const std::string& target,
                         const std::string& text) const {
    std::string body;
    EXPECT_TRUE(soon([&] {
        body = HttpClient(nodes_[index].process->port()).get(target).body;
        return body.find(text) != std::string::npos;
    })) << body;
}

HttpClient Cluster::park(std::size_t at, const std::string& queue, const std::string& more,
                         const std::string& partition) const {
    return park_at(at, "/api/v1/pop/queue/" + queue +
                           (partition.empty() ? "" : "/partition/" + partition) +
                           "?wait=true&timeout=58000&" + more);
}

HttpClient Cluster::park_at(std::size_t at, const std::string& target,
                            const Headers& headers) const {
    const double before = metric(at, "queen_parked_pops");
    HttpClient client(nodes_[at].process->port(), std::chrono::seconds(70));
    client.start("GET", target, {}, headers);
    EXPECT_TRUE(soon([&] { return metric(at, "queen_parked_pops") > before; })) << "not parked";
    return client;
}

double Cause::grown(const std::string& series) const {
    return value(cluster_.metrics(broker_), series) - value(before_, series);
}

void Cause::was_a_hint(const std::string& kind) const {
    const std::string heard = "queen_peer_hints_heard_total{kind=\"" + kind + "\"}";
    cluster_.await(broker_, heard, value(before_, heard) + 1);
    if (source_under_test() != "sqlscan") {
        EXPECT_GE(grown("queen_wakes_total{cause=\"event\"}"), 1);
    }
}

} // namespace queen::test
