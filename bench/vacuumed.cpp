// What a steady flow of timers costs autovacuum, and whether the free room in pages (fillfactor) is
// worth anything. Per rate two clusters at the same time, one with each fillfactor, so that
// whatever else the machine does meets both. Each has one broker that sets and fires timers, and
// timers far ahead that stay. How long a worker was on the table, and its CPU, is what the server's
// log says of each run; how many workers were seen at once is from looks at pg_stat_activity.
#include "base/clock.hpp"
#include "cluster.hpp"
#include "pause.hpp"
#include "queenctl/text_table.hpp"
#include "scenario.hpp"
#include "scrape.hpp"
#include "subject.hpp"
#include "support/sql_session.hpp"
#include "timer_client.hpp"

#include <optional>
#include <random>
#include <regex>
#include <stdexcept>
#include <thread>

namespace queen::bench {
namespace {

using namespace std::chrono_literals;

/// Calls in a second: each sets the timers of a tenth.
constexpr std::int64_t kCalls = 10;

/// Runs of autovacuum over the table, by the server's log.
struct Runs {
    std::int64_t vacuums = 0, analyzes = 0;
    double cpu = 0, elapsed = 0; ///< seconds

    static Runs of(const std::string& log) {
        static const std::regex run(
            "automatic (vacuum|analyze) of table \"[^\"]*queen\\.log_timers\""
            "[^\\0]*?CPU: user: ([0-9.]+) s, system: ([0-9.]+) s, "
            "elapsed: ([0-9.]+) s");
        Runs runs;
        for (std::size_t at = log.find("automatic "); at != std::string::npos;
             at = log.find("automatic ", at + 1)) {
            // A report ends with the figures of its CPU, well within so much text.
            const std::string report = log.substr(at, 4'000);
            std::smatch match;
            if (!std::regex_search(report, match, run, std::regex_constants::match_continuous)) {
                continue;
            }
            ++(match[1] == "vacuum" ? runs.vacuums : runs.analyzes);
            runs.cpu += std::stod(match[2]) + std::stod(match[3]);
            runs.elapsed += std::stod(match[4]);
        }
        return runs;
    }
};

struct Flow {
    std::int64_t rate = 0;
    std::int64_t fillfactor = 0;
    std::int64_t fired = 0, updates = 0, hot = 0, dead = 0;
    std::int64_t looks = 0, on_table = 0, any = 0, most = 0; ///< at autovacuum workers
    std::int64_t heap = 0, indexes = 0;                      ///< bytes, at the end
    std::int64_t largest_heap = 0, largest_indexes = 0;
    Runs runs;
    Used used;
    std::string failure;
};

class Arm {
public:
    Arm(std::int64_t rate, std::int64_t fillfactor)
        : cluster_({{"shared_buffers", "256MB"}, {"log_autovacuum_min_duration", "0"}}) {
        flow_.rate = rate;
        flow_.fillfactor = fillfactor;
        cluster_.add(plugins({"{name: timers, path: timers.so}"}));
        test::SqlSession sql(cluster_.conninfo());
        sql.script("ALTER TABLE queen.log_timers SET (fillfactor = " + std::to_string(fillfactor) +
                   ")");
    }

    /// @thread one of its own
    void run(std::int64_t pending, std::int64_t seconds) {
        try {
            fill(pending);
            flow(seconds);
        } catch (const std::exception& e) {
            flow_.failure = e.what();
        }
    }
    const Flow& result() const { return flow_; }

private:
    /// Sets the timers that stay.
    void fill(std::int64_t pending) {
        TimerClient client(cluster_.port(0));
        for (std::int64_t i = 0; i < pending; ++i) {
            client.add({.queue = "later", .key = std::to_string(i), .delay = 24h});
            if (client.waiting() == 250 || i + 1 == pending) {
                client.send();
            }
        }
    }

