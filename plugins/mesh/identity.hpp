// mesh/identity.hpp - telling brokers apart. Peers go by server ids, which operators choose and may
// repeat: a copied data directory, a cloned machine. Beside it each process has an instance id, by
// chance. Brokers that say none are known by their server id alone.
#pragma once
#include "options.hpp"
#include "shared/hint_json.hpp"
#include "shared/namesakes.hpp"

namespace queen::mesh {

enum class Kin {
    other,
    ourselves,
    namesake ///< another process with our server id
};

inline Kin kin_of(const hint_json::Reading& said, const Options& options) {
    if (said.instance().empty() || options.instance.empty()) {
        return said.server_id() == options.server_id ? Kin::ourselves : Kin::other;
    }
    if (said.instance() == options.instance) {
        return Kin::ourselves;
    }
    return said.server_id() == options.server_id ? Kin::namesake : Kin::other;
}

using shared::Namesakes;

} // namespace queen::mesh
