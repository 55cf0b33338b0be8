#include "sqlscan.hpp"

#include <algorithm>
#include <utility>

namespace queen::sqlscan {

using plugin::Pick;
using plugin::ReadyState;
using plugin::VerdictKind;

/// What a take offered. Token n is the n-th name, so that verdicts need no search.
struct SqlScan::OfferedNames final : plugin::Cookie {
    struct Name {
        std::string partition;
        bool settled = false;
    };
    std::vector<Name> names;
};

SqlScan::SqlScan(Options options, const Clock& clock, plugin::CandidateHost* host)
    : options_(options), clock_(clock), host_(host) {}

SqlScan::~SqlScan() = default;

plugin::Readiness SqlScan::peek(const plugin::Scope& scope) {
    plugin::Readiness found;
    found.state = ReadyState::ask_store;
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(mutex_);
    const auto queue = queues_.find(scope.queue.key);
    if (queue == queues_.end()) {
        return found;
    }
    const Group* group = find_group(queue->second, scope.group);
    for (const Hint& hint : queue->second.ring) {
        if ((group == nullptr || hint.sequence > group->seen) &&
            !held_back(group, hint.partition, now)) {
            ++found.partitions;
        }
    }
    if (group != nullptr) {
        for (const Again& again : group->again) {
            if (again.due <= now) {
                ++found.partitions;
            } else {
                found.next_due = std::min(found.next_due, again.due);
            }
        }
    }
    if (found.partitions > 0) {
        found.state = ReadyState::ready;
    }
    return found;
}

plugin::Selection SqlScan::take(const plugin::Take& take, plugin::Names& out) {
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(mutex_);
    const auto queue = queues_.find(take.scope.queue.key);
    if (queue == queues_.end()) {
        return scan(nullptr, now);
    }
    Hints& hints = queue->second;
    touch(hints);
    Group& group = group_of(hints, take.scope.group);
    if (take.round > 0 ||
        (group.names_in_a_row >= kNamesInARow && now - group.last_scan >= options_.scan_every)) {
        return scan(&group, now);
    }
    auto offered = std::make_unique<OfferedNames>();
    const auto room = [&] { return offered->names.size() < take.limit; };
    const auto offer = [&](std::string partition) {
        const bool more = out.add(partition, offered->names.size());
        offered->names.push_back({std::move(partition)});
        return more && room();
    };
    // First what the group knows of: it has waited longest.
    bool more = room();
    std::size_t kept = 0;
    for (Again& again : group.again) {
        if (more && again.due <= now) {
            more = offer(std::move(again.partition));
        } else if (Again& place = group.again[kept++]; &place != &again) {
            place = std::move(again);
        }
    }
    again_count_ -= group.again.size() - kept;
    group.again.resize(kept);
    const std::size_t from_again = offered->names.size();
    for (const Hint& hint : hints.ring) {
        if (!more) {
            break;
        }
        if (hint.sequence <= group.seen) {
            continue;
        }
        group.seen = hint.sequence;
        const auto known = [&](const OfferedNames::Name& name) {
            return name.partition == hint.partition;
        };
        if (!held_back(&group, hint.partition, now) &&
            std::none_of(offered->names.begin(),
                         offered->names.begin() + static_cast<std::ptrdiff_t>(from_again), known)) {
            more = offer(hint.partition);
        }
    }
    if (offered->names.empty()) {
        return scan(&group, now);
    }
    offered_ += offered->names.size();
    ++group.names_in_a_row;
    plugin::Selection selection;
    selection.pick = Pick::names;
    selection.cookie = std::move(offered);
    return selection;
}

void SqlScan::settle(const plugin::Scope& scope, std::unique_ptr<plugin::Cookie> cookie,
                     std::span<const plugin::Verdict> verdicts) {
    auto* offered = static_cast<OfferedNames*>(cookie.get());
    if (offered == nullptr) {
        return;
    }
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(mutex_);
    const auto queue = queues_.find(scope.queue.key);
    if (queue == queues_.end()) {
        return; // evicted meanwhile
    }
    Group* group = find_group(queue->second, scope.group);
    if (group == nullptr) {
        return;
    }
    // Who was served goes behind those who still wait: a partition with a huge backlog must not be
    // the first of every claim (K12).
    std::vector<const plugin::Verdict*> served;
    for (const plugin::Verdict& verdict : verdicts) {
        if (verdict.token >= offered->names.size()) {
            continue;
        }
        auto& name = offered->names[verdict.token];
        if (name.partition != verdict.partition || std::exchange(name.settled, true)) {
            continue; // a partition that the store found itself
        }
        switch (verdict.kind) {
        case VerdictKind::empty:
            break;
        case VerdictKind::took_acked:
        case VerdictKind::took_leased:
            if (!verdict.drained) {
                served.push_back(&verdict);
            }
            break;
        case VerdictKind::leased:
            offer_again(*group, name.partition, verdict.partition_id, verdict.until);
            break;
        case VerdictKind::requeue:
            offer_again(*group, name.partition, verdict.partition_id, now);
            break;
        }
    }
    for (const auto& name : offered->names) {
        if (!name.settled) { // not evaluated
            offer_again(*group, name.partition, {}, now);
        }
    }
    for (const plugin::Verdict* verdict : served) {
        offer_again(*group, verdict->partition, verdict->partition_id,
                    verdict->kind == VerdictKind::took_leased ? verdict->until : now);
    }
}

void SqlScan::mark(const plugin::Queue& queue, std::string_view group, plugin::Origin /*origin*/,
                   std::span<const plugin::Mark> marks) {
    const SteadyTime now = clock_.now();
    const std::lock_guard lock(mutex_);
    Hints& hints = hints_of(queue);
    if (group.empty()) {
        // Of a batch larger than the ring only the last names would stay.
        for (const plugin::Mark& mark : marks.last(std::min(marks.size(), options_.hints))) {
            hint(hints, mark.partition);
        }
        return;
    }
    Group& one = group_of(hints, group);
    for (const plugin::Mark& mark : marks) {
        offer_again(one, mark.partition, mark.partition_id, now);
    }
}

void SqlScan::released(const plugin::Queue& queue, std::string_view group, const Uuid& partition_id,
                       bool /*covered*/) {
    bool promoted = false;
    {
        const SteadyTime now = clock_.now();
        const std::lock_guard lock(mutex_);
        const auto found = queues_.find(queue.key);
        Group* one = found == queues_.end() ? nullptr : find_group(found->second, group);
        if (one == nullptr || !partition_id.known()) {
            return;
        }
        for (Again& again : one->again) {
            if (again.partition_id == partition_id && again.due > now) {
                again.due = now;
                promoted = true;
            }
        }
    }
    if (promoted && host_ != nullptr) {
        host_->wake(queue, group, 1);
    }
}

void SqlScan::forget(std::string_view tenant, std::string_view queue, std::string_view group) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> whole;
    for (auto& [key, hints] : queues_) {
        if (hints.tenant != tenant || (!queue.empty() && hints.name != queue)) {
            continue;
        }
        if (group.empty()) {
            whole.push_back(key);
            continue;
        }
        Group& one = group_of(hints, group);
        drop_again(one);
        one.seen = sequence_;
    }
    for (const std::string& key : whole) {
        drop_queue(key);
    }
}

