// Candidate selection is what this measures: the queue has many partitions, of which `busy` get all
// the messages. A source that looks at partitions pays for all of them, one that remembers pays for
// those that are busy. Pops are leased and acknowledged, one producer, each push one message.
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "subject.hpp"
#include "support/api.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace queen::bench {
namespace {

constexpr const char* kQueue = "sparse";
constexpr std::size_t kFill = 1'000; ///< partitions of one push, and of one pop, while filling

std::string partition(std::int64_t number) {
    return "p" + std::to_string(number);
}

/// Pops until the source offers nothing any more. What was drained is in line once more, and trying
/// all of it in vain would be counted as the cost of the messages to come.
void exhaust(test::Api& api, std::uint16_t port, std::int64_t partitions, const std::string& pop) {
    const auto offered = [port] { return Scrape::of(port).sum("queen_candidates_names_total"); };
    auto before = offered();
    for (std::int64_t tries = 0; tries < partitions; ++tries) {
        api.pop(kQueue, pop);
        if (const auto now = offered(); now > before) {
            before = now;
        } else {
            return;
        }
    }
}

/// Makes the partitions, one message each, and drains them, so that the group is caught up.
void fill(test::Api& api, std::uint16_t port, std::int64_t partitions) {
    for (std::int64_t next = 0; next < partitions;) {
        std::vector<std::array<std::string, 3>> items;
        for (; next < partitions && items.size() < kFill; ++next) {
            items.push_back({partition(next), "fill" + std::to_string(next), "1"});
        }
        if (const auto answer = api.push(kQueue, items); answer.status != 201) {
            throw std::runtime_error("filling: " + answer.body);
        }
    }
    const auto pop = "autoAck=true&consumerGroup=g&batch=1000&partitions=" + std::to_string(kFill);
    for (std::int64_t drained = 0; drained < partitions;) {
        const auto popped = api.pop(kQueue, pop + "&wait=true&timeout=30000");
        if (popped.messages.empty()) {
            throw std::runtime_error("draining ended at " + std::to_string(drained) + " of " +
                                     std::to_string(partitions));
        }
        drained += static_cast<std::int64_t>(popped.messages.size());
    }
    exhaust(api, port, partitions, pop);
}

/// Locks: mutex_ is a leaf.
class Counts {
public:
    explicit Counts(std::int64_t wanted) : wanted_(wanted) {}
    void popped(std::size_t messages) {
        ++pops;
        empty += messages == 0 ? 1 : 0;
    }
    void acked(std::size_t messages) {
        const std::lock_guard lock(mutex_);
        delivered_ += static_cast<std::int64_t>(messages);
        changed_.notify_all();
    }
    void failed(const std::string& what) {
        const std::lock_guard lock(mutex_);
        failure_ = failure_.empty() ? what : failure_;
        changed_.notify_all();
    }
    bool over() const {
        const std::lock_guard lock(mutex_);
        return is_over();
    }
    /// Waits until all was delivered. @throws std::runtime_error when a thread failed
    void await() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_over(); });
    }
    std::int64_t delivered() const {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) {
            throw std::runtime_error(failure_);
        }
        return delivered_;
    }

    std::atomic<std::int64_t> pops{0}, empty{0};

private:
    bool is_over() const { return delivered_ >= wanted_ || !failure_.empty(); }
    const std::int64_t wanted_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t delivered_ = 0;
    std::string failure_; ///< of the first thread that failed
};

void consume(std::uint16_t port, Counts& counts) {
    test::Api api(port);
    while (!counts.over()) {
        const auto popped =
            api.pop(kQueue, "consumerGroup=g&batch=10&wait=true&timeout=500&leaseSeconds=60");
        counts.popped(popped.messages.size());
        if (popped.messages.empty()) {
            continue;
        }
        if (const auto answer = api.ack_all(popped.messages, "g"); answer.status != 200) {
            throw std::runtime_error("ack: " + answer.body);
        }
        counts.acked(popped.messages.size());
    }
}

