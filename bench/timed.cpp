// How late timers are, and how fast a heap of them is worked off. Two brokers over one database;
// the first fires, the second has no driver, so that it is known who does what: a timer set on the
// first pulls its next cycle forward, one set on the second is found by itself. Lateness is that of
// the store (when the segment of the message was written) and that of a consumer who waits at the
// first broker; all of them read one clock here.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "cluster.hpp"
#include "pause.hpp"
#include "producers.hpp"
#include "quantiles.hpp"
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "subject.hpp"
#include "support/api.hpp"
#include "support/sql_session.hpp"
#include "timer_client.hpp"

#include <array>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

namespace queen::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLoad = "load";
constexpr std::size_t kFiring = 0, kOther = 1;
constexpr auto kSoon = 100ms; ///< less than a driver's longest sleep

struct Lateness {
    std::string name;
    Quantiles stored, consumed;
};

/// What came out of one queue with one partition: the time of arrival by offset and by name.
struct Arrivals {
    std::map<std::string, std::pair<std::int64_t, WallTime>> by_txn;
};

Arrivals consume(std::uint16_t port, const std::string& queue, std::int64_t count) {
    test::Api api(port);
    Arrivals arrivals;
    for (int empty = 0; static_cast<std::int64_t>(arrivals.by_txn.size()) < count;) {
        const auto popped = api.pop(queue, "wait=true&timeout=20000&autoAck=true&batch=1000"
                                           "&consumerGroup=g");
        const auto now = SystemClock::wall();
        for (const auto& message : popped.messages) {
            arrivals.by_txn[message.transaction_id] = {message.offset, now};
        }
        empty = popped.messages.empty() ? empty + 1 : 0;
        if (empty == 2) {
            throw std::runtime_error("of " + std::to_string(count) + " timers came " +
                                     std::to_string(arrivals.by_txn.size()));
        }
    }
    return arrivals;
}

/// When the segment of each offset of the queue was written.
std::map<std::int64_t, WallTime> stored(const Cluster& cluster, const std::string& queue) {
    test::SqlSession sql(cluster.conninfo());
    const auto rows =
        sql.query("SELECT s.base_offset, s.end_offset, "
                  "(extract(epoch FROM s.created_at) * 1000000)::bigint FROM queen.log_segments s "
                  "JOIN queen.log_partitions p ON p.id = s.partition_id "
                  "JOIN queen.queues q ON q.id = p.queue_id WHERE q.name = $1",
                  {queue});
    std::map<std::int64_t, WallTime> times;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (auto offset = rows.integer(i, 0); offset <= rows.integer(i, 1); ++offset) {
            times[offset] = WallTime(std::chrono::microseconds(rows.integer(i, 2)));
        }
    }
    return times;
}

