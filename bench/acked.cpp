// What it costs to ack a batch whose every message is named: looked up by their hashes, or known as
// one batch. One consumer, one connection, so that nothing but the way of the ack differs.
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "subject.hpp"
#include "support/api.hpp"

#include <stdexcept>
#include <vector>

namespace queen::bench {
namespace {

constexpr const char* kQueue = "acked";

void fill(test::Api& api, const Acked& acked) {
    for (std::int64_t next = 0; next < acked.messages;) {
        std::vector<std::array<std::string, 3>> items;
        for (; next < acked.messages && items.size() < static_cast<std::size_t>(acked.batch);
             ++next) {
            items.push_back({"p", "m" + std::to_string(next), "1"});
        }
        if (const auto answer = api.push(kQueue, items); answer.status != 201) {
            throw std::runtime_error("filling: " + answer.body);
        }
    }
}

/// @return messages acked
std::int64_t drain(test::Api& api, const Acked& acked) {
    const auto pop = "consumerGroup=g&leaseSeconds=600&batch=" + std::to_string(acked.batch);
    std::int64_t done = 0;
    for (auto popped = api.pop(kQueue, pop); !popped.messages.empty();
         popped = api.pop(kQueue, pop)) {
        if (const auto answer = api.ack_all(popped.messages, "g"); answer.status != 200) {
            throw std::runtime_error("ack: " + answer.body);
        }
        done += static_cast<std::int64_t>(popped.messages.size());
    }
    return done;
}

} // namespace

void run(const Acked& acked, std::ostream& out) {
    ctl::TextTable table({{"ack registry", false},
                          {"messages/s", true},
                          {"acks by hash", true},
                          {"by position", true},
                          {"of an ack us/msg", true},
                          {"cpu us/msg", true},
                          {"of it PostgreSQL", true}});
    std::vector<double> of_acks, cpu;
    for (const bool registry : {false, true}) {
        Subject subject("hotlist", registry ? "" : "ack: {registry: false}\n");
        test::Api api(subject.port());
        fill(api, acked);
        subject.begin();
        const auto done = drain(api, acked);
        const auto cost = subject.end();
        if (done != acked.messages) {
            throw std::runtime_error("acked " + std::to_string(done) + " of " +
                                     std::to_string(acked.messages));
        }
        const auto messages = static_cast<double>(done);
        const auto statement = [&](std::string_view family, std::string_view name) {
            return cost.added.sum(family, {"statement=\"" + std::string(name) + "\""});
        };
        of_acks.push_back((statement("queen_store_statement_seconds_total", "ack_by_hash") +
                           statement("queen_store_statement_seconds_total", "ack_multi")) *
                          1e6 / messages);
        const auto postgres = static_cast<double>(cost.postgres_cpu.count()) / 1'000 / messages;
        cpu.push_back(static_cast<double>(cost.broker_cpu.count()) / 1'000 / messages + postgres);
        table.add({registry ? "on" : "off", fixed(messages / cost.seconds(), 0),
                   fixed(statement("queen_store_statements_total", "ack_by_hash"), 0),
                   fixed(statement("queen_store_statements_total", "ack_multi"), 0),
                   fixed(of_acks.back(), 2), fixed(cpu.back(), 2), fixed(postgres, 2)});
    }
    out << acked.messages << " messages in batches of " << acked.batch
        << ", popped and acked one batch after the other\n\n";
    table.print(out);
    out << "\nby hash / by position: statements of an ack " << fixed(of_acks[0] / of_acks[1], 1)
        << " x, cpu in all " << fixed(cpu[0] / cpu[1], 2) << " x\n";
}

} // namespace queen::bench
