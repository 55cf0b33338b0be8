// queen-bench: measures a broker it starts itself, with one candidate source after the other, and
// prints them side by side.
#include "queenctl/arguments.hpp"
#include "scenario.hpp"
#include "settings/values.hpp"

#include <sys/resource.h>

#include <iomanip>
#include <iostream>
#include <sstream>

namespace {

using queen::Result;
using queen::ctl::Arguments;
using queen::ctl::Flag;

constexpr Flag kFlags[] = {
    {"sources", "A,B", "candidate sources to compare (hotlist,sqlscan)"},
    {"partitions", "N,M", "sparse: sizes of the queue (1000,100000)"},
    {"busy", "N", "sparse: partitions that get messages (10)"},
    {"messages", "N", "sparse, ack: messages delivered while measured (20000; 60000)"},
    {"batch", "N", "ack: messages of a batch (500)"},
    {"consumers", "N", "sparse: waiting consumers (4)"},
    {"pops", "N", "parked: pops that wait (5000)"},
    {"seconds", "N",
     "parked: length of the quiet stretch (35); mesh: of pushes in a turn (1);\n        timers: "
     "over which they fall due (8); vacuum: at each rate (90)"},
    {"rounds", "N", "mesh: turns that each kind has (12)"},
    {"connections", "N", "mesh, timers: connections that push (2)"},
    {"wakes", "N", "mesh: pops woken, at rest and again under load (100)"},
    {"timers", "N", "timers: in each measurement of lateness (500)"},
    {"alone", "N", "timers: set one after the other, on each of two brokers (15)"},
    {"heap", "N", "timers: due at once (100000)"},
    {"rates", "N,M", "vacuum: timers a second (50,200,800)"},
    {"pending", "N", "vacuum: timers that stay (10000)"},
    {"help", "", "this text"},
};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    std::istringstream in(list);
    for (std::string part; std::getline(in, part, ',');) {
        parts.push_back(part);
    }
    return parts;
}

/// Thousands of connections of our own beside the broker's.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int refuse(const queen::Error& error) {
    std::cerr << "queen-bench: " << error.message << "\n";
    return 2;
}

