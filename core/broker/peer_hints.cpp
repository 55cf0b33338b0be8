#include "broker/peer_hints.hpp"

#include "base/text.hpp"
#include "model/names.hpp"

#include <algorithm>

namespace queen::broker {
namespace {

bool named(std::string_view name) {
    return check_name("", name).has_value();
}

bool absent_or_named(std::string_view name) {
    return name.empty() || named(name);
}

std::string_view longer(std::string_view a, std::string_view b) {
    return a.size() < b.size() ? b : a;
}

/// As keys have it; empty when the peer named none, or no tenant has such a name (ME-13).
std::string canonical(std::string_view tenant) {
    const auto id = parse_uuid(tenant);
    return id ? to_string(*id) : std::string();
}

} // namespace

void PeerHints::Batch::add(const plugin::Hint& hint) {
    const auto size = [](std::string_view name) { return static_cast<std::uint16_t>(name.size()); };
    items.push_back({hint.kind, names.size(), size(hint.tenant), size(hint.queue),
                     size(hint.partition), size(hint.group)});
    for (const auto name : {hint.tenant, hint.queue, hint.partition, hint.group}) {
        names += name;
    }
}

plugin::Hint PeerHints::Batch::hint(const Item& item) const {
    std::string_view rest(names);
    rest.remove_prefix(item.at);
    const auto next = [&rest](std::size_t size) {
        const auto name = rest.substr(0, size);
        rest.remove_prefix(size);
        return name;
    };
    plugin::Hint hint{.kind = item.kind};
    hint.tenant = next(item.tenant);
    hint.queue = next(item.queue);
    hint.partition = next(item.partition);
    hint.group = next(item.group);
    return hint;
}

PeerHints::PeerHints(Store& store, Pop& pop, Announcer& announcer, const Parking& parking,
                     Encryption& encryption, Workers& workers, const Clock& clock, Told told,
                     Options options)
    : store_(store), pop_(pop), announcer_(announcer), parking_(parking), encryption_(encryption),
      workers_(workers), clock_(clock), told_(std::move(told)), options_(options) {}

bool PeerHints::well_formed(const plugin::Hint& hint) {
    switch (hint.kind) {
    case plugin::HintKind::stored:
    case plugin::HintKind::configured:
    case plugin::HintKind::deleted:
        break;
    case plugin::HintKind::moved:
        if (!absent_or_named(hint.group)) {
            return false;
        }
        break;
    case plugin::HintKind::switched:
        return true; // whatever it names: all switches are read
    }
    return hint.tenant.size() <= kMaxNameBytes && named(hint.queue) &&
           absent_or_named(hint.partition) &&
           check_names_fit(hint.tenant, hint.queue, longer(hint.partition, hint.group)).has_value();
}

void PeerHints::heard(std::span<const plugin::Hint> hints) {
    bool post = false;
    bool lost = false;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& hint : hints) {
            stats_.heard.add(hint.kind);
            if (!well_formed(hint)) {
                stats_.malformed.add();
                continue;
            }
            const auto bytes =
                hint.tenant.size() + hint.queue.size() + hint.partition.size() + hint.group.size();
            if (stopped_ || waiting_hints_ >= options_.waiting ||
                waiting_bytes_ + bytes > options_.waiting_bytes) {
                stats_.overflowed.add();
                lost = !stopped_;
                continue;
            }
            if (waiting_.empty() || waiting_.back().items.size() >= kBatch) {
                waiting_.emplace_back();
            }
            waiting_.back().add(hint);
            ++waiting_hints_;
            waiting_bytes_ += bytes;
        }
        post = !working_ && !waiting_.empty();
        working_ = working_ || post;
    }
    if (post) {
        workers_.post([this] { work(); });
    }
    if (lost && told_.missed) { // looked for when the flood is over, and once a second till then
        told_.missed();
    }
}

void PeerHints::missed() {
    stats_.missed.add();
    if (told_.missed) {
        told_.missed();
    }
}

void PeerHints::stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
    waiting_hints_ = waiting_bytes_ = 0;
    configs_.clear();
}

std::size_t PeerHints::waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_hints_;
}

void PeerHints::work() {
    Batch batch;
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.empty()) { // stopped
            working_ = false;
            return;
        }
        batch = std::move(waiting_.front());
        waiting_.pop_front();
        waiting_hints_ -= batch.items.size();
        waiting_bytes_ -= batch.names.size();
    }
    handle(batch);
    bool more = false;
    {
        const std::lock_guard lock(mutex_);
        more = working_ = !waiting_.empty();
    }
    if (more) { // behind what else waits for a worker
        workers_.post([this] { work(); });
    }
}

