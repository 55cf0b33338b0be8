#pragma once
#include <queen/plugin/candidates.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace queen::broker {

using SourcePtr = std::shared_ptr<plugin::CandidateSource>;

/// The loaded candidate sources and which of them serves a queue. Fixed after start; queue routes
/// and A/B arms will choose here.
class Sources {
public:
    struct Entry {
        std::string name; ///< of the plugin in YAML
        SourcePtr source;
    };
    Sources(std::vector<Entry> entries, std::string_view default_name);
    /// Never null. A selection settles with the source that made it: keep the pointer.
    const SourcePtr& serving(std::string_view tenant, std::string_view queue) const noexcept;
    const std::vector<Entry>& all() const noexcept { return entries_; }

private:
    std::vector<Entry> entries_;
    std::size_t default_ = 0;
};

} // namespace queen::broker
