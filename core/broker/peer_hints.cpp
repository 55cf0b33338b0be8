#include "broker/peer_hints.hpp"

#include "base/on_exit.hpp"
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
    const auto at = names.size();
    for (const auto name : {hint.tenant, hint.queue, hint.partition, hint.group}) {
        names += name;
    }
    items.push_back({hint.kind, at, size(hint.tenant), size(hint.queue), size(hint.partition),
                     size(hint.group)});
    bytes += names.size() - at; // last: what throws before leaves no more than unused text
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
        post_work();
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

/// @param under_way says that there is such a task; without memory for it there is none, and the
/// next hint posts it again
void PeerHints::post(void (PeerHints::*task)(), bool& under_way) noexcept {
    try {
        workers_.post([this, task] { (this->*task)(); });
    } catch (const std::exception&) {
        const std::lock_guard lock(mutex_);
        under_way = false;
    }
}

/// The worker takes it up when it is through with the tasks before it. Statements that wait for a
/// session come after tasks, so a flood of hints costs them one worker, and no more.
void PeerHints::post_work() noexcept {
    post(&PeerHints::work, working_);
}

void PeerHints::go_on() noexcept {
    {
        const std::lock_guard lock(mutex_);
        working_ = !stopped_ && (work_ != nullptr || !waiting_.empty());
        if (!working_) {
            return;
        }
    }
    post_work();
}

void PeerHints::work() {
    const OnExit next([this]() noexcept { go_on(); });
    Batch batch;
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) {
            work_.reset();
            return;
        }
        if (work_ == nullptr) {
            if (waiting_.empty()) {
                return;
            }
            batch = std::move(waiting_.front());
            waiting_.pop_front();
            waiting_hints_ -= batch.items.size();
            waiting_bytes_ -= batch.bytes;
        }
    }
    if (work_ == nullptr) {
        work_ = plan(std::move(batch));
    }
    if (tell_some(*work_)) {
        work_.reset();
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

std::unique_ptr<PeerHints::Work> PeerHints::plan(Batch&& batch) {
    auto work = std::make_unique<Work>();
    work->batch = std::move(batch);
    work->holders = holders_of(work->batch);
    std::map<std::string_view, std::size_t> unnamed; // hints without a tenant, by queue
    for (const auto& item : work->batch.items) {
        const auto hint = work->batch.hint(item);
        unnamed[hint.queue] += canonical(hint.tenant).empty() ? 1 : 0;
    }
    std::map<std::pair<std::string, std::string_view>, Step> stored;
    std::set<std::pair<plugin::HintKind, std::string_view>> whole; // told of already
    for (const auto& item : work->batch.items) {
        const auto hint = work->batch.hint(item);
        work->moved = work->moved || hint.kind == plugin::HintKind::moved;
        if (hint.kind == plugin::HintKind::switched) {
            work->switched = true;
            continue;
        }
        Step step{hint.kind, nullptr, canonical(hint.tenant), hint.queue, hint.group, {}, {}};
        step.partition = hint.partition;
        if (!options_.tenants) {
            // Only the default tenant can ask here; what is another's is nobody's.
            if (!step.tenant.empty() && step.tenant != kDefaultTenant) {
                stats_.foreign.add();
                continue;
            }
            step.tenant = kDefaultTenant;
        } else if (step.tenant.empty()) {
            // Never the default tenant's alone: that would wake the wrong one and nobody else.
            step.holders = &work->holders.find(hint.queue)->second;
            if (step.holders->empty()) {
                stats_.nobody.add();
                continue;
            }
            stats_.fanned_out.add();
            if (unnamed[hint.queue] * step.holders->size() > options_.fan_out) {
                step.group = step.partition = {};
                if (!whole.emplace(hint.kind, hint.queue).second) {
                    continue;
                }
            }
        }
        if (hint.kind != plugin::HintKind::stored) {
            work->steps.push_back(std::move(step));
            continue;
        }
        const auto partition = step.partition;
        const auto together = stored.try_emplace({step.tenant, hint.queue}, std::move(step)).first;
        together->second.partitions.push_back(partition);
    }
    // Last: whatever a batch drops of a queue, what it says is there is known afterwards.
    for (auto& [name, step] : stored) {
        auto& partitions = step.partitions;
        std::sort(partitions.begin(), partitions.end());
        partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
        if (partitions.front().empty()) {
            partitions.clear();
        }
        work->steps.push_back(std::move(step));
    }
    return work;
}

/// The place moves on before anybody is told: one who throws is passed over.
bool PeerHints::tell_some(Work& work) {
    for (std::size_t told = 0; work.at < work.steps.size();) {
        if (told >= kBatch) {
            return false;
        }
        const Step& step = work.steps[work.at];
        told += std::max<std::size_t>(1, step.partitions.size());
        if (step.holders == nullptr) {
            ++work.at;
            tell(step, step.tenant);
            continue;
        }
        auto& who = work.who ? *work.who : work.who.emplace(step.holders->begin());
        const std::string& tenant = *who;
        if (++who == step.holders->end()) {
            work.who.reset();
            ++work.at;
        }
        tell(step, tenant);
    }
    if (std::exchange(work.moved, false)) {
        told_.moved();
    }
    if (std::exchange(work.switched, false)) {
        told_.switched();
    }
    return true;
}

void PeerHints::tell(const Step& step, const std::string& tenant) {
    switch (step.kind) {
    case plugin::HintKind::stored: {
        if (step.partitions.empty()) {
            announcer_.forget(tenant, step.queue, {}); // all of it: sources begin anew
            return;
        }
        std::vector<Arrival> arrivals;
        arrivals.reserve(step.partitions.size());
        for (const auto partition : step.partitions) {
            arrivals.push_back({.partition = std::string(partition), .partition_id = {}});
        }
        announcer_.arrived(tenant, step.queue, plugin::Origin::peer, arrivals);
        return;
    }
    case plugin::HintKind::moved:
        announcer_.wake(tenant, step.queue, step.group, step.partition);
        return;
    case plugin::HintKind::configured:
        pop_.configs().forget(queue_key(tenant, step.queue));
        encryption_.learn(tenant, step.queue, false);
        read_config({tenant, std::string(step.queue)});
        return;
    case plugin::HintKind::deleted:
        pop_.forget(tenant, step.queue);
        encryption_.learn(tenant, step.queue, false);
        announcer_.forget(tenant, step.queue, {});
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

/// From a task of its own: answers that come at once must not nest.
void PeerHints::post_config_read() noexcept {
    post(&PeerHints::read_next_config, reading_config_);
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
    // The next one is read when nobody holds this one's turn any more: after its answer, or when
    // something threw before there was one.
    std::shared_ptr<PeerHints> turn(this, [](PeerHints* hints) { hints->post_config_read(); });
    const auto asked = clock_.now();
    ReseedQuery query;
    query.tenant = name.first;
    query.queue = name.second;
    query.group = kQueueModeGroup;
    query.partitions = 1; // the settings are what is wanted
    const auto wait = asked + options_.wait;
    store_.reseed_page(wait, std::move(query),
                       [this, name = std::move(name), asked,
                        turn = std::move(turn)](const Result<ReseedPage>& page) mutable {
                           const auto over = std::move(turn);
                           got_config(name, asked, page);
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
