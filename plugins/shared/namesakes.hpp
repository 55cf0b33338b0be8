// shared/namesakes.hpp - who was told of for sharing a server id with another broker.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace queen::shared {

/// Instances, each told of once.
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

} // namespace queen::shared
