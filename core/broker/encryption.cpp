#include "broker/encryption.hpp"

#include "model/names.hpp"

#include <utility>

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

Result<void> Encryption::change(SegmentForm& form, std::string_view tenant, std::string_view queue,
                                bool wanted) {
    learn(tenant, queue, wanted);
    if (wanted && !cipher_) {
        return fail(Errc::conflict, "the queue is encrypted and this broker has no encryption key");
    }
    if (form.changes++ >= kFormChanges) {
        return fail(Errc::transient, "the queue's encryption is being changed; try again");
    }
    form.encrypted = wanted;
    return {};
}

std::shared_ptr<Encryption> Encryption::or_none(std::shared_ptr<Encryption> encryption) {
    return encryption ? std::move(encryption) : std::make_shared<Encryption>();
}

} // namespace queen::broker
