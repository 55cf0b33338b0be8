#include "broker/sources.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace queen::broker {

Sources::Sources(std::vector<Entry> entries, std::string_view default_name)
    : entries_(std::move(entries)) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.name == default_name; });
    QUEEN_ASSERT(found != entries_.end(), "the default candidate source is not loaded");
    default_ = static_cast<std::size_t>(found - entries_.begin());
}

const SourcePtr& Sources::serving(std::string_view, std::string_view) const noexcept {
    return entries_[default_].source;
}

} // namespace queen::broker
