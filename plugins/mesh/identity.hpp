// mesh/identity.hpp - telling brokers apart. Peers go by server ids, which operators choose and may
// repeat: a copied data directory, a cloned machine. Beside it each process has an instance id, by
// chance. Brokers that say none are known by their server id alone.
#pragma once
#include "options.hpp"
#include "shared/hint_json.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace queen::mesh {

enum class Kin {
    other,
    ourselves,
    namesake ///< another process with our server id
};

inline Kin kin_of(const hint_json::Reading& said, const Options& options) {
    if (!hint_json::is_name(said.instance()) || options.instance.empty()) {
        return said.server_id() == options.server_id ? Kin::ourselves : Kin::other;
    }
    if (said.instance() == options.instance) {
        return Kin::ourselves;
    }
    return said.server_id() == options.server_id ? Kin::namesake : Kin::other;
}

/// Of which instances it was told that they share a server id with somebody: once each.
class Namesakes {
public:
    bool told(std::string_view instance) const { return told_.contains(instance); }
    void add(std::string_view instance) {
        if (told_.size() >= kMost) {
            told_.clear();
        }
        told_.emplace(instance);
    }

private:
    static constexpr std::size_t kMost = 1024;
    std::set<std::string, std::less<>> told_;
};

} // namespace queen::mesh