/// Who holds queues that were hinted without a tenant; empty when there is none such.
QueueHolders PeerHints::holders_of(const Batch& batch) const {
    QueueHolders holders;
    if (!options_.tenants) {
        return holders;
    }
    for (const auto& item : batch.items) {
        const auto hint = batch.hint(item);
        if (!hint.queue.empty() && canonical(hint.tenant).empty()) {
            holders.try_emplace(std::string(hint.queue));
        }
    }
    if (!holders.empty()) {
        parking_.add_holders(holders);
        pop_.configs().add_holders(holders);
    }
    return holders;
}

void PeerHints::handle(const Batch& batch) {
    const auto holders = holders_of(batch);
    Stored stored;
    bool moved = false;
    bool switched = false;
    for (const auto& item : batch.items) {
        const auto hint = batch.hint(item);
        moved = moved || hint.kind == plugin::HintKind::moved;
        if (hint.kind == plugin::HintKind::switched) {
            switched = true;
            continue;
        }
        const auto tenant = canonical(hint.tenant);
        if (!options_.tenants) {
            // Only the default tenant can ask here; what is another's is nobody's.
            if (tenant.empty() || tenant == kDefaultTenant) {
                handle_for(std::string(kDefaultTenant), hint, stored);
            } else {
                stats_.foreign.add();
            }
        } else if (!tenant.empty()) {
            handle_for(tenant, hint, stored);
        } else {
            // Never the default tenant's alone: that would wake the wrong one and nobody else.
            const auto& all = holders.find(hint.queue)->second;
            (all.empty() ? stats_.nobody : stats_.fanned_out).add();
            for (const auto& each : all) {
                handle_for(each, hint, stored);
            }
        }
    }
    // Last: whatever a batch drops of a queue, what it says is there is known afterwards.
    for (const auto& [name, partitions] : stored) {
        const auto& [tenant, queue] = name;
        if (partitions.contains(std::string_view())) {
            announcer_.forget(tenant, queue, {}); // all of it: sources begin anew
            continue;
        }
        std::vector<Arrival> arrivals;
        arrivals.reserve(partitions.size());
        for (const auto partition : partitions) {
            arrivals.push_back({.partition = std::string(partition), .partition_id = {}});
        }
        announcer_.arrived(tenant, queue, plugin::Origin::peer, arrivals);
    }
    if (moved) {
        told_.moved();
    }
    if (switched) {
        told_.switched();
    }
}

void PeerHints::handle_for(const std::string& tenant, const plugin::Hint& hint, Stored& stored) {
    switch (hint.kind) {
    case plugin::HintKind::stored:
        stored[{tenant, std::string(hint.queue)}].insert(hint.partition);
        return;
    case plugin::HintKind::moved:
        announcer_.wake(tenant, hint.queue, hint.group, hint.partition);
        return;
    case plugin::HintKind::configured:
        pop_.configs().forget(queue_key(tenant, hint.queue));
        encryption_.learn(tenant, hint.queue, false);
        read_config({tenant, std::string(hint.queue)});
        return;
    case plugin::HintKind::deleted:
        pop_.forget(tenant, hint.queue);
        encryption_.learn(tenant, hint.queue, false);
        announcer_.forget(tenant, hint.queue, {});
        return;
    case plugin::HintKind::switched:
        return;
    }
}

void PeerHints::read_config(QueueName name) {
    {
        const std::lock_guard lock(mutex_);
        if (stopped_ || (configs_.size() >= options_.config_reads && !configs_.contains(name))) {
            stats_.overflowed.add();
            return;
        }
        configs_.insert(std::move(name));
        if (reading_config_) {
            return;
        }
        reading_config_ = true;
    }
    read_next_config();
}

/// One at a time: a peer that says so of every queue must not take the sessions of the rest.
void PeerHints::read_next_config() {
    QueueName name;
    {
        const std::lock_guard lock(mutex_);
        if (configs_.empty()) {
            reading_config_ = false;
            return;
        }
        name = std::move(configs_.extract(configs_.begin()).value());
    }
    const auto asked = clock_.now();
    ReseedQuery query;
    query.tenant = name.first;
    query.queue = name.second;
    query.group = kQueueModeGroup;
    query.partitions = 1; // the settings are what is wanted
    store_.reseed_page(asked + options_.wait, std::move(query),
                       [this, name, asked](const Result<ReseedPage>& page) {
                           got_config(name, asked, page);
                           // From a task of its own: answers that come at once must not nest.
                           workers_.post([this] { read_next_config(); });
                       });
}

void PeerHints::got_config(const QueueName& name, SteadyTime asked,
                           const Result<ReseedPage>& page) {
    const auto& [tenant, queue] = name;
    (page ? stats_.config_reads_done : stats_.config_reads_failed).add();
    if (page && page->exists) {
        announcer_.configured(tenant, queue,
                              {std::chrono::seconds(page->delay_seconds),
                               std::chrono::seconds(page->window_seconds), asked});
        return;
    }
    announcer_.wake(tenant, queue, {}, {}); // a claim tells the settings
}

} // namespace queen::broker
