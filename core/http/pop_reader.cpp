#include "http/pop_reader.hpp"

#include "http/request_names.hpp"
#include "model/names.hpp"

#include <algorithm>
#include <string>

namespace queen::http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPartitionsAllowed = "a whole number from 1 to 1000";
static_assert(kMaxPartitions == 1'000);

// A number that must lie in [min, max]; the fallback when it is not given.
Result<std::int32_t> bounded(const Query& query, std::string_view name, std::int32_t fallback,
                             std::int32_t min, std::int32_t max) {
    const std::string allowed =
        "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    const auto value = query.integer(name, allowed);
    if (!value) {
        return fail(value.error());
    }
    if (!*value) {
        return fallback;
    }
    if (**value < min || **value > max) {
        return fail(not_allowed(name, allowed, std::to_string(**value)));
    }
    return **value;
}

Result<void> read_numbers(const Query& query, const settings::Settings& settings,
                          broker::PopRequest& request) {
    // A batch below 1 is 1 by contract, so its lower bound is that of the type.
    const auto batch = query.integer("batch", "a whole number from 1 to 10000");
    if (!batch) {
        return fail(batch.error());
    }
    request.batch =
        std::max(batch->value_or(static_cast<std::int32_t>(settings.pop.default_batch)), 1);
    if (request.batch > kMaxBatch) {
        return fail(
            not_allowed("batch", "a whole number from 1 to 10000", std::to_string(request.batch)));
    }
    const auto partitions = query.integer("partitions", kPartitionsAllowed);
    if (!partitions) {
        return fail(partitions.error());
    }
    if (*partitions && (**partitions < 1 || **partitions > kMaxPartitions)) {
        return fail(not_allowed("partitions", kPartitionsAllowed, std::to_string(**partitions)));
    }
    // Of a group that conflates each message comes from another partition.
    request.partitions = partitions->value_or(
        request.conflation.value_or(false) ? std::min(request.batch, broker::kMostChosenPartitions)
                                           : 1);
    if (request.autopilot) {
        request.autopilot = broker::Autopilot{
            .batch = !*batch,
            .partitions = !*partitions && request.shape != broker::PopRequest::Shape::pinned};
    }
    const auto lease = bounded(query, "leaseSeconds", 0, 0, kMaxLeaseSeconds);
    if (!lease) {
        return fail(lease.error());
    }
    request.lease_seconds = *lease;
    const auto timeout =
        query.integer("timeout", "a whole number of milliseconds, at most 2147483647");
    if (!timeout) {
        return fail(timeout.error());
    }
    request.timeout = *timeout ? milliseconds{**timeout} : settings.pop.default_timeout;
    request.timeout = std::min(request.timeout, settings.limits.max_wait);
    return {};
}

Result<void> read_switches(const Query& query, broker::PopRequest& request) {
    const auto auto_ack = query.boolean("autoAck");
    if (!auto_ack) {
        return fail(auto_ack.error());
    }
    request.auto_ack = auto_ack->value_or(false);
    const auto wait = query.boolean("wait");
    if (!wait) {
        return fail(wait.error());
    }
    request.wait = wait->value_or(false);
    const auto conflation = query.boolean("conflation");
    if (!conflation) {
        return fail(conflation.error());
    }
    request.conflation = *conflation;
    const auto autopilot = query.boolean("autopilot");
    if (!autopilot) {
        return fail(autopilot.error());
    }
    // A discovery spans queues, and nothing tells what is ready in all of them.
    if (autopilot->value_or(false) && request.shape != broker::PopRequest::Shape::discovery) {
        request.autopilot = broker::Autopilot{};
    }
    return {};
}

Result<void> read_group_and_subscription(const Query& query, const settings::Settings& settings,
                                         broker::PopRequest& request) {
    const auto group = query.text("consumerGroup");
    if (!group) {
        return fail(group.error());
    }
    auto name = read_group(group->value_or(std::string_view()));
    if (!name) {
        return fail(name.error());
    }
    request.group = std::move(*name);
    const auto mode = query.text("subscriptionMode");
    if (!mode) {
        return fail(mode.error());
    }
    const auto from = query.text("subscriptionFrom");
    if (!from) {
        return fail(from.error());
    }
    const auto subscription =
        parse_subscription(mode->value_or(std::string_view()), from->value_or(std::string_view()),
                           settings.pop.default_subscription);
    if (!subscription) {
        return fail(subscription.error());
    }
    // Queue mode begins at everything retained, whatever the parameters say.
    request.subscription = request.group == kQueueModeGroup ? Subscription{} : *subscription;
    return {};
}

Result<void> read_labels(const Query& query, broker::PopRequest& request) {
    for (const auto& [name, label] :
         {std::pair{"namespace", &request.ns}, {"task", &request.task}}) {
        const auto text = query.text(name);
        if (!text) {
            return fail(text.error());
        }
        auto read = read_label(name, text->value_or(std::string_view()));
        if (!read) {
            return fail(read.error());
        }
        *label = std::move(*read);
    }
    return {};
}

} // namespace

Result<broker::PopRequest> read_pop(const PopTarget& target, const Query& query,
                                    const settings::Settings& settings) {
    broker::PopRequest request;
    request.shape = target.shape;
    request.tenant = target.tenant;
    request.queue = target.queue;
    request.partition = target.partition;
    if (auto ok = read_switches(query, request); !ok) { // before the numbers, which depend on them
        return fail(ok.error());
    }
    if (auto ok = read_numbers(query, settings, request); !ok) {
        return fail(ok.error());
    }
    if (auto ok = read_group_and_subscription(query, settings, request); !ok) {
        return fail(ok.error());
    }
    if (request.shape == broker::PopRequest::Shape::discovery) {
        if (auto ok = read_labels(query, request); !ok) {
            return fail(ok.error());
        }
    }
    if (auto ok = check_fit(request.tenant, request.queue, request.group, request.partition); !ok) {
        return fail(ok.error());
    }
    if (request.timeout <= milliseconds{0}) {
        request.wait = false;
        request.timeout = milliseconds{0};
    }
    return request;
}

} // namespace queen::http
