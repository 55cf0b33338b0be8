#pragma once
#include "settings/settings.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace queen::settings::testing {

using Overrides = std::map<std::string, std::string>;

/// An environment in which nothing about the machine matters.
inline Environment quiet() {
    return {{"HOME", "/home/ada"}, {"HOSTNAME", "alpha"}};
}

inline Environment with(Environment more) {
    more.merge(quiet());
    return more;
}

/// What loading must refuse, one problem a line.
inline std::string faults(const std::string& yaml, const Environment& env = quiet(),
                          const Overrides& overrides = {}) {
    const auto loaded = load_text("q.yaml", yaml, env, overrides);
    if (loaded) {
        return "(accepted)\n";
    }
    std::string out;
    for (const std::string& problem : loaded.error()) {
        out += problem + "\n";
    }
    return out;
}

/// What loading must accept.
inline Loaded accepted(const std::string& yaml, const Environment& env = quiet(),
                       const Overrides& overrides = {}) {
    auto loaded = load_text("q.yaml", yaml, env, overrides);
    if (!loaded) {
        ADD_FAILURE() << faults(yaml, env, overrides);
        return {};
    }
    return std::move(*loaded);
}

inline Effective effective(const Loaded& loaded, const std::string& name) {
    for (const Effective& entry : loaded.effective) {
        if (entry.name == name) {
            return entry;
        }
    }
    ADD_FAILURE() << "no effective value of " << name;
    return {};
}

} // namespace queen::settings::testing
