// dedup_measure: pushes of 100 into large dedup windows, cache off against on, and what the set of
// fingerprints costs. Prints; judges nothing. Its figures stand in core/broker/dedup_cache.hpp.
#include "base/ticker.hpp"
#include "broker/announce.hpp"
#include "broker/dedup_cache.hpp"
#include "broker/parking.hpp"
#include "broker/push.hpp"
#include "broker/sources.hpp"
#include "model/names.hpp"
#include "store/conninfo.hpp"
#include "store/installer.hpp"
#include "store/pg_session.hpp"
#include "store/pg_store.hpp"
#include "support/postgres.hpp"
#include "support/recording_source.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <future>
#include <random>

namespace queen {
namespace {

using Micros = std::chrono::duration<double, std::micro>;

/// CPU time of this process, since the machine may be busy with others.
double cpu_micros() {
    return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC;
}

constexpr int kBatch = 100;
const std::string kKey = std::string(kDefaultTenant) + kKeySeparator + "q" + kKeySeparator + "p";

class Broker {
public:
    Broker(store::PgStore& store, bool cached)
        : ticker_(clock_), parking_(ticker_, clock_, {}), cache(store, ticker_, clock_, {}),
          push_(store, announcer_, clock_, {}, cached ? &cache : nullptr) {}

    /// @return the time from call to answer
    double push(std::mt19937_64& random) {
        broker::PushRequest request{std::string(kDefaultTenant), {}, {}};
        for (int i = 0; i < kBatch; ++i) {
            request.items.push_back({"q", "p", std::to_string(random()), "1"});
        }
        std::promise<void> done;
        const auto start = clock_.now();
        push_.push(std::move(request), [&](const std::vector<broker::PushItemResult>& results) {
            if (results.at(0).status != broker::PushStatus::queued) {
                std::fprintf(stderr, "not queued: %s\n", results.at(0).error.c_str());
                std::exit(1);
            }
            done.set_value();
        });
        done.get_future().wait();
        return Micros(clock_.now() - start).count();
    }

private:
    const SystemClock& clock_ = SystemClock::instance();
    TickerThread ticker_;
    std::shared_ptr<test::RecordingSource> source_ = std::make_shared<test::RecordingSource>();
    broker::Sources sources_{{{"recording", source_}}, "recording"};
    broker::Parking parking_;
    broker::Announcer announcer_{sources_, parking_};

public:
    broker::DedupCache cache;

private:
    broker::Push push_;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.at(values.size() / 2);
}

void measure_pushes(long window) {
    auto& server = test::TestPostgres::shared();
    const auto database = server.create_database();
    const auto conninfo = *store::complete_conninfo(server.conninfo(database));
    if (!store::Installer(conninfo).run()) {
        std::exit(1);
    }
    store::Executor executor({.sessions = 4, .spare_threads = 1}, [conninfo] {
        return std::make_unique<store::PgSession>(conninfo, store::StatementLimits{});
    });
    store::PgStore store{store::Asker(executor)};
    std::mt19937_64 random(1);
    Broker off(store, false), on(store, true);
    off.push(random);
    server.execute(database,
                   "insert into queen.log_txns select p.id, 100 + g * 100, 199 + g * 100, "
                   "p.newest_at, (select decode(string_agg(md5(g || '/' || i), ''), 'hex') from "
                   "generate_series(1, 100) i) from queen.log_partitions p, generate_series(0, " +
                       std::to_string(window / 100 - 2) +
                       ") g; update queen.log_partitions set last_offset = " +
                       std::to_string(window - 1) + "; analyze queen.log_txns");
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
        times.push_back(off.push(random));
    }
    std::printf("window %8ld: push of 100, cache off %10.2f ms\n", window, median(times) / 1000);
    const auto start = SystemClock::instance().now();
    int unvouched = 0;
    while (on.cache.stats().vouched == 0) {
        on.push(random);
        ++unvouched;
    }
    std::printf("                 %d pushes until the first vouch, in %.0f ms\n", unvouched - 1,
                Micros(SystemClock::instance().now() - start).count() / 1000);
    times.clear();
    for (int i = 0; i < 200; ++i) {
        times.push_back(on.push(random));
    }
    const auto stats = on.cache.stats();
    std::printf("                 push of 100, cache on  %10.2f ms; %zu hashes, %.1f bytes each\n",
                median(times) / 1000, stats.hashes,
                static_cast<double>(stats.bytes) / static_cast<double>(stats.hashes));
    std::mt19937_64 other(2);
    std::vector<std::uint64_t> unknown(100);
    const auto began = cpu_micros();
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks; ++i) {
        std::generate(unknown.begin(), unknown.end(), std::ref(other));
        if (!on.cache.vouch(kKey, unknown)) {
            std::exit(1);
        }
    }
    std::printf("                 a look-up takes %.1f ns a hash\n",
                (cpu_micros() - began) * 1000 / (kLooks * 100));
    executor.stop(std::chrono::seconds(5));
}

/// F-15: many generations must not make a look-up slower.
void measure_set() {
    constexpr std::size_t kMembers = 700 * 4096;
    for (const std::size_t tags : {1u, 64u}) {
        broker::FingerprintSet set;
        std::mt19937_64 random(3);
        const auto began = cpu_micros();
        for (std::size_t t = 0; t < tags; ++t) {
            const auto tag = *set.open();
            for (std::size_t i = 0; i < kMembers / tags; ++i) {
                set.insert(random(), tag);
            }
        }
        const auto filled = cpu_micros();
        std::size_t found = 0;
        constexpr std::size_t kLooks = 2'000'000;
        for (std::size_t i = 0; i < kLooks; ++i) {
            found += set.contains(random()) ? 1 : 0;
        }
        const auto looked = cpu_micros();
        std::printf("set of %zu in %2zu generations: insert %.1f ns, look-up %.1f ns, %.1f bytes "
                    "a member, %zu found by chance\n",
                    set.size(), tags, (filled - began) * 1000 / kMembers,
                    (looked - filled) * 1000 / kLooks,
                    static_cast<double>(set.bytes()) / static_cast<double>(set.size()), found);
    }
}

} // namespace
} // namespace queen

int main() {
    queen::measure_set();
    queen::measure_pushes(100'000);
    queen::measure_pushes(1'000'000);
}
