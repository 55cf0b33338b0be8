#pragma once
#include "base/result.hpp"
#include "model/encryption.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace queen::broker {

/// How frames are packed for a queue, and how often that had to change.
struct SegmentForm {
    bool encrypted = false;
    int changes = 0;
};

/// The broker's key, and which queues want their payloads encrypted as far as the store has told.
/// That is a hint: it spares packing a segment twice. The store refuses every segment whose form is
/// not the queue's, so a stale hint costs one round trip and never stores clear text (ENC-5).
/// Locks: `mutex_` is a leaf.
/// @thread any
class Encryption {
public:
    /// @param cipher null: the broker has no key
    explicit Encryption(std::shared_ptr<const Cipher> cipher = {}) : cipher_(std::move(cipher)) {}

    const Cipher* cipher() const noexcept { return cipher_.get(); }
    /// Never without a key.
    bool wanted(std::string_view tenant, std::string_view queue) const;
    void learn(std::string_view tenant, std::string_view queue, bool wanted);
    /// The store refused a segment, which is to be packed again as the queue wants it. How often
    /// that is tried has a bound: each time a configure went in between.
    /// @param form changed, unless it fails
    /// @errors conflict: the queue is encrypted and there is no key; transient: the bound
    Result<void> change(SegmentForm& form, std::string_view tenant, std::string_view queue,
                        bool wanted);
    /// One without a key in place of none.
    static std::shared_ptr<Encryption> or_none(std::shared_ptr<Encryption> encryption);

private:
    /// Beyond it everything is forgotten, which costs each queue a round trip. A guess.
    static constexpr std::size_t kMaxQueues = 100'000;
    static constexpr int kFormChanges = 4;

    const std::shared_ptr<const Cipher> cipher_;
    mutable std::mutex mutex_;
    std::unordered_set<std::string> queues_;
};

} // namespace queen::broker
