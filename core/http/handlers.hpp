#pragma once
#include "http/call.hpp"

#include <memory>

namespace queen::http {

/// What a route does once it was matched. Runs on a worker; answers now or later through the call.
/// Nothing here waits for I/O.
using Handle = void (*)(const std::shared_ptr<Call>& call);

void push(const std::shared_ptr<Call>& call);
void pop_wildcard(const std::shared_ptr<Call>& call);
void pop_pinned(const std::shared_ptr<Call>& call);
void pop_discovery(const std::shared_ptr<Call>& call);
void ack_one(const std::shared_ptr<Call>& call);
void ack_batch(const std::shared_ptr<Call>& call);
void extend_lease(const std::shared_ptr<Call>& call);
void configure(const std::shared_ptr<Call>& call);
void list_queues(const std::shared_ptr<Call>& call);
void list_namespaces(const std::shared_ptr<Call>& call);
void list_tasks(const std::shared_ptr<Call>& call);
void overview(const std::shared_ptr<Call>& call);
void queue_detail(const std::shared_ptr<Call>& call);
void queue_depth(const std::shared_ptr<Call>& call);
void queue_sizes(const std::shared_ptr<Call>& call);
void delete_queue(const std::shared_ptr<Call>& call);
void health(const std::shared_ptr<Call>& call);
void status(const std::shared_ptr<Call>& call);
void candidates(const std::shared_ptr<Call>& call);
void metrics(const std::shared_ptr<Call>& call);
void metrics_prometheus(const std::shared_ptr<Call>& call);
void openapi(const std::shared_ptr<Call>& call);

} // namespace queen::http
