#pragma once
#include "broker/announce.hpp"
#include "broker/figure_reads.hpp"
#include "broker/pop.hpp"
#include "ports/store.hpp"

#include <optional>
#include <string>

namespace queen::broker {

/// Queues as resources. JSON in and out is the store's; docs/http-api.md shows it. Whatever is
/// counted goes through FigureReads.
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
    // Nothing: there is no such queue.
    void queue_detail(const std::string& tenant, const std::string& queue,
                      const PartitionPage& page, Done<std::optional<std::string>> done);
    /// @param group nullopt: the queue as a whole
    void queue_depth(const std::string& tenant, const std::string& queue,
                     const std::optional<std::string>& group, const PartitionPage& page,
                     Done<std::optional<std::string>> done);
    void queue_sizes(const std::string& tenant, const std::string& queue, const PartitionPage& page,
                     Done<std::optional<std::string>> done);
    // Never nothing.
    void list_queues(const std::string& tenant, Done<std::optional<std::string>> done);
    void list_labels(const std::string& tenant, Label label, Done<std::optional<std::string>> done);
    void overview(const std::string& tenant, Done<std::optional<std::string>> done);
    void ping(Done<void> done);
    /// For those who count beside it: all of them together are bounded.
    FigureReads& figures() noexcept { return figures_; }

private:
    Store& store_;
    Pop& pop_;
    Announcer& announcer_;
    const Clock& clock_;
    std::chrono::milliseconds wait_;
    FigureReads figures_;
};

} // namespace queen::broker
