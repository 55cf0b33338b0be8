#include "pluginhost/candidate_adapter.hpp"

#include "base/assert.hpp"

#include <queen/plugin/convert.hpp>

#include <array>
#include <functional>
#include <utility>

namespace queen::pluginhost {
namespace {

using plugin::Converted;
using plugin::from_c;
using plugin::Pick;
using plugin::ReadyState;
using plugin::to_c;

/// Checks each name a plugin offers and passes the good ones on.
class CheckedSink {
public:
    CheckedSink(Guard& guard, plugin::Names& out, std::uint64_t limit) noexcept
        : guard_(guard), out_(out), limit_(std::min(limit, kMostNames)) {}

    queen_name_sink as_c() noexcept {
        return {this, [](void* self, queen_str partition, std::uint64_t token) noexcept {
                    return static_cast<CheckedSink*>(self)->add(from_c(partition), token);
                }};
    }
    std::uint64_t accepted() const noexcept { return accepted_; }

private:
    std::int32_t add(std::string_view partition, std::uint64_t token) noexcept {
        if (accepted_ >= limit_) {
            guard_.count(Fault::too_many_names, "take");
            return 1;
        }
        if (partition.empty() || partition.size() > kMostNameBytes ||
            partition.find('\0') != std::string_view::npos) {
            guard_.count(Fault::bad_name, "take");
            return 0;
        }
        if (!remember(std::hash<std::string_view>{}(partition))) {
            guard_.count(Fault::repeated_name, partition);
            return 0;
        }
        try {
            full_ = !out_.add(partition, token) || full_;
        } catch (const std::exception& e) { // the core's own sink; the plugin's frames may be C
            guard_.count(Fault::exception, e.what());
            return 1;
        }
        ++accepted_;
        return full_ || accepted_ >= limit_ ? 1 : 0;
    }

    /// False for a hash that is known. Open addressing, at most half full. Two names with one
    /// 64-bit hash cost one candidate of one take.
    bool remember(std::uint64_t hash) noexcept {
        hash += hash == 0; // zero marks a free place
        for (std::size_t at = hash % seen_.size();; at = (at + 1) % seen_.size()) {
            if (seen_[at] == hash) {
                return false;
            }
            if (seen_[at] == 0) {
                seen_[at] = hash;
                return true;
            }
        }
    }

    Guard& guard_;
    plugin::Names& out_;
    const std::uint64_t limit_;
    std::uint64_t accepted_ = 0;
    bool full_ = false;
    std::array<std::uint64_t, 2 * kMostNames> seen_{};
};

/// A selection on its way through a pop. Settles exactly once: with verdicts, or, when the core
/// loses it, without any from its destructor.
class HeldCookie final : public plugin::Cookie {
public:
    HeldCookie(std::shared_ptr<CandidateInstance> instance, const plugin::Scope& scope)
        : instance_(std::move(instance)), key_(scope.queue.key), tenant_(scope.queue.tenant),
          name_(scope.queue.name), group_(scope.group) {}
    HeldCookie(const HeldCookie&) = delete;
    HeldCookie& operator=(const HeldCookie&) = delete;
    ~HeldCookie() override {
        if (owed_) {
            instance_->guard().count(Fault::unsettled, key_);
            settle({});
        }
    }

