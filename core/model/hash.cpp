#include "model/hash.hpp"

#include <xxhash.h>

#include <algorithm>
#include <iterator>

namespace queen {

TxnHash hash_transaction_id(std::string_view id) noexcept {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(id.data(), id.size()));
    TxnHash hash;
    static_assert(sizeof canonical.digest == sizeof hash.bytes);
    std::copy(std::begin(canonical.digest), std::end(canonical.digest), hash.bytes.begin());
    return hash;
}

} // namespace queen