void SqlScan::stats(plugin::Stats& out) {
    const std::lock_guard lock(mutex_);
    std::size_t hints = 0, groups = 0;
    for (const auto& [key, queue] : queues_) {
        hints += queue.ring.size();
        groups += queue.groups.size();
    }
    out.add("queues", static_cast<double>(queues_.size()));
    out.add("groups", static_cast<double>(groups));
    out.add("hints", static_cast<double>(hints));
    out.add("names_to_offer_again", static_cast<double>(again_count_));
    out.add("names_offered_total", static_cast<double>(offered_));
    out.add("scans_total", static_cast<double>(scans_));
    out.add("queues_evicted_total", static_cast<double>(evicted_));
}

// ---- below, mutex_ is held ----------------------------------------------------------------------

SqlScan::Hints& SqlScan::hints_of(const plugin::Queue& queue) {
    if (const auto found = queues_.find(queue.key); found != queues_.end()) {
        touch(found->second);
        return found->second;
    }
    if (queues_.size() >= options_.queues) {
        drop_queue(ages_.front());
        ++evicted_;
    }
    const auto made = queues_.try_emplace(std::string(queue.key)).first;
    Hints& hints = made->second;
    hints.tenant = queue.tenant;
    hints.name = queue.name;
    hints.age = ages_.insert(ages_.end(), made->first); // keys of a node map never move
    return hints;
}

