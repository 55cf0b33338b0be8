// ports/form_store.hpp - how queues want payloads stored. Asynchronous as ports/store.hpp is.
#pragma once
#include "ports/store.hpp"

#include <string>
#include <vector>

namespace queen {

/// @thread any. Every error is a value; no call throws.
class FormStore {
public:
    virtual ~FormStore() = default;
    /// Whether each queue's payloads are to be encrypted, as it is now; not those of a queue that
    /// does not exist (queues_encrypted_v1). In the lane of pushes.
    virtual void encrypted(SteadyTime deadline, std::string tenant, std::vector<std::string> queues,
                           Done<std::vector<bool>> done) = 0;
};

} // namespace queen
