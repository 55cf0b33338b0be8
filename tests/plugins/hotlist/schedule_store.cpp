#include "schedule_store.hpp"

#include <algorithm>

namespace queen::hotlist::schedule {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kLockedRow = 250ms; ///< CL-12: a row that was skipped because it is locked

/// Grows: the order of the ids is the order in which partitions were made.
Uuid uuid(std::uint64_t number) {
    Uuid id;
    for (std::size_t i = 0; i < 8; ++i) {
        id.bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
    }
    return id;
}

} // namespace

struct Store::Cursor {
    std::int64_t committed = -1;
    std::uint64_t worker = 0; ///< 0: nobody
    DbTime expires{};
    std::int64_t batch_end = -1;

    bool held(DbTime now) const { return worker != 0 && expires >= now; }
};

struct Store::Partition {
    std::string name;
    Uuid id;
    std::vector<DbTime> written; ///< by offset
    std::map<std::string, Cursor, std::less<>> cursors;

    std::int64_t last_offset() const { return static_cast<std::int64_t>(written.size()) - 1; }
};

struct Store::Queue {
    std::string tenant, name;
    Nanoseconds delay{0}, window{0};
    std::map<std::string, Partition, std::less<>> partitions;
};

Store::Store() = default;
Store::~Store() = default;

std::size_t Store::add_queue(std::string tenant, std::string name) {
    queues_.push_back({std::move(tenant), std::move(name), {}, {}, {}});
    return queues_.size() - 1;
}

void Store::configure(std::size_t queue, Nanoseconds delay, Nanoseconds window) {
    queues_[queue].delay = delay;
    queues_[queue].window = window;
}

Nanoseconds Store::delay(std::size_t queue) const {
    return queues_[queue].delay;
}

Nanoseconds Store::window(std::size_t queue) const {
    return queues_[queue].window;
}

Uuid Store::push(std::size_t queue, std::string_view name, std::uint64_t frames) {
    auto& partition = queues_[queue].partitions[std::string(name)];
    if (!partition.id.known()) {
        partition.name = name;
        partition.id = uuid(++ids_);
    }
    // Stamps of a partition never go back, whatever the clock does.
    const auto stamp = partition.written.empty() ? now_ : std::max(now_, partition.written.back());
    partition.written.insert(partition.written.end(), frames, stamp);
    return partition.id;
}

Uuid Store::id_of(std::size_t queue, std::string_view name) const {
    const auto found = queues_[queue].partitions.find(name);
    return found == queues_[queue].partitions.end() ? Uuid{} : found->second.id;
}

const Store::Cursor* Store::cursor(const Partition& partition, std::string_view group) const {
    const auto found = partition.cursors.find(group);
    return found == partition.cursors.end() ? nullptr : &found->second;
}

Store::Snapshot Store::look(std::size_t queue, std::string_view group,
                            const std::vector<std::string>& names) const {
    Snapshot seen;
    for (const auto& name : names) {
        auto& look = seen.emplace_back();
        const auto found = queues_[queue].partitions.find(name);
        if (found == queues_[queue].partitions.end()) {
            continue;
        }
        look.id = found->second.id;
        look.last_offset = found->second.last_offset();
        if (const auto* row = cursor(found->second, group)) {
            look.committed = row->committed;
            if (row->held(now_)) {
                look.left = row->expires - now_;
            }
        }
    }
    return seen;
}

std::string Store::row_key(const Queue& queue, std::string_view group, std::string_view partition) {
    std::string key = queue.tenant + '/' + queue.name + '/';
    return key.append(group).append("/").append(partition);
}

bool Store::is_locked(const Queue& queue, std::string_view group,
                      std::string_view partition) const {
    return locked_.contains(row_key(queue, group, partition));
}

void Store::lock_row(std::size_t queue, std::string_view group, std::string_view partition) {
    locked_.insert(row_key(queues_[queue], group, partition));
}

/// The last offset that delay and window let through.
std::int64_t Store::visible(const Queue& queue, const Partition& partition,
                            bool skip_window) const {
    if (partition.written.empty() ||
        (!skip_window && queue.window > 0ns && partition.written.back() > now_ - queue.window)) {
        return -1;
    }
    const auto cut = std::upper_bound(partition.written.begin(), partition.written.end(),
                                      queue.delay > 0ns ? now_ - queue.delay : DbTime::max());
    return (cut - partition.written.begin()) - 1;
}

Claimed Store::claim(Queue& queue, Partition& partition, std::string_view group,
                     const ClaimArgs& args, std::uint64_t messages, std::int64_t last_offset) {
    Claimed answer{.partition = partition.name, .id = partition.id};
    const auto end = visible(queue, partition, args.skip_window);
    if (end < 0) {
        return answer; // withheld: empty, so that what is not there can be forgotten
    }
    auto& row = partition.cursors[std::string(group)];
    if (row.held(now_)) {
        answer.found = Found::leased;
        answer.left = row.expires - now_;
        return answer;
    }
    if (is_locked(queue, group, partition.name)) {
        if (last_offset > row.committed) {
            answer.found = Found::leased; // not empty: it has something (CL-12)
            answer.left = kLockedRow;
        }
        return answer;
    }
    if (end <= row.committed) {
        return answer;
    }
    answer.found = Found::took;
    answer.first = row.committed + 1;
    answer.last = std::min(end, row.committed + static_cast<std::int64_t>(messages));
    answer.drained = answer.last >= last_offset; // CL-14
    if (args.auto_ack) {
        row = Cursor{.committed = answer.last};
    } else {
        row.worker = args.worker;
        row.expires = now_ + args.lease;
        row.batch_end = answer.last;
        answer.left = args.lease;
    }
    return answer;
}

