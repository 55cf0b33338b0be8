// queen/plugin/entry_candidates.hpp - a CandidateSource as the C table of abi.h.
#pragma once
#include <queen/plugin/candidates.hpp>
#include <queen/plugin/entry_common.hpp>

namespace queen::plugin {

/// One source's view of the broker: also its CandidateHost.
class Host final : public HostView, public CandidateHost {
public:
    /// @errors throws when the broker lacks what a candidate source needs
    explicit Host(const queen_host* host)
        : HostView(host), candidates_(offered<queen_host_candidates>(QUEEN_HOST_CANDIDATES)) {}

    void wake(const Queue& queue, std::string_view group, std::uint64_t ready) override {
        const queen_queue c_queue = to_c(queue);
        const queen_str c_group = to_c(group);
        candidates_.wake(raw(), &c_queue, group.empty() ? nullptr : &c_group, ready);
    }
    void reseed(const Scope& scope, Ticket ticket, Nanoseconds window) override {
        const queen_scope c_scope = to_c(scope);
        candidates_.reseed(raw(), &c_scope, ticket, window.count());
    }
    void tick_at(SteadyTime when) override { candidates_.tick_at(raw(), to_c(when)); }

private:
    const queen_host_candidates& candidates_;
};

namespace detail {
using SourceInstance = Instance<Host, CandidateSource>;

namespace source {

class SinkNames final : public Names {
public:
    explicit SinkNames(const queen_name_sink* sink) noexcept : sink_(sink) {}
    bool add(std::string_view partition, std::uint64_t token) override {
        return sink_->add(sink_->self, to_c(partition), token) == 0;
    }

private:
    const queen_name_sink* sink_;
};

inline std::int32_t peek(void* self, const queen_scope* scope, queen_readiness* out) noexcept {
    return guarded([&] {
        const Readiness found = SourceInstance::of(self).peek(from_c(*scope));
        *out = {static_cast<std::int32_t>(found.state), 0, found.partitions, found.messages,
                to_c(found.next_due)};
    });
}

inline std::int32_t take(void* self, const queen_take* take, const queen_name_sink* sink,
                         queen_selection* out) noexcept {
    return guarded([&] {
        SinkNames names(sink);
        Selection made = SourceInstance::of(self).take(
            {from_c(take->scope), take->round, take->partitions, take->messages, take->limit},
            names);
        // Last, with nothing after it that can throw: the cookie is owned by exactly one side.
        *out = {static_cast<std::int32_t>(made.pick), made.holds_window ? QUEEN_HOLDS_WINDOW : 0u,
                made.window.count(), made.cookie.release()};
    });
}

inline std::int32_t settle(void* self, const queen_scope* scope, void* cookie,
                           const queen_verdict* verdicts, std::size_t count) noexcept {
    std::unique_ptr<Cookie> owned(static_cast<Cookie*>(cookie)); // whatever happens below
    return guarded([&] {
        const Converted<Verdict> converted(std::span<const queen_verdict>(verdicts, count));
        SourceInstance::of(self).settle(from_c(*scope), std::move(owned), converted.view());
    });
}

inline std::int32_t mark(void* self, const queen_queue* queue, const queen_str* group,
                         std::int32_t origin, const queen_mark* marks, std::size_t count) noexcept {
    return guarded([&] {
        const Converted<Mark> converted(std::span<const queen_mark>(marks, count));
        SourceInstance::of(self).mark(from_c(*queue),
                                      group == nullptr ? std::string_view{} : from_c(*group),
                                      static_cast<Origin>(origin), converted.view());
    });
}

inline std::int32_t released(void* self, const queen_queue* queue, queen_str group,
                             const queen_uuid* partition_id, std::int32_t covered) noexcept {
    return guarded([&] {
        SourceInstance::of(self).released(from_c(*queue), from_c(group), from_c(*partition_id),
                                          covered != 0);
    });
}

inline std::int32_t learn(void* self, const queen_queue* queue, queen_str partition,
                          const queen_uuid* partition_id) noexcept {
    return guarded([&] {
        SourceInstance::of(self).learn(from_c(*queue), from_c(partition), from_c(*partition_id));
    });
}

inline std::int32_t forget(void* self, queen_str tenant, const queen_str* queue,
                           const queen_str* group) noexcept {
    return guarded([&] {
        SourceInstance::of(self).forget(from_c(tenant),
                                        queue == nullptr ? std::string_view{} : from_c(*queue),
                                        group == nullptr ? std::string_view{} : from_c(*group));
    });
}

inline std::int32_t configured(void* self, const queen_queue* queue,
                               const queen_queue_config* config) noexcept {
    return guarded([&] {
        SourceInstance::of(self).configured(from_c(*queue), {Nanoseconds(config->delay),
                                                             Nanoseconds(config->window),
                                                             time_from_c(config->read_at)});
    });
}

inline std::int32_t reseed_page(void* self, const queen_scope* scope, std::uint64_t ticket,
                                const queen_reseed_row* rows, std::size_t count) noexcept {
    bool more = false;
    const std::int32_t fault = guarded([&] {
        const Converted<ReseedRow> converted(std::span<const queen_reseed_row>(rows, count));
        more = SourceInstance::of(self).reseed_page(from_c(*scope), ticket, converted.view());
    });
    return fault != 0 || more ? fault : QUEEN_RESEED_ENOUGH;
}

inline std::int32_t reseed_done(void* self, const queen_scope* scope, std::uint64_t ticket,
                                std::int32_t complete) noexcept {
    return guarded(
        [&] { SourceInstance::of(self).reseed_done(from_c(*scope), ticket, complete != 0); });
}

inline std::int32_t missed(void* self) noexcept {
    bool looks = false;
    const std::int32_t fault = guarded([&] { looks = SourceInstance::of(self).missed(); });
    return fault != 0 || looks ? fault : QUEEN_MISSED_FORGET;
}

} // namespace source
} // namespace detail

/// The C table of a source that `Make(Host&)` builds: Make returns
/// std::unique_ptr<CandidateSource>, or throws ConfigError to refuse an option.
template <auto Make>
inline constexpr queen_candidates candidates{
    sizeof(queen_candidates),
    0,
    detail::SourceInstance::create<Make>,
    detail::SourceInstance::destroy,
    detail::source::peek,
    detail::source::take,
    detail::source::settle,
    detail::source::mark,
    detail::source::released,
    detail::source::learn,
    detail::source::forget,
    detail::source::configured,
    detail::source::reseed_page,
    detail::source::reseed_done,
    detail::SourceInstance::tick,
    detail::SourceInstance::stats,
    detail::source::missed,
};

} // namespace queen::plugin
