#pragma once
#include "broker/announce.hpp"
#include "broker/pop.hpp"
#include "ports/store.hpp"

#include <optional>
#include <string>

namespace queen::broker {

/// Queues as resources. JSON in and out is the store's (http-api 2.6, 2.7 shapes).
/// @thread worker
class Admin {
public:
    Admin(Store& store, Pop& pop, Announcer& announcer, const Clock& clock,
          std::chrono::milliseconds wait);
    /// Sources hear the new delay and window before `done` does.
    /// @param options_json one object of checked options, with "mode", "namespace", "task"
    void configure(std::string tenant, std::string queue, std::string options_json,
                   Done<std::string> done);
    void delete_queue(std::string tenant, std::string queue, Done<bool> done);
    void queue_detail(std::string tenant, std::string queue, Done<std::optional<std::string>> done);
    void list_queues(std::string tenant, Done<std::string> done);
    void ping(Done<void> done);

private:
    Store& store_;
    Pop& pop_;
    Announcer& announcer_;
    const Clock& clock_;
    std::chrono::milliseconds wait_;
};

} // namespace queen::broker