std::vector<Claimed> Store::claim_list(std::size_t index, std::string_view group,
                                       const ClaimArgs& args, const std::vector<std::string>& names,
                                       const Snapshot& seen) {
    auto& queue = queues_[index];
    std::vector<Claimed> answers;
    std::uint64_t messages = args.messages;
    std::uint32_t partitions = args.partitions;
    for (std::size_t i = 0; i < names.size() && messages > 0 && partitions > 0; ++i) {
        const auto found = queue.partitions.find(names[i]);
        const auto& look = seen[i];
        Claimed answer{.partition = names[i]};
        if (!look.id || found == queue.partitions.end() || found->second.id != *look.id) {
            answers.push_back(answer); // not known when the statement began, or deleted since
            continue;
        }
        answer.id = *look.id;
        if (look.left) {
            answer.found = Found::leased;
            answer.left = *look.left;
        } else if (look.last_offset > look.committed) {
            answer = claim(queue, found->second, group, args, messages, look.last_offset);
        }
        if (answer.found == Found::took) {
            messages -= answer.frames();
            --partitions;
        }
        answers.push_back(answer);
    }
    return answers;
}

std::vector<Claimed> Store::scan(std::size_t index, std::string_view group, const ClaimArgs& args) {
    auto& queue = queues_[index];
    std::vector<Claimed> answers;
    std::uint64_t messages = args.messages;
    std::uint32_t partitions = args.partitions;
    for (auto& [name, partition] : queue.partitions) {
        if (messages == 0 || partitions == 0) {
            break;
        }
        const auto answer = claim(queue, partition, group, args, messages, partition.last_offset());
        if (answer.found == Found::took) {
            messages -= answer.frames();
            --partitions;
            answers.push_back(answer);
        }
    }
    return answers;
}

Store::Acked Store::ack(std::size_t queue, std::string_view group, const Uuid& id,
                        std::uint64_t worker, std::int64_t done, bool keep) {
    for (auto& [name, partition] : queues_[queue].partitions) {
        const auto found = partition.cursors.find(group);
        if (partition.id != id || found == partition.cursors.end()) {
            continue;
        }
        auto& row = found->second;
        if (row.worker != worker) {
            return {};
        }
        row.committed = std::min(row.batch_end, row.committed + done);
        if (keep && row.committed < row.batch_end) {
            return {};
        }
        row.worker = 0;
        return {.released = true, .covered = row.committed == row.batch_end};
    }
    return {};
}

Store::Page Store::page(std::size_t index, std::string_view group, Uuid after, std::size_t limit,
                        DbTime written_since) const {
    std::vector<const Partition*> order;
    for (const auto& [name, partition] : queues_[index].partitions) {
        if (partition.id > after && !partition.written.empty() &&
            partition.written.back() >= written_since) {
            order.push_back(&partition);
        }
    }
    std::sort(order.begin(), order.end(),
              [](const Partition* a, const Partition* b) { return a->id < b->id; });
    Page page{.rows = {}, .after = after, .last = order.size() <= limit};
    order.resize(std::min(order.size(), limit));
    for (const auto* partition : order) {
        page.after = partition->id;
        const auto* row = cursor(*partition, group);
        if (row == nullptr || partition->last_offset() > row->committed) {
            page.rows.push_back({partition->name, partition->id});
        }
    }
    return page;
}

void Store::delete_group(std::size_t queue, std::string_view group) {
    for (auto& [name, partition] : queues_[queue].partitions) {
        partition.cursors.erase(std::string(group));
    }
}

void Store::delete_queue(std::size_t queue) {
    queues_[queue].partitions.clear();
    queues_[queue].delay = queues_[queue].window = {};
}

bool Store::drained(std::size_t queue, std::string_view group) const {
    return std::all_of(queues_[queue].partitions.begin(), queues_[queue].partitions.end(),
                       [&](const auto& entry) {
                           const auto* row = cursor(entry.second, group);
                           return entry.second.last_offset() == (row ? row->committed : -1);
                       });
}

bool Store::claimable(std::size_t index, std::string_view group, std::string_view name) const {
    const auto& queue = queues_[index];
    const auto found = queue.partitions.find(name);
    if (found == queue.partitions.end() || is_locked(queue, group, name)) {
        return false;
    }
    const auto* row = cursor(found->second, group);
    return (row == nullptr || !row->held(now_)) &&
           visible(queue, found->second, false) > (row ? row->committed : -1);
}

std::string Store::describe(std::size_t queue, std::string_view group) const {
    std::string text;
    for (const auto& [name, partition] : queues_[queue].partitions) {
        const auto* row = cursor(partition, group);
        const auto committed = row ? row->committed : -1;
        if (committed != partition.last_offset()) {
            text += queues_[queue].tenant + '/' + queues_[queue].name + '/' + name + " for ";
            text.append(group).append(": ").append(std::to_string(committed)).append(" of ");
            text += std::to_string(partition.last_offset());
            text += row && row->held(now_) ? ", leased; " : "; ";
        }
    }
    return text;
}

} // namespace queen::hotlist::schedule
