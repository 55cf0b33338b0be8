#include "broker/pending_probe.hpp"

#include "broker/parking.hpp"
#include "broker/pop.hpp"
#include "model/names.hpp"

#include <utility>

namespace queen::broker {
namespace {

/// Names an untrusted client can invent are not remembered without bound.
constexpr std::size_t kMaxAsked = 100'000;

std::string key_of(const PendingQuery& query) {
    auto key = queue_key(query.tenant, query.queue);
    key.append(1, kKeySeparator);
    key.append(scope_member(query.group, query.partition, query.labels));
    return key;
}

} // namespace

PendingQuery pending_query(const PopRequest& request) {
    PendingQuery query{.tenant = request.tenant,
                       .queue = request.queue,
                       .group = request.group,
                       .partition = {},
                       .labels = {}};
    if (request.shape == PopRequest::Shape::pinned) {
        query.partition = request.partition;
    } else if (request.shape == PopRequest::Shape::discovery) {
        query.labels = {request.ns, request.task};
    }
    return query;
}

PendingProbe::PendingProbe(Store& store, const Clock& clock, std::chrono::milliseconds wait,
                           metrics::PopCounters& counters)
    : store_(store), clock_(clock), wait_(wait), counters_(counters) {}

void PendingProbe::ask(const PendingQuery& query, Answer answer) {
    const auto key = key_of(query);
    {
        const std::lock_guard lock(mutex_);
        const auto [at, started] = running_.try_emplace(key);
        if (!started) {
            at->second.next.push_back(std::move(answer));
            return;
        }
        at->second.now.push_back(std::move(answer));
    }
    run(key, query);
}

void PendingProbe::run(const std::string& key, const PendingQuery& query) {
    store_.has_pending(clock_.now() + wait_, query, [this, key, query](const Result<bool>& result) {
        (!result   ? counters_.probes_failed
         : *result ? counters_.probes_pending
                   : counters_.probes_none)
            .add();
        std::vector<Answer> answers;
        bool again = false;
        {
            const std::lock_guard lock(mutex_);
            const auto at = running_.find(key);
            answers = std::move(at->second.now);
            at->second.now = std::exchange(at->second.next, {});
            again = !at->second.now.empty();
            if (!again) {
                running_.erase(at);
            }
        }
        if (again) {
            run(key, query);
        }
        for (const auto& answer : answers) {
            answer(result);
        }
    });
}

bool PendingProbe::due(const PendingQuery& query, std::chrono::milliseconds interval) {
    const auto now = clock_.now();
    const std::lock_guard lock(mutex_);
    if (asked_.size() >= kMaxAsked) {
        asked_.clear(); // costs one early probe per scope
    }
    const auto [at, fresh] = asked_.try_emplace(key_of(query), now);
    if (!fresh && now - at->second < interval) {
        return false;
    }
    at->second = now;
    return true;
}

void PendingProbe::found(const PendingQuery& query) {
    const std::lock_guard lock(mutex_);
    asked_.erase(key_of(query));
}

} // namespace queen::broker
