#pragma once
#include "http/call.hpp"

#include <memory>

namespace queen::http {

// What routes do, each a Handle (route_table.hpp).
void push(const std::shared_ptr<Call>& call);
void pop_wildcard(const std::shared_ptr<Call>& call);
void pop_pinned(const std::shared_ptr<Call>& call);
void pop_discovery(const std::shared_ptr<Call>& call);
void ack_one(const std::shared_ptr<Call>& call);
void ack_batch(const std::shared_ptr<Call>& call);
void transaction(const std::shared_ptr<Call>& call);
void extend_lease(const std::shared_ptr<Call>& call);
void configure(const std::shared_ptr<Call>& call);
void list_queues(const std::shared_ptr<Call>& call);
void list_namespaces(const std::shared_ptr<Call>& call);
void list_tasks(const std::shared_ptr<Call>& call);
void overview(const std::shared_ptr<Call>& call);
void queue_detail(const std::shared_ptr<Call>& call);
void queue_depth(const std::shared_ptr<Call>& call);
void queue_sizes(const std::shared_ptr<Call>& call);
void list_groups(const std::shared_ptr<Call>& call);
void lagging_groups(const std::shared_ptr<Call>& call);
void group_detail(const std::shared_ptr<Call>& call);
void delete_group(const std::shared_ptr<Call>& call);
void delete_group_in_queue(const std::shared_ptr<Call>& call);
void subscribe_group(const std::shared_ptr<Call>& call);
void seek_group(const std::shared_ptr<Call>& call);
void seek_partition(const std::shared_ptr<Call>& call);
void delete_queue(const std::shared_ptr<Call>& call);
void list_messages(const std::shared_ptr<Call>& call);
void message_detail(const std::shared_ptr<Call>& call);
void delete_message(const std::shared_ptr<Call>& call);
void retry_message(const std::shared_ptr<Call>& call);
void list_letters(const std::shared_ptr<Call>& call);
void purge_letters(const std::shared_ptr<Call>& call);
void replay_letter(const std::shared_ptr<Call>& call);
void change_timers(const std::shared_ptr<Call>& call);
void list_timers(const std::shared_ptr<Call>& call);
void peek_timer(const std::shared_ptr<Call>& call);
void cancel_timer(const std::shared_ptr<Call>& call);
void auth_login(const std::shared_ptr<Call>& call);
void auth_logout(const std::shared_ptr<Call>& call);
void auth_me(const std::shared_ptr<Call>& call);
void health(const std::shared_ptr<Call>& call);
void get_maintenance(const std::shared_ptr<Call>& call);
void set_maintenance(const std::shared_ptr<Call>& call);
void get_pop_maintenance(const std::shared_ptr<Call>& call);
void set_pop_maintenance(const std::shared_ptr<Call>& call);
void get_kv_timers(const std::shared_ptr<Call>& call);
void set_kv_timers(const std::shared_ptr<Call>& call);
void shared_state(const std::shared_ptr<Call>& call);
void refresh_statistics(const std::shared_ptr<Call>& call);
void status(const std::shared_ptr<Call>& call);
void candidates(const std::shared_ptr<Call>& call);
void mesh(const std::shared_ptr<Call>& call);
void metrics(const std::shared_ptr<Call>& call);
void metrics_prometheus(const std::shared_ptr<Call>& call);
void openapi(const std::shared_ptr<Call>& call);

} // namespace queen::http