plugin::Selection SqlScan::scan(Group* group, SteadyTime now) {
    ++scans_;
    if (group != nullptr) {
        group->last_scan = now;
        group->names_in_a_row = 0;
    }
    plugin::Selection selection;
    selection.pick = Pick::scan;
    return selection;
}

void SqlScan::touch(Hints& hints) {
    ages_.splice(ages_.end(), ages_, hints.age);
}

void SqlScan::drop_queue(std::string_view key) {
    const auto found = queues_.find(key);
    for (auto& [name, group] : found->second.groups) {
        drop_again(group);
    }
    ages_.erase(found->second.age);
    queues_.erase(found);
}

void SqlScan::drop_again(Group& group) {
    again_count_ -= group.again.size();
    group.again.clear();
}

SqlScan::Group* SqlScan::find_group(Hints& hints, std::string_view group) {
    const auto found = hints.groups.find(group);
    return found == hints.groups.end() ? nullptr : &found->second;
}

SqlScan::Group& SqlScan::group_of(Hints& hints, std::string_view name) {
    if (Group* known = find_group(hints, name)) {
        known->used = ++turn_;
        return *known;
    }
    if (hints.groups.size() >= kMostGroups) {
        const auto oldest = std::min_element(
            hints.groups.begin(), hints.groups.end(),
            [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
        drop_again(oldest->second);
        hints.groups.erase(oldest);
    }
    Group& made = hints.groups[std::string(name)];
    made.used = ++turn_;
    made.last_scan = clock_.now();
    return made;
}

void SqlScan::hint(Hints& hints, std::string_view partition) {
    const std::size_t hash = TextHash{}(partition);
    const auto same = std::find_if(hints.ring.begin(), hints.ring.end(), [&](const Hint& known) {
        return known.hash == hash && known.partition == partition;
    });
    if (same != hints.ring.end()) {
        // To the end, whole: every group sees it once more.
        std::rotate(same, same + 1, hints.ring.end());
        hints.ring.back().sequence = ++sequence_;
        return;
    }
    if (hints.ring.size() >= options_.hints) {
        hints.ring.pop_front();
    }
    hints.ring.push_back({++sequence_, hash, std::string(partition)});
}

void SqlScan::offer_again(Group& group, std::string_view partition, const Uuid& id,
                          SteadyTime due) {
    for (Again& known : group.again) {
        if (known.partition == partition) {
            known.due = due;
            if (id.known()) {
                known.partition_id = id;
            }
            return;
        }
    }
    if (group.again.size() >= options_.hints || again_count_ >= kMostAgain) {
        return; // a scan finds it
    }
    group.again.push_back({std::string(partition), id, due});
    ++again_count_;
}

/// True for a partition that the group waits for and whose release will be told: offering it
/// before is a wasted claim. Without an id the release cannot be matched, so it is offered.
bool SqlScan::held_back(const Group* group, std::string_view partition, SteadyTime now) const {
    return group != nullptr &&
           std::any_of(group->again.begin(), group->again.end(), [&](const Again& again) {
               return again.partition == partition && again.due > now && again.partition_id.known();
           });
}

} // namespace queen::sqlscan
