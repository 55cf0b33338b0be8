// Its constructor throws.
#include <queen/plugin/entry.hpp>

namespace {

namespace plugin = queen::plugin;

std::unique_ptr<plugin::CandidateSource> make(plugin::Host&) {
    throw std::runtime_error("the moon is in the wrong house");
}

} // namespace

QUEEN_PLUGIN("test.create_throws", "1.0.0", plugin::kNoOptions, QUEEN_CANDIDATES,
             plugin::candidates<make>)
