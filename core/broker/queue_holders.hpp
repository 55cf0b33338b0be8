#pragma once
#include "model/names.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace queen::broker {

/// Tenants by the name of a queue: the names that are asked for, and who is known to hold them.
using QueueHolders = std::map<std::string, std::set<std::string>, std::less<>>;

/// `key` is that of a queue (model/names.hpp); a name that nobody asked for is passed over.
inline void add_holder(QueueHolders& holders, std::string_view key) {
    const auto end = key.find(kKeySeparator);
    if (end == std::string_view::npos) {
        return;
    }
    if (const auto wanted = holders.find(key.substr(end + 1)); wanted != holders.end()) {
        wanted->second.emplace(key.substr(0, end));
    }
}

/// Visits a hash map some buckets at a time, each time under the mutex, so that nobody waits for
/// all of it. What is there throughout is visited; what comes or goes meanwhile may be missed. A
/// map that grew in between has put its entries elsewhere: then `begin` is called again, which
/// forgets what was visited, and all are visited anew. That ends, because hash maps grow by half at
/// least.
template <typename Mutex, typename Map, typename Begin, typename Visit>
void visit_in_slices(Mutex& mutex, const Map& map, Begin begin, Visit visit) {
    constexpr std::size_t kBucketsAtOnce = 256;
    std::size_t buckets = 0;
    std::size_t bucket = 0;
    do {
        const std::lock_guard lock(mutex);
        if (bucket == 0 || buckets != map.bucket_count()) {
            buckets = map.bucket_count();
            bucket = 0;
            begin();
        }
        const auto end = std::min(buckets, bucket + kBucketsAtOnce);
        for (; bucket < end; ++bucket) {
            for (auto at = map.begin(bucket); at != map.end(bucket); ++at) {
                visit(*at);
            }
        }
    } while (bucket < buckets);
}

} // namespace queen::broker
