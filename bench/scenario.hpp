#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace queen::bench {

/// A few partitions of a large queue are busy; what does delivery cost?
struct Sparse {
    std::vector<std::string> sources{"hotlist", "sqlscan"};
    std::vector<std::int64_t> partitions{1'000, 100'000};
    std::int64_t busy = 10;
    std::int64_t messages = 20'000; ///< delivered while measured
    std::int64_t consumers = 4;
};
void run(const Sparse& sparse, std::ostream& out);

/// Many pops wait and nothing happens; then one message comes.
struct Parked {
    std::vector<std::string> sources{"hotlist", "sqlscan"};
    std::int64_t pops = 5'000;
    std::int64_t seconds = 35; ///< measured while nothing happens; a reseed floor and a bit
};
void run(const Parked& parked, std::ostream& out);

/// Batches are popped and acked whole; what does it cost to look each message up?
struct Acked {
    std::int64_t messages = 60'000; ///< acked while measured, each way
    std::int64_t batch = 500;
};
void run(const Acked& acked, std::ostream& out);

/// Two brokers, pushes on one, pops that wait at the other: without a mesh, over TCP, over NOTIFY.
struct Meshed {
    std::int64_t rounds = 12;     ///< turns that each kind has
    std::int64_t seconds = 1;     ///< of pushes in a turn
    std::int64_t connections = 2; ///< that push
    std::int64_t wakes = 100;     ///< pops woken, at rest and again under load
};
void run(const Meshed& meshed, std::ostream& out);

/// How late timers are, and how fast many that are due at once are worked off.
struct Timed {
    std::int64_t timers = 500;    ///< in each of four measurements of lateness
    std::int64_t seconds = 8;     ///< over which these fall due
    std::int64_t alone = 15;      ///< set one after the other, on each of two brokers
    std::int64_t heap = 100'000;  ///< due at once
    std::int64_t connections = 2; ///< that push meanwhile
};
void run(const Timed& timed, std::ostream& out);

/// A steady flow of timers: what autovacuum has to do, with both fillfactors.
struct Vacuumed {
    std::vector<std::int64_t> rates{50, 200, 800}; ///< timers a second
    std::int64_t seconds = 90;                     ///< at each rate
    std::int64_t pending = 10'000;                 ///< timers that stay
};
void run(const Vacuumed& vacuumed, std::ostream& out);

} // namespace queen::bench
