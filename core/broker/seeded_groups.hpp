#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace queen::broker {

/// Which (tenant, queue, group) have made first contact, and whether they conflate (CF-1). Positive
/// knowledge only: unknown means the wildcard procedure, which provisions, registers and seeds
/// (SV-2). The store says when the marker is gone (PopResult::seeded).
/// Locks: `mutex_` is a leaf.
/// @thread any
class SeededGroups {
public:
    /// Whether the group conflates; nullopt: no first contact.
    std::optional<bool> conflates(const std::string& queue_key, const std::string& group) const;
    void add(const std::string& queue_key, const std::string& group, bool conflates);
    void forget(const std::string& queue_key, const std::string& group);
    void forget(const std::string& queue_key);

private:
    static constexpr std::size_t kMaxGroups = 100'000; ///< beyond: start over, one scan per group
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::unordered_map<std::string, bool>> groups_;
    std::size_t size_ = 0;
};

} // namespace queen::broker