/// Timers that fall due at random over a stretch, set a second before it begins.
Lateness lateness(const Cluster& cluster, std::size_t set_on, bool load, const Timed& timed) {
    Lateness late{.name = std::string(set_on == kFiring ? "the firing broker" : "another broker")};
    const std::string queue = "late" + std::to_string(set_on) + (load ? "load" : "idle");
    test::Api(cluster.port(kFiring)).pop(queue, "autoAck=true&consumerGroup=g");
    std::optional<Producers> producers;
    if (load) {
        producers.emplace(cluster.port(kFiring), kLoad, timed.connections);
    }
    Arrivals arrivals;
    std::string failure;
    std::thread consumer([&] {
        try {
            arrivals = consume(cluster.port(kFiring), queue, timed.timers);
        } catch (const std::exception& e) {
            failure = e.what();
        }
    });
    std::map<std::string, WallTime> due;
    try {
        TimerClient client(cluster.port(set_on));
        std::mt19937 random(1);
        std::uniform_int_distribution<std::int64_t> delay(1'000, 1'000 + timed.seconds * 1'000);
        // Each in a call of its own, as a program sets them.
        for (std::int64_t i = 0; i < timed.timers; ++i) {
            const auto key = std::to_string(i);
            client.add({.queue = queue, .key = key, .delay = delay(random) * 1ms});
            due[key] = client.send().front();
        }
    } catch (...) {
        consumer.join();
        throw;
    }
    consumer.join();
    if (!failure.empty()) {
        throw std::runtime_error(failure);
    }
    if (producers) {
        static_cast<void>(producers->pushed());
    }
    const auto times = stored(cluster, queue);
    for (const auto& [txn, arrival] : arrivals.by_txn) {
        const auto at = times.at(arrival.first);
        if (at < due.at(txn) || arrival.second < due.at(txn)) {
            throw std::runtime_error("timer " + txn + ", due at " + format_micros(due.at(txn)) +
                                     ", was stored EARLY, at " + format_micros(at));
        }
        late.stored.add(at - due.at(txn));
        late.consumed.add(arrival.second - due.at(txn));
    }
    return late;
}

/// One timer after the other, each set while nothing else is about to fall due: only a driver that
/// is told of it, or looks, can be in time. In turn on the firing broker and on the other.
std::array<Quantiles, 2> alone(const Cluster& cluster, const Timed& timed) {
    std::array<Quantiles, 2> late;
    std::array clients{TimerClient(cluster.port(kFiring)), TimerClient(cluster.port(kOther))};
    const std::string queue = "alone";
    test::Api api(cluster.port(kFiring));
    const std::string pop = "wait=true&timeout=20000&autoAck=true&consumerGroup=g";
    std::mt19937 random(1);
    std::uniform_int_distribution<std::int64_t> gap(1'000, 2'000);
    std::map<std::int64_t, std::pair<std::size_t, WallTime>> due; // by offset
    for (std::int64_t i = 0; i < 2 * timed.alone; ++i) {
        pause(gap(random) * 1ms);
        const auto set_on = static_cast<std::size_t>(i % 2);
        clients[set_on].add({.queue = queue, .key = std::to_string(i), .delay = kSoon});
        const auto at = clients[set_on].send().front();
        const auto popped = api.pop(queue, pop);
        if (popped.messages.size() != 1) {
            throw std::runtime_error("a timer alone did not come: " + popped.body);
        }
        due[popped.messages.front().offset] = {set_on, at};
    }
    for (const auto& [offset, at] : stored(cluster, queue)) {
        if (at < due.at(offset).second) {
            throw std::runtime_error("a timer alone was stored EARLY");
        }
        late[due.at(offset).first].add(at - due.at(offset).second);
    }
    return late;
}

void print(std::vector<std::pair<bool, Lateness>>& measured, std::ostream& out) {
    ctl::TextTable table({{"set on", false},
                          {"meanwhile", false},
                          {"timers", true},
                          {"stored: p50 ms", true},
                          {"p90", true},
                          {"p99", true},
                          {"max", true},
                          {"consumed: p50 ms", true},
                          {"p90", true},
                          {"p99", true},
                          {"max", true}});
    constexpr std::array kBounds{1, 2, 5, 10, 20, 50, 100, 250, 500, 1'000, 2'000};
    std::vector<ctl::TextTable::Column> columns{{"set on", false}, {"meanwhile", false}};
    for (const auto bound : kBounds) {
        columns.push_back({"<= " + std::to_string(bound) + " ms", true});
    }
    columns.push_back({"above", true});
    ctl::TextTable histogram(columns);
    for (auto& [load, late] : measured) {
        std::vector<std::string> row{late.name, load ? "pushes" : "nothing",
                                     std::to_string(late.stored.count())};
        for (auto* lengths : {&late.stored, &late.consumed}) {
            for (const double part : {0.5, 0.9, 0.99, 1.0}) {
                row.push_back(fixed(lengths->milliseconds(part), 1));
            }
        }
        table.add(row);
        std::vector<std::int64_t> buckets(kBounds.size() + 1);
        for (const auto length : late.stored.all()) {
            std::size_t bucket = 0;
            while (bucket < kBounds.size() && length > std::chrono::milliseconds(kBounds[bucket])) {
                ++bucket;
            }
            ++buckets[bucket];
        }
        row = {late.name, load ? "pushes" : "nothing"};
        for (const auto count : buckets) {
            row.push_back(std::to_string(count));
        }
        histogram.add(row);
    }
    table.print(out);
    out << "\nnone was early; how many were stored how late\n\n";
    histogram.print(out);
}

struct Drain {
    double timers_per_second = 0;
    double pushes_per_second = 0;
};

/// Sets many timers while nothing fires, lets go, and waits until the last one is in its queue.
Drain drain(const Cluster& cluster, const std::string& queue, bool load, const Timed& timed) {
    test::Api api(cluster.port(kFiring));
    const auto fire = [&api](bool on) {
        const auto answer = api.http.post(
            "/api/v1/system/kv-timers", on ? R"({"timersFire":true})" : R"({"timersFire":false})");
        if (answer.status != 200) {
            throw std::runtime_error("the switch: " + answer.body);
        }
    };
    fire(false);
    TimerClient client(cluster.port(kFiring));
    for (std::int64_t i = 0; i < timed.heap; ++i) {
        client.add({.queue = queue,
                    .key = std::to_string(i),
                    .partition = "p" + std::to_string(i % 100),
                    .delay = 0ms});
        if (client.waiting() == 250 || i + 1 == timed.heap) {
            client.send();
        }
    }
    std::optional<Producers> producers;
    if (load) {
        producers.emplace(cluster.port(kFiring), kLoad, timed.connections);
    }
    test::SqlSession sql(cluster.conninfo());
    const auto started = SystemClock::instance().now();
    fire(true);
    do {
        pause(100ms);
        if (SystemClock::instance().now() - started > std::chrono::minutes(5)) {
            throw std::runtime_error("the timers were not worked off in 5 minutes");
        }
    } while (sql.yes("SELECT EXISTS (SELECT 1 FROM queen.log_timers)"));
    const std::chrono::duration<double> took = SystemClock::instance().now() - started;
    const auto pushed = producers ? producers->pushed() : 0;
    producers.reset();
    if (const auto came = sql.integer("SELECT sum(p.last_offset + 1)::bigint FROM "
                                      "queen.log_partitions p JOIN queen.queues q "
                                      "ON q.id = p.queue_id WHERE q.name = $1",
                                      {queue});
        came != timed.heap) {
        throw std::runtime_error("of " + std::to_string(timed.heap) + " timers came " +
                                 std::to_string(came));
    }
    return {static_cast<double>(timed.heap) / took.count(),
            static_cast<double>(pushed) / took.count()};
}

double pushes_alone(const Cluster& cluster, const Timed& timed) {
    const Producers producers(cluster.port(kFiring), kLoad, timed.connections);
    const auto before = producers.pushed();
    const auto started = SystemClock::instance().now();
    pause(5s);
    const std::chrono::duration<double> took = SystemClock::instance().now() - started;
    return static_cast<double>(producers.pushed() - before) / took.count();
}

} // namespace

