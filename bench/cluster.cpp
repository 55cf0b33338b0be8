#include "cluster.hpp"

#include "base/clock.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace queen::bench {

Used& Used::operator+=(const Used& other) {
    wall += other.wall;
    postgres += other.postgres;
    brokers.resize(std::max(brokers.size(), other.brokers.size()));
    for (std::size_t i = 0; i < other.brokers.size(); ++i) {
        brokers[i] += other.brokers[i];
    }
    return *this;
}

Cluster::Cluster(std::map<std::string, std::string> settings) {
    settings.insert({"shared_buffers", "512MB"}); // several of these may share a machine
    auto started = app::EmbeddedPostgres::start({.data_directory = directory_.path() + "/database",
                                                 .max_connections = 100,
                                                 .die_with_parent = true,
                                                 .settings = std::move(settings)});
    if (!started) {
        throw std::runtime_error(started.error().message);
    }
    postgres_ = std::move(*started);
}

void Cluster::add(const std::string& config) {
    const std::string name = "broker" + std::to_string(brokers_.size());
    brokers_.push_back(std::make_unique<test::BrokerProcess>(
        test::BrokerOptions{.config = "server_id: " + name + "\ndatabase: {url: \"" + conninfo() +
                                      "\", sessions: 12}\n" + config,
                            .data_directory = directory_.path() + "/" + name}));
}

std::string Cluster::postgres_log() const {
    std::ifstream file(directory_.path() + "/database/postgres.log");
    return {std::istreambuf_iterator<char>(file), {}};
}

Used Cluster::used() const {
    Used used;
    for (const auto& broker : brokers_) {
        used.brokers.push_back(cpu_of(broker->pid()));
    }
    for (const auto pid : tree_of(postgres_->pid())) {
        used.postgres += cpu_of(pid);
    }
    used.wall = SystemClock::instance().now().time_since_epoch();
    return used;
}

Used Cluster::since(const Used& before) const {
    auto used = this->used();
    used.wall -= before.wall;
    used.postgres -= before.postgres;
    for (std::size_t i = 0; i < before.brokers.size(); ++i) {
        used.brokers[i] -= before.brokers[i];
    }
    return used;
}

std::string plugins(const std::vector<std::string>& more) {
    std::string text = "plugins:\n  - {name: hotlist, path: hotlist.so}\n";
    for (const auto& entry : more) {
        text += "  - " + entry + "\n";
    }
    return text;
}

} // namespace queen::bench
