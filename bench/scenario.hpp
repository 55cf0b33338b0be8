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

} // namespace queen::bench