void run(const Timed& timed, std::ostream& out) {
    Cluster cluster;
    cluster.add(plugins({"{name: timers, path: timers.so}"}));
    cluster.add(plugins({}));
    std::vector<std::pair<bool, Lateness>> measured;
    for (const bool load : {false, true}) {
        for (const auto set_on : {kFiring, kOther}) {
            measured.emplace_back(load, lateness(cluster, set_on, load, timed));
        }
    }
    out << timed.timers << " timers due over " << timed.seconds
        << " s, each set at least 1 s before; "
        << "meanwhile nothing, or pushes on " << timed.connections << " connections\n\n";
    print(measured, out);

    auto lone = alone(cluster, timed);
    ctl::TextTable few({{"set on", false},
                        {"timers", true},
                        {"stored: p50 ms", true},
                        {"p90", true},
                        {"max", true}});
    for (const auto set_on : {kFiring, kOther}) {
        few.add({set_on == kFiring ? "the firing broker" : "another broker",
                 std::to_string(lone[set_on].count()), fixed(lone[set_on].milliseconds(0.5), 1),
                 fixed(lone[set_on].milliseconds(0.9), 1),
                 fixed(lone[set_on].milliseconds(1.0), 1)});
    }
    out << "\none timer after the other, due " << kSoon.count()
        << " ms after it was set, 1 s to 2 s between them\n\n";
    few.print(out);

    const auto before = pushes_alone(cluster, timed);
    const auto alone = drain(cluster, "heap", false, timed);
    const auto beside = drain(cluster, "heap-beside", true, timed);
    const auto after = pushes_alone(cluster, timed);
    ctl::TextTable table({{"", false}, {"timers/s", true}, {"pushes/s", true}});
    table.add({"pushes alone, before", "-", fixed(before, 0)});
    table.add({"timers alone", fixed(alone.timers_per_second, 0), "-"});
    table.add({"both", fixed(beside.timers_per_second, 0), fixed(beside.pushes_per_second, 0)});
    table.add({"pushes alone, after", "-", fixed(after, 0)});
    out << "\n"
        << timed.heap << " timers due at once, one broker fires, 100 partitions; pushes on "
        << timed.connections << " connections\n\n";
    table.print(out);
    out << "\nboth / alone: timers " << fixed(beside.timers_per_second / alone.timers_per_second, 2)
        << " x, pushes " << fixed(2 * beside.pushes_per_second / (before + after), 2) << " x\n";
}

} // namespace queen::bench
