#include "subject.hpp"

#include "base/clock.hpp"
#include "support/candidate_source.hpp"

#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>

namespace queen::bench {

double Cost::floor_statements() const {
    double sum = 0;
    for (const auto& [name, count] : added.by("queen_store_statements_total", "statement")) {
        sum += name.find("reseed") != std::string::npos ? count : 0;
    }
    return sum;
}

double Cost::of_pops(std::string_view family) const {
    double sum = 0;
    for (const auto& [name, value] : added.by(family, "statement")) {
        sum += name.starts_with("pop_") || name.ends_with("has_pending") ? value : 0;
    }
    return sum;
}

std::string fixed(double value, int digits) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(digits) << value;
    return out.str();
}

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
