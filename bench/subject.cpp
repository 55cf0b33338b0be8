#include "subject.hpp"

#include "base/clock.hpp"
#include "support/candidate_source.hpp"

#include <fstream>
#include <stdexcept>

namespace queen::bench {

Subject::Subject(std::string source, const std::string& extra)
    : source_(std::move(source)), broker_({.config = test::serving(source_) + extra,
                                           .data_directory = directory_.path() + "/data"}) {}

pid_t Subject::postmaster() const {
    std::ifstream file(directory_.path() + "/data/postgres/postmaster.pid");
    pid_t pid = 0;
    if (!(file >> pid)) {
        throw std::runtime_error("the embedded PostgreSQL has no postmaster.pid");
    }
    return pid;
}

std::chrono::nanoseconds Subject::postgres_cpu() const {
    std::chrono::nanoseconds total{};
    for (const auto pid : tree_of(postmaster())) {
        total += cpu_of(pid);
    }
    return total;
}

void Subject::begin() {
    scrape_ = Scrape::of(port());
    broker_cpu_ = cpu_of(pid());
    postgres_cpu_ = postgres_cpu();
    started_ = SystemClock::instance().now();
}

Cost Subject::end() const {
    Cost cost;
    cost.wall = SystemClock::instance().now() - started_;
    cost.broker_cpu = cpu_of(pid()) - broker_cpu_;
    cost.postgres_cpu = postgres_cpu() - postgres_cpu_;
    cost.added = Scrape::of(port()).since(scrape_);
    return cost;
}

} // namespace queen::bench