/// One push after the other, as fast as they are answered.
void produce(std::uint16_t port, const Sparse& sparse, std::int64_t partitions) {
    test::Api api(port);
    const auto step = std::max<std::int64_t>(1, partitions / sparse.busy);
    for (std::int64_t sent = 0; sent < sparse.messages; ++sent) {
        const auto busy = (sent % sparse.busy) * step % partitions;
        const auto answer = api.push_ids(kQueue, partition(busy), {"m" + std::to_string(sent)});
        if (answer.status != 201) {
            throw std::runtime_error("push: " + answer.body);
        }
    }
}

template <class Work>
void guarded(Counts& counts, Work work) {
    try {
        work();
    } catch (const std::exception& e) {
        counts.failed(e.what()); // ends the others
    }
}

Cost measure(Subject& subject, const Sparse& sparse, std::int64_t partitions, Counts& counts) {
    {
        test::Api api(subject.port());
        fill(api, subject.port(), partitions);
    }
    subject.begin();
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < sparse.consumers; ++i) {
        threads.emplace_back([&] { guarded(counts, [&] { consume(subject.port(), counts); }); });
    }
    threads.emplace_back(
        [&] { guarded(counts, [&] { produce(subject.port(), sparse, partitions); }); });
    counts.await();
    auto cost = subject.end(); // before the consumers' last waits end
    for (auto& thread : threads) {
        thread.join();
    }
    return cost;
}

} // namespace

void run(const Sparse& sparse, std::ostream& out) {
    ctl::TextTable table({{"source", false},
                          {"partitions", true},
                          {"messages/s", true},
                          {"pops/msg", true},
                          {"empty pops", true},
                          {"claims/msg", true},
                          {"scans/msg", true},
                          {"probes/msg", true},
                          {"of a pop us/msg", true},
                          {"floor/s", true},
                          {"empty claims", true},
                          {"cpu us/msg", true},
                          {"of it PostgreSQL", true}});
    ctl::TextTable ratios(
        {{"source", false}, {"from", true}, {"to", true}, {"cpu per message", true}});
    for (const auto& source : sparse.sources) {
        double first_cpu = 0;
        for (const auto partitions : sparse.partitions) {
            Subject subject(source);
            Counts counts(sparse.messages);
            const auto cost = measure(subject, sparse, partitions, counts);
            const auto messages = static_cast<double>(counts.delivered());
            const auto seconds = cost.seconds();
            const auto per_message = [&](std::string_view statement) {
                const auto label = "statement=\"" + std::string(statement) + "\"";
                return fixed(cost.added.sum("queen_store_statements_total", {label}) / messages, 3);
            };
            const auto pop_seconds = cost.of_pops("queen_store_statement_seconds_total");
            const auto postgres = static_cast<double>(cost.postgres_cpu.count()) / 1'000 / messages;
            const auto cpu =
                static_cast<double>(cost.broker_cpu.count()) / 1'000 / messages + postgres;
            table.add({source, std::to_string(partitions), fixed(messages / seconds, 0),
                       fixed(static_cast<double>(counts.pops) / messages, 3),
                       std::to_string(counts.empty), per_message("pop_list"),
                       per_message("pop_wildcard"), per_message("has_pending"),
                       fixed(pop_seconds * 1e6 / messages, 0),
                       fixed(cost.floor_statements() / seconds, 2),
                       fixed(cost.added.sum("queen_candidates_claims_total",
                                            {"verdict=\"empty\"", "source=\"" + source + "\""}),
                             0),
                       fixed(cpu, 0), fixed(postgres, 0)});
            if (first_cpu == 0) {
                first_cpu = cpu;
            } else {
                ratios.add({source, std::to_string(sparse.partitions.front()),
                            std::to_string(partitions), fixed(cpu / first_cpu, 2) + " x"});
            }
        }
    }
    out << sparse.busy << " busy partitions, " << sparse.messages << " messages, one push each, "
        << sparse.consumers << " waiting consumers with leases and acks\n\n";
    table.print(out);
    if (!ratios.empty()) {
        out << "\n";
        ratios.print(out);
    }
}

} // namespace queen::bench
