// What waiting costs: memory and threads of parked pops, statements and CPU while nothing happens,
// and who is woken when something does.
#include "pause.hpp"
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "subject.hpp"
#include "support/api.hpp"

#include <poll.h>

#include <memory>

namespace queen::bench {
namespace {

using test::Api;
using test::HttpClient;

constexpr const char* kSharedQueue = "shared";

/// Where pop number `i` waits.
struct Layout {
    std::string name;
    bool one_queue;
    std::int64_t groups;
    std::string queue(std::int64_t i) const {
        return one_queue ? kSharedQueue : "q" + std::to_string(i);
    }
    std::string group(std::int64_t i) const { return "g" + std::to_string(i % groups); }
};

using Clients = std::vector<std::unique_ptr<HttpClient>>;

/// Clients that have something to read once nothing more has come for `quiet`.
std::vector<std::size_t> answered(const Clients& clients, std::chrono::milliseconds quiet) {
    std::vector<pollfd> polls;
    for (const auto& client : clients) {
        polls.push_back({client->descriptor(), POLLIN, 0});
    }
    std::vector<std::size_t> ready;
    while (::poll(polls.data(), polls.size(), static_cast<int>(quiet.count())) > 0) {
        for (std::size_t i = 0; i < polls.size(); ++i) {
            if (polls[i].revents != 0) {
                ready.push_back(i);
                polls[i].fd = -1; // told once
            }
        }
    }
    return ready;
}

struct Row {
    std::int64_t threads = 0;
    double bytes_each = 0;
    Cost idle;
    std::vector<std::size_t> woken; ///< who was answered after one push
};

Row measure(const std::string& source, const Layout& layout, const Parked& parked) {
    Subject subject(source);
    Clients clients;
    for (std::int64_t i = 0; i < parked.pops; ++i) {
        clients.push_back(std::make_unique<HttpClient>(subject.port(), std::chrono::seconds(90)));
        clients.back()->get("/status"); // what a connection costs by itself is not the pop's
    }
    const auto connected = resident_bytes(subject.pid());
    for (std::int64_t i = 0; i < parked.pops; ++i) {
        clients[static_cast<std::size_t>(i)]->start(
            "GET", Api::pop_target(layout.queue(i),
                                   "wait=true&timeout=60000&consumerGroup=" + layout.group(i)));
    }
    await_figure(subject.port(), "queen_parked_pops", static_cast<double>(parked.pops));
    // The first look of a group registers it, and the second begins its ring: not what is asked.
    pause(std::chrono::seconds(3));
    Row row;
    row.bytes_each = static_cast<double>(resident_bytes(subject.pid()) - connected) /
                     static_cast<double>(parked.pops);
    row.threads = threads_of(subject.pid());
    subject.begin();
    pause(std::chrono::seconds(parked.seconds));
    row.idle = subject.end();
    Api(subject.port()).push_ids(layout.queue(parked.pops / 2), "p", {"t"});
    row.woken = answered(clients, std::chrono::milliseconds(500));
    return row;
}

} // namespace

void run(const Parked& parked, std::ostream& out) {
    const Layout layouts[] = {{"a queue each", false, 1},
                              {"one queue, one group", true, 1},
                              {"one queue, four groups", true, 4}};
    ctl::TextTable table({{"source", false},
                          {"pops wait on", false},
                          {"threads", true},
                          {"KB each", true},
                          {"pop path/s", true},
                          {"floor/s", true},
                          {"broker cpu %", true},
                          {"PostgreSQL cpu %", true},
                          {"answered by one push", false}});
    for (const auto& source : parked.sources) {
        for (const auto& layout : layouts) {
            const auto row = measure(source, layout, parked);
            const auto seconds = row.idle.seconds();
            const auto percent = [&](std::chrono::nanoseconds cpu) {
                return fixed(std::chrono::duration<double>(cpu).count() / seconds * 100, 1);
            };
            // Each must be of the queue that was pushed to, and of a group of its own.
            const auto expected = static_cast<std::size_t>(layout.groups);
            std::vector<std::string> groups;
            bool right = row.woken.size() == expected;
            for (const auto i : row.woken) {
                const auto number = static_cast<std::int64_t>(i);
                right =
                    right && layout.queue(number) == layout.queue(parked.pops / 2) &&
                    std::find(groups.begin(), groups.end(), layout.group(number)) == groups.end();
                groups.push_back(layout.group(number));
            }
            table.add({source, layout.name, std::to_string(row.threads),
                       fixed(row.bytes_each / 1024, 1),
                       fixed(row.idle.of_pops("queen_store_statements_total") / seconds, 1),
                       fixed(row.idle.floor_statements() / seconds, 1),
                       percent(row.idle.broker_cpu), percent(row.idle.postgres_cpu),
                       std::to_string(row.woken.size()) + " of " + std::to_string(parked.pops) +
                           (right ? ", the right ones" : ", WRONG")});
        }
    }
    out << parked.pops << " parked pops, " << parked.seconds << " s without an event\n\n";
    table.print(out);
}

} // namespace queen::bench