int sparse(const Arguments& arguments) {
    queen::bench::Sparse sparse;
    const auto busy = arguments.whole("busy", sparse.busy, 1, 100'000);
    const auto messages = arguments.whole("messages", sparse.messages, 100, 10'000'000);
    const auto consumers = arguments.whole("consumers", sparse.consumers, 1, 64);
    if (const auto* error = queen::ctl::first_error(busy, messages, consumers)) {
        return refuse(*error);
    }
    sparse.busy = *busy;
    sparse.messages = *messages;
    sparse.consumers = *consumers;
    sparse.sources = split(arguments.text("sources", "hotlist,sqlscan"));
    sparse.partitions.clear();
    for (const auto& size : split(arguments.text("partitions", "1000,100000"))) {
        const auto partitions = queen::settings::parse_whole(size);
        if (!partitions || *partitions < *busy || *partitions > 10'000'000) {
            return refuse(queen::Error{queen::Errc::invalid_argument,
                                       "--partitions " + size +
                                           ": allowed are whole numbers from " +
                                           std::to_string(*busy) + " (--busy) to 10000000",
                                       {}});
        }
        sparse.partitions.push_back(*partitions);
    }
    run(sparse, std::cout);
    return 0;
}

int parked(const Arguments& arguments) {
    queen::bench::Parked parked;
    const auto pops = arguments.whole("pops", parked.pops, 1, 100'000);
    const auto seconds = arguments.whole("seconds", parked.seconds, 1, 40);
    if (const auto* error = queen::ctl::first_error(pops, seconds)) {
        return refuse(*error);
    }
    parked.pops = *pops;
    parked.seconds = *seconds;
    parked.sources = split(arguments.text("sources", "hotlist,sqlscan"));
    run(parked, std::cout);
    return 0;
}

int acked(const Arguments& arguments) {
    queen::bench::Acked acked;
    const auto messages = arguments.whole("messages", acked.messages, 1'000, 10'000'000);
    const auto batch = arguments.whole("batch", acked.batch, 1, 1'000);
    if (const auto* error = queen::ctl::first_error(messages, batch)) {
        return refuse(*error);
    }
    acked.messages = *messages;
    acked.batch = *batch;
    run(acked, std::cout);
    return 0;
}

int meshed(const Arguments& arguments) {
    queen::bench::Meshed meshed;
    const auto rounds = arguments.whole("rounds", meshed.rounds, 1, 100);
    const auto seconds = arguments.whole("seconds", meshed.seconds, 1, 40);
    const auto connections = arguments.whole("connections", meshed.connections, 1, 64);
    const auto wakes = arguments.whole("wakes", meshed.wakes, 1, 1'000);
    if (const auto* error = queen::ctl::first_error(rounds, seconds, connections, wakes)) {
        return refuse(*error);
    }
    meshed = {*rounds, *seconds, *connections, *wakes};
    run(meshed, std::cout);
    return 0;
}

int timed(const Arguments& arguments) {
    queen::bench::Timed timed;
    const auto timers = arguments.whole("timers", timed.timers, 1, 100'000);
    const auto seconds = arguments.whole("seconds", timed.seconds, 1, 60);
    const auto alone = arguments.whole("alone", timed.alone, 1, 1'000);
    const auto heap = arguments.whole("heap", timed.heap, 1, 1'000'000);
    const auto connections = arguments.whole("connections", timed.connections, 1, 64);
    if (const auto* error = queen::ctl::first_error(timers, seconds, alone, heap, connections)) {
        return refuse(*error);
    }
    timed = {*timers, *seconds, *alone, *heap, *connections};
    run(timed, std::cout);
    return 0;
}

int vacuumed(const Arguments& arguments) {
    queen::bench::Vacuumed vacuumed;
    const auto seconds = arguments.whole("seconds", vacuumed.seconds, 1, 3'600);
    const auto pending = arguments.whole("pending", vacuumed.pending, 0, 10'000'000);
    if (const auto* error = queen::ctl::first_error(seconds, pending)) {
        return refuse(*error);
    }
    vacuumed.seconds = *seconds;
    vacuumed.pending = *pending;
    if (arguments.has("rates")) {
        vacuumed.rates.clear();
        for (const auto& text : split(arguments.text("rates"))) {
            const auto rate = queen::settings::parse_whole(text);
            if (!rate || *rate < 10 || *rate > 100'000) {
                return refuse(queen::Error{queen::Errc::invalid_argument,
                                           "--rates " + text +
                                               ": allowed are whole numbers from 10 to 100000",
                                           {}});
            }
            vacuumed.rates.push_back(*rate);
        }
    }
    run(vacuumed, std::cout);
    return 0;
}

struct Scenario {
    std::string_view name, meaning;
    int (*run)(const Arguments& arguments);
};
constexpr Scenario kScenarios[] = {
    {"ack", "whole batches: acks by their hashes and by position", acked},
    {"mesh", "two brokers: hints not at all, over TCP, over LISTEN/NOTIFY", meshed},
    {"sparse", "a few busy partitions of a large queue: cost of a delivered message", sparse},
    {"parked", "pops that wait: memory, threads, statements, and who is woken", parked},
    {"timers", "how late they are, and 100,000 due at once, beside pushes", timed},
    {"vacuum", "a steady flow of timers: autovacuum and fillfactor of their table", vacuumed},
};

void usage(std::ostream& out) {
    out << "queen-bench SCENARIO [options]\n\n" << std::left;
    for (const auto& scenario : kScenarios) {
        out << "  " << std::setw(9) << scenario.name << scenario.meaning << "\n";
    }
    out << "\n";
    for (const auto& flag : kFlags) {
        out << "  --" << flag.name << (flag.value.empty() ? "" : " ") << flag.value << "\n        "
            << flag.meaning << "\n";
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto arguments = Arguments::parse(words, kFlags);
    if (!arguments) {
        return refuse(arguments.error());
    }
    if (arguments->has("help") || arguments->words().size() != 1) {
        usage(arguments->has("help") ? std::cout : std::cerr);
        return arguments->has("help") ? 0 : 2;
    }
    raise_descriptor_limit();
    try {
        for (const auto& scenario : kScenarios) {
            if (arguments->words().front() == scenario.name) {
                return scenario.run(*arguments);
            }
        }
    } catch (const std::exception& e) {
        std::cerr << "queen-bench: " << e.what() << "\n";
        return 1;
    }
    usage(std::cerr);
    return 2;
}
