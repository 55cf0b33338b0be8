#include "broker/encryption.hpp"

#include "model/names.hpp"

namespace queen::broker {

bool Encryption::wanted(std::string_view tenant, std::string_view queue) const {
    if (!cipher_) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    return !queues_.empty() && queues_.contains(queue_key(tenant, queue));
}

void Encryption::learn(std::string_view tenant, std::string_view queue, bool wanted) {
    if (!cipher_) {
        return;
    }
    auto key = queue_key(tenant, queue);
    const std::lock_guard lock(mutex_);
    if (!wanted) {
        queues_.erase(key);
        return;
    }
    if (queues_.size() >= kMaxQueues) {
        queues_.clear();
    }
    queues_.insert(std::move(key));
}

} // namespace queen::broker