    void owe(void* cookie) noexcept {
        cookie_ = cookie;
        owed_ = true;
    }
    void settle(std::span<const plugin::Verdict> verdicts) noexcept {
        if (!std::exchange(owed_, false)) {
            return;
        }
        CandidateInstance& instance = *instance_;
        // Inside the guard: converting many verdicts allocates.
        instance.guard().run(Call::settle, [&] {
            const queen_scope scope{{to_c(key_), to_c(tenant_), to_c(name_)}, to_c(group_)};
            const Converted<queen_verdict> converted(verdicts);
            return instance.table().settle(instance.self(), &scope, cookie_, converted.data(),
                                           converted.size());
        });
    }

private:
    const std::shared_ptr<CandidateInstance> instance_;
    const std::string key_, tenant_, name_, group_;
    void* cookie_ = nullptr;
    bool owed_ = false;
};

plugin::Selection scan() {
    plugin::Selection selection;
    selection.pick = Pick::scan;
    return selection;
}

} // namespace

CandidateAdapter::CandidateAdapter(std::shared_ptr<CandidateInstance> instance)
    : instance_(std::move(instance)) {}

/// True while the plugin is paused. After a pause, and when marks were lost on their way here, the
/// first call per scope makes the source forget what it knew: its "nothing" would be a lie.
/// Forgotten means cold, and cold means a scan and a reseed.
bool CandidateAdapter::left_alone(const plugin::Scope& scope) {
    Guard& guard = instance_->guard();
    if (guard.paused()) {
        return true;
    }
    if (guard.stale(scope.queue.key, scope.group)) {
        forget(scope.queue.tenant, scope.queue.name, scope.group);
    }
    return false;
}

plugin::Readiness CandidateAdapter::peek(const plugin::Scope& scope) {
    plugin::Readiness found;
    if (left_alone(scope)) {
        found.state = ReadyState::cold;
        found.next_due = instance_->guard().paused_until();
        return found;
    }
    found.state = ReadyState::ask_store; // the safe answer of a source that fails
    const queen_scope c_scope = to_c(scope);
    queen_readiness answer{};
    answer.next_due = INT64_MAX;
    if (instance_->guard().run(Call::peek, [&] {
            return instance_->table().peek(instance_->self(), &c_scope, &answer);
        }) != 0) {
        return found;
    }
    switch (answer.state) {
    case QUEEN_NOTHING:
        found.state = ReadyState::nothing;
        break;
    case QUEEN_READY:
        found.state = ReadyState::ready;
        break;
    case QUEEN_COLD:
        found.state = ReadyState::cold;
        break;
    case QUEEN_ASK_STORE:
        found.state = ReadyState::ask_store;
        break;
    default:
        instance_->guard().count(Fault::bad_answer, "peek");
        return found;
    }
    found.partitions = answer.partitions;
    found.messages = answer.messages;
    found.next_due = plugin::time_from_c(answer.next_due);
    return found;
}

plugin::Selection CandidateAdapter::take(const plugin::Take& take, plugin::Names& out) {
    if (left_alone(take.scope)) {
        return scan();
    }
    Guard& guard = instance_->guard();
    // Made before the call: once the plugin has handed a cookie over, nothing may fail.
    auto held = std::make_unique<HeldCookie>(instance_, take.scope);
    CheckedSink sink(guard, out, take.limit);
    const queen_take c_take{to_c(take.scope), take.round, take.partitions, take.messages,
                            std::min(take.limit, kMostNames)};
    const queen_name_sink c_sink = sink.as_c();
    queen_selection made{};
    if (guard.run(Call::take, [&] {
            return instance_->table().take(instance_->self(), &c_take, &c_sink, &made);
        }) != 0) {
        return scan(); // a failed take hands nothing over, so there is nothing to settle
    }
    if (made.cookie != nullptr || sink.accepted() > 0) {
        held->owe(made.cookie);
    }
    plugin::Selection selection = scan();
    switch (made.pick) {
    case QUEEN_PICK_NONE:
        selection.pick = Pick::none;
        break;
    case QUEEN_PICK_SCAN:
        break;
    case QUEEN_PICK_NAMES:
        if (sink.accepted() == 0) {
            guard.count(Fault::no_names, "take");
            held->settle({});
            return selection;
        }
        selection.pick = Pick::names;
        break;
    default:
        guard.count(Fault::bad_answer, "take");
        held->settle({});
        return selection;
    }
    if ((made.flags & QUEEN_HOLDS_WINDOW) != 0 && made.window >= 0) {
        selection.holds_window = true;
        selection.window = Nanoseconds(made.window);
    }
    if (made.cookie != nullptr || sink.accepted() > 0) {
        selection.cookie = std::move(held);
    }
    return selection;
}

void CandidateAdapter::settle(const plugin::Scope& /*scope*/,
                              std::unique_ptr<plugin::Cookie> cookie,
                              std::span<const plugin::Verdict> verdicts) {
    if (cookie == nullptr) {
        return;
    }
    auto* held = dynamic_cast<HeldCookie*>(cookie.get());
    QUEEN_ASSERT(held != nullptr, "a selection settles with a source that the host loaded");
    held->settle(verdicts);
}

/// The source may have lost a mark or a release: what it holds is no longer true in excess only.
void CandidateAdapter::broadcast_failed(const plugin::Queue& queue, std::string_view group) {
    forget(queue.tenant, queue.name, group);
}

void CandidateAdapter::mark(const plugin::Queue& queue, std::string_view group,
                            plugin::Origin origin, std::span<const plugin::Mark> marks) {
    if (instance_->table().mark == nullptr || marks.empty() || instance_->guard().paused()) {
        return;
    }
    const queen_queue c_queue = to_c(queue);
    const queen_str c_group = to_c(group);
    if (instance_->guard().run(
            Call::mark,
            [&] {
                const Converted<queen_mark> converted(marks);
                return instance_->table().mark(
                    instance_->self(), &c_queue, group.empty() ? nullptr : &c_group,
                    static_cast<std::int32_t>(origin), converted.data(), converted.size());
            },
            0, marks.size()) != 0) {
        broadcast_failed(queue, group);
    }
}

void CandidateAdapter::released(const plugin::Queue& queue, std::string_view group,
                                const Uuid& partition_id, bool covered) {
    if (instance_->table().released == nullptr || instance_->guard().paused()) {
        return;
    }
    const queen_queue c_queue = to_c(queue);
    const queen_uuid c_id = to_c(partition_id);
    if (instance_->guard().run(Call::released, [&] {
            return instance_->table().released(instance_->self(), &c_queue, to_c(group), &c_id,
                                               covered ? 1 : 0);
        }) != 0) {
        broadcast_failed(queue, group);
    }
}

void CandidateAdapter::learn(const plugin::Queue& queue, std::string_view partition,
                             const Uuid& partition_id) {
    if (instance_->table().learn == nullptr || instance_->guard().paused()) {
        return;
    }
    const queen_queue c_queue = to_c(queue);
    const queen_uuid c_id = to_c(partition_id);
    instance_->guard().run(Call::learn, [&] {
        return instance_->table().learn(instance_->self(), &c_queue, to_c(partition), &c_id);
    });
}

void CandidateAdapter::forget(std::string_view tenant, std::string_view queue,
                              std::string_view group) {
    if (instance_->table().forget == nullptr || instance_->guard().paused()) {
        return; // every scope forgets after a pause anyway
    }
    const queen_str c_queue = to_c(queue);
    const queen_str c_group = to_c(group);
    instance_->guard().run(Call::forget, [&] {
        return instance_->table().forget(instance_->self(), to_c(tenant),
                                         queue.empty() ? nullptr : &c_queue,
                                         group.empty() ? nullptr : &c_group);
    });
}

void CandidateAdapter::configured(const plugin::Queue& queue, const plugin::QueueConfig& config) {
    if (instance_->table().configured == nullptr || instance_->guard().paused()) {
        return;
    }
    const queen_queue c_queue = to_c(queue);
    const queen_queue_config c_config{config.delay.count(), config.window.count(),
                                      to_c(config.read_at)};
    instance_->guard().run(Call::configured, [&] {
        return instance_->table().configured(instance_->self(), &c_queue, &c_config);
    });
}

bool CandidateAdapter::reseed_page(const plugin::Scope& scope, plugin::Ticket ticket,
                                   std::span<const plugin::ReseedRow> rows) {
    if (instance_->table().reseed_page == nullptr || instance_->guard().paused()) {
        return false;
    }
    const queen_scope c_scope = to_c(scope);
    return instance_->guard().run(
               Call::reseed_page,
               [&] {
                   const Converted<queen_reseed_row> converted(rows);
                   return instance_->table().reseed_page(instance_->self(), &c_scope, ticket,
                                                         converted.data(), converted.size());
               },
               QUEEN_RESEED_ENOUGH, rows.size()) == 0;
}

/// Also during a pause: the plugin counts on it exactly once per reseed() it asked for.
void CandidateAdapter::reseed_done(const plugin::Scope& scope, plugin::Ticket ticket,
                                   bool complete) {
    if (instance_->table().reseed_done == nullptr) {
        return;
    }
    const queen_scope c_scope = to_c(scope);
    instance_->guard().run(Call::reseed_done, [&] {
        return instance_->table().reseed_done(instance_->self(), &c_scope, ticket,
                                              complete ? 1 : 0);
    });
}

SteadyTime CandidateAdapter::tick(SteadyTime now) {
    instance_->tick_if_due(now);
    return instance_->tick_due();
}

bool CandidateAdapter::missed() {
    Guard& guard = instance_->guard();
    // One that is paused is forgotten scope by scope afterwards anyway.
    if (!guard.paused() &&
        (instance_->table().missed == nullptr ||
         guard.run(
             Call::missed, [&] { return instance_->table().missed(instance_->self()); },
             QUEEN_MISSED_FORGET) != 0)) {
        guard.outdate();
    }
    return true;
}

void CandidateAdapter::stats(plugin::Stats& out) {
    instance_->stats(out);
}

// ---- the instance, and what it calls -----------------------------------------------------------

const queen_host_candidates CandidateInstance::kHostCandidates{
    sizeof(queen_host_candidates), 0, host_wake, host_reseed, host_tick_at};

tl::expected<std::shared_ptr<CandidateInstance>, std::string>
CandidateInstance::create(Parts parts) {
    auto instance = make<CandidateInstance>(std::move(parts));
    // The first tick is due at once: only the plugin knows when it wants the next.
    if (instance && (*instance)->table_.tick != nullptr) {
        (*instance)->pull_tick((*instance)->clock().now());
    }
    return instance;
}

const void* CandidateInstance::extension(std::string_view id) const noexcept {
    return id == QUEEN_HOST_CANDIDATES ? &kHostCandidates : nullptr;
}

void CandidateInstance::host_wake(const queen_host* host, const queen_queue* queue,
                                  const queen_str* group, uint64_t ready) noexcept {
    serve<CandidateInstance>(host, [&](CandidateInstance& self) {
        if (self.services().wake) {
            self.services().wake(from_c(*queue),
                                 group == nullptr ? std::string_view{} : from_c(*group), ready);
        }
    });
}

void CandidateInstance::host_reseed(const queen_host* host, const queen_scope* scope,
                                    uint64_t ticket, int64_t window) noexcept {
    serve<CandidateInstance>(host, [&](CandidateInstance& self) {
        if (self.services().reseed) {
            self.services().reseed(self.name(), from_c(*scope), ticket, Nanoseconds(window));
        }
    });
}

} // namespace queen::pluginhost
