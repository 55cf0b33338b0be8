// http/pop_handler.cpp - one pop, from its parameters to the answer's last byte.
//
// A batch is owed to the peer until the front has handed all of the answer to the kernel. When the
// peer is gone before that, or the batch cannot be rendered, a leased batch is handed back (GB-1);
// what autoAck consumed is gone, which is what at-most-once means. A waiting pop is given up as
// soon as the peer goes.
#include "base/json.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/pop_reader.hpp"
#include "http/pop_writer.hpp"
#include "model/names.hpp"

#include <Poco/Logger.h>

#include <iterator>
#include <optional>
#include <string_view>

namespace queen::http {
namespace {

using Shape = broker::PopRequest::Shape;

Reply nothing() {
    Reply reply;
    reply.status = 204;
    return reply;
}

// Pops are in maintenance. Who asked for the newest messages only is told so: to them 204 would
// mean that they have the newest.
Reply paused(const broker::PopRequest& request) {
    if (!request.conflation.value_or(false)) {
        return nothing();
    }
    Reply reply;
    json::Writer(reply.body)
        .begin_object()
        .key("messages")
        .begin_array()
        .end_array()
        .key("paused")
        .boolean(true)
        .key("conflation")
        .boolean(true)
        .end_object();
    return reply;
}

// An empty pop is 204, unless there is something to say of conflation: consumers that conflate take
// an answer without it for a broker that cannot.
Reply nothing(const broker::PopRequest& request, const broker::PopBatch& batch) {
    return batch.conflates || batch.conflict ? json_reply(render_empty_pop(request, batch))
                                             : nothing();
}

// What a pop that cannot be meant is told, in the shape of an answer.
Reply refused(std::string_view why) {
    Reply reply;
    reply.status = 400;
    json::Writer(reply.body)
        .begin_object()
        .key("success")
        .boolean(false)
        .key("error")
        .string(why)
        .key("code")
        .string("bad_request")
        .key("messages")
        .begin_array()
        .end_array()
        .end_object();
    return reply;
}

Reply pop_failed(const Error& error) {
    Reply reply;
    reply.status = 500;
    json::Writer(reply.body)
        .begin_object()
        .key("error")
        .string("pop failed")
        .key("code")
        .string(rule_for(error.code).code)
        .key("detail")
        .string(error.message)
        .end_object();
    return reply;
}

Reply failure(const Error& error) {
    switch (error.code) {
    case Errc::timeout:
    case Errc::transient:
    case Errc::store_failed:
    case Errc::corrupt:
    case Errc::internal:
        return pop_failed(error);
    case Errc::invalid_argument:
    case Errc::name_too_long:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::unavailable:
    case Errc::unsupported:
    case Errc::overloaded:
    case Errc::too_large:
    case Errc::shutting_down:
        return error_reply(error);
    }
    return error_reply(error); // a number outside the enum
}

// Takes the partitions from `first` on out of the batch; they keep its lease.
broker::PopBatch split_off(broker::PopBatch& batch, std::size_t first) {
    broker::PopBatch rest;
    rest.lease_id = batch.lease_id;
    const auto at = batch.partitions.begin() + static_cast<std::ptrdiff_t>(first);
    rest.partitions.assign(std::make_move_iterator(at),
                           std::make_move_iterator(batch.partitions.end()));
    batch.partitions.erase(at, batch.partitions.end());
    return rest;
}

void answer(const std::shared_ptr<Call>& call, const std::shared_ptr<broker::PopRequest>& request,
            Result<broker::PopBatch> outcome) {
    if (!outcome) {
        call->reply(failure(outcome.error()));
        return;
    }
    if (outcome->partitions.empty()) {
        call->guard(
            [&] { call->reply(outcome->paused ? paused(*request) : nothing(*request, *outcome)); });
        return;
    }
    const Services& services = call->services();
    auto batch = std::make_shared<broker::PopBatch>(std::move(*outcome));
    const auto limit = static_cast<std::size_t>(services.settings.limits.answer_bytes);
    Result<PopAnswer> rendered = fail(Errc::internal, "the answer could not be rendered");
    call->guard([&] { rendered = render_pop(*request, *batch, limit, services.cipher); });
    if (!rendered) {
        Poco::Logger::get("http").error("pop failed queue=\"" + request->queue + "\" group=\"" +
                                        request->group + "\" reason=\"" + rendered.error().message +
                                        "\"");
        services.pop.undelivered(*request, *batch);
        call->reply(pop_failed(rendered.error()));
        return;
    }
    if (rendered->body.empty()) { // claimed partitions without a single message
        services.pop.undelivered(*request, *batch);
        call->guard([&] { call->reply(nothing(*request, *batch)); });
        return;
    }
    if (rendered->partitions < batch->partitions.size()) {
        services.pop.undelivered(*request, split_off(*batch, rendered->partitions));
    }
    for (std::size_t i = 0; i < rendered->partitions; ++i) { // before its ack can come
        services.acks.delivered(request->tenant, request->group, batch->lease_id,
                                batch->partitions[i], std::move(rendered->hashes[i]));
    }
    for (PoppedPartition& partition : batch->partitions) {
        for (PoppedSegment& segment : partition.segments) {
            std::string().swap(segment.blob); // rendered; a hand-back needs the addresses only
        }
    }
    // Not the call: the exchange keeps this function, and the call keeps the exchange.
    call->reply(json_reply(std::move(rendered->body)), [services = &services, request, batch] {
        services->workers.post(
            [services, request, batch] { services->pop.undelivered(*request, *batch); });
    });
}

// Why a request that can be read is refused all the same.
std::optional<std::string_view> refusal_of(const broker::PopRequest& request) {
    if (request.shape == Shape::discovery && request.ns.empty() && request.task.empty()) {
        return "namespace or task is required";
    }
    if (request.conflation.value_or(false) && request.group == kQueueModeGroup) {
        return "conflation requires consumerGroup: queue mode delivers every message";
    }
    if (request.conflation.value_or(false) && request.auto_ack) {
        return "conflation cannot be combined with autoAck: what was skipped would be gone before "
               "the newest message is known to be handled";
    }
    return std::nullopt;
}

void pop(const std::shared_ptr<Call>& call, const PopTarget& target) {
    auto read = read_pop(target, call->query(), call->services().settings);
    if (!read) {
        call->reply(error_reply(read.error()));
        return;
    }
    if (const auto why = refusal_of(*read)) {
        call->reply(refused(*why));
        return;
    }
    if (call->exchange().gone()) { // while it queued for a worker: take nothing for nobody
        call->reply(nothing());
        return;
    }
    const bool wait = read->wait;
    auto request = std::make_shared<broker::PopRequest>(std::move(*read));
    auto waiting =
        call->services().pop.pop(*request, [call, request](Result<broker::PopBatch> outcome) {
            answer(call, request, std::move(outcome));
        });
    if (wait && waiting) {
        // Weak: the pop keeps the call, so a watch that kept the pop would hide from the front that
        // a call was lost, and its client would wait for ever.
        call->exchange().watch([pop = std::weak_ptr(waiting), workers = &call->services().workers] {
            workers->post([pop] {
                if (const auto parked = pop.lock()) {
                    parked->abandon();
                }
            });
        });
    }
}

} // namespace

void pop_wildcard(const std::shared_ptr<Call>& call) {
    pop(call, {Shape::wildcard, call->tenant(), call->parameter("queue"), {}});
}

void pop_pinned(const std::shared_ptr<Call>& call) {
    pop(call,
        {Shape::pinned, call->tenant(), call->parameter("queue"), call->parameter("partition")});
}

void pop_discovery(const std::shared_ptr<Call>& call) {
    pop(call, {Shape::discovery, call->tenant(), {}, {}});
}

} // namespace queen::http