    void flow(std::int64_t seconds) {
        TimerClient client(cluster_.port(0));
        test::SqlSession sql(cluster_.conninfo());
        std::mt19937 random(1);
        std::uniform_int_distribution<std::int64_t> delay(500, 3'000);
        const auto counts = [&sql](std::string_view column) {
            return sql.integer("SELECT " + std::string(column) +
                               " FROM pg_stat_user_tables WHERE relid = "
                               "'queen.log_timers'::regclass");
        };
        const auto fired = [this] {
            return static_cast<std::int64_t>(
                Scrape::of(cluster_.port(0)).sum("queen_sweeper_fired_total"));
        };
        const auto log = cluster_.postgres_log().size();
        const auto updates = counts("n_tup_upd"), hot = counts("n_tup_hot_upd");
        const auto fired_before = fired();
        const auto before = cluster_.used();
        const auto started = SystemClock::instance().now();
        std::int64_t next = 0;
        for (std::int64_t call = 0; call < seconds * kCalls; ++call) {
            const auto until = (call + 1) * flow_.rate / kCalls;
            while (next < until) {
                const auto number = std::to_string(next++);
                client.add({.queue = "flow",
                            .key = "flow" + number,
                            .partition = "p" + std::to_string(next % 20),
                            .delay = delay(random) * 1ms});
                if (client.waiting() == 250 || next == until) {
                    client.send();
                }
            }
            look(sql);
            const auto due = started + (call + 1) * (1'000'000'000ns / kCalls);
            if (const auto now = SystemClock::instance().now(); now < due) {
                pause(due - now);
            } else if (now - started > std::chrono::seconds(seconds)) {
                break; // it takes what it takes; what was fired is counted
            }
        }
        flow_.used = cluster_.since(before);
        flow_.fired = fired() - fired_before;
        flow_.updates = counts("n_tup_upd") - updates;
        flow_.hot = counts("n_tup_hot_upd") - hot;
        flow_.dead = counts("n_dead_tup");
        sizes(sql);
        flow_.heap = heap_;
        flow_.indexes = indexes_;
        flow_.runs = Runs::of(cluster_.postgres_log().substr(log));
    }
    void look(test::SqlSession& sql) {
        const auto rows =
            sql.query("SELECT count(*), count(*) FILTER (WHERE query LIKE '%queen.log_timers%') "
                      "FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'");
        ++flow_.looks;
        flow_.any += rows.integer(0, 0) > 0 ? 1 : 0;
        flow_.on_table += rows.integer(0, 1) > 0 ? 1 : 0;
        flow_.most = std::max(flow_.most, rows.integer(0, 0));
        sizes(sql);
    }
    void sizes(test::SqlSession& sql) {
        const auto rows = sql.query("SELECT pg_relation_size('queen.log_timers'), "
                                    "pg_indexes_size('queen.log_timers')");
        heap_ = rows.integer(0, 0);
        indexes_ = rows.integer(0, 1);
        flow_.largest_heap = std::max(flow_.largest_heap, heap_);
        flow_.largest_indexes = std::max(flow_.largest_indexes, indexes_);
    }

    Cluster cluster_;
    Flow flow_;
    std::int64_t heap_ = 0, indexes_ = 0;
};

std::string mib(std::int64_t bytes) {
    return fixed(static_cast<double>(bytes) / 1024 / 1024, 1);
}

std::string percent(double part, double whole) {
    return whole > 0 ? fixed(part / whole * 100, 2) : "-";
}

} // namespace

void run(const Vacuumed& vacuumed, std::ostream& out) {
    ctl::TextTable cost({{"timers/s", true},
                         {"fillfactor", true},
                         {"fired/s", true},
                         {"vacuums", true},
                         {"analyzes", true},
                         {"worker on it %", true},
                         {"s each", true},
                         {"cpu s", true},
                         {"of PostgreSQL's cpu %", true},
                         {"PostgreSQL cpu us/timer", true},
                         {"seen on it %", true},
                         {"seen at all %", true},
                         {"most at once", true}});
    ctl::TextTable room({{"timers/s", true},
                         {"fillfactor", true},
                         {"updates", true},
                         {"HOT", true},
                         {"heap MiB", true},
                         {"largest", true},
                         {"indexes MiB", true},
                         {"largest", true},
                         {"dead at the end", true}});
    for (const auto rate : vacuumed.rates) {
        Arm roomy(rate, 70), full(rate, 100);
        std::thread beside([&] { full.run(vacuumed.pending, vacuumed.seconds); });
        roomy.run(vacuumed.pending, vacuumed.seconds);
        beside.join();
        for (const auto* arm : {&roomy, &full}) {
            const auto& flow = arm->result();
            if (!flow.failure.empty()) {
                throw std::runtime_error(flow.failure);
            }
            const auto seconds = flow.used.seconds();
            const auto postgres = std::chrono::duration<double>(flow.used.postgres).count();
            const auto looks = static_cast<double>(flow.looks);
            const auto runs = static_cast<double>(flow.runs.vacuums + flow.runs.analyzes);
            cost.add({std::to_string(rate), std::to_string(flow.fillfactor),
                      fixed(static_cast<double>(flow.fired) / seconds, 0),
                      std::to_string(flow.runs.vacuums), std::to_string(flow.runs.analyzes),
                      percent(flow.runs.elapsed, seconds),
                      runs > 0 ? fixed(flow.runs.elapsed / runs, 3) : "-", fixed(flow.runs.cpu, 2),
                      percent(flow.runs.cpu, postgres),
                      fixed(postgres * 1e6 / static_cast<double>(flow.fired), 0),
                      percent(static_cast<double>(flow.on_table), looks),
                      percent(static_cast<double>(flow.any), looks), std::to_string(flow.most)});
            room.add({std::to_string(rate), std::to_string(flow.fillfactor),
                      std::to_string(flow.updates), std::to_string(flow.hot), mib(flow.heap),
                      mib(flow.largest_heap), mib(flow.indexes), mib(flow.largest_indexes),
                      std::to_string(flow.dead)});
        }
    }
    out << vacuumed.seconds << " s at each rate, timers due after 0.5 s to 3 s, beside "
        << vacuumed.pending << " that stay; both fillfactors at the same time\n\n";
    cost.print(out);
    out << "\n";
    room.print(out);
}

} // namespace queen::bench
