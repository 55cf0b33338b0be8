// queen/plugin/convert.hpp - the views of abi.h as the views of the C++ faces and back. Both sides
// of the boundary use it: entry.hpp in the plugin, the plugin host in the broker. Views convert
// without copying bytes; what they point to must outlive them.
#pragma once
#include <queen/plugin/abi.h>
#include <queen/plugin/candidates.hpp>
#include <queen/plugin/mesh.hpp>
#include <queen/plugin/timers.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace queen::plugin {

inline std::string_view from_c(const queen_str& text) noexcept {
    return text.data == nullptr ? std::string_view{} : std::string_view(text.data, text.size);
}
inline queen_str to_c(std::string_view text) noexcept {
    return {text.data(), text.size()};
}

inline Uuid from_c(const queen_uuid& id) noexcept {
    Uuid out;
    std::memcpy(out.bytes.data(), id.bytes, sizeof id.bytes);
    return out;
}
inline queen_uuid to_c(const Uuid& id) noexcept {
    queen_uuid out;
    std::memcpy(out.bytes, id.bytes.data(), sizeof out.bytes);
    return out;
}

inline Queue from_c(const queen_queue& queue) noexcept {
    return {from_c(queue.key), from_c(queue.tenant), from_c(queue.name)};
}
inline queen_queue to_c(const Queue& queue) noexcept {
    return {to_c(queue.key), to_c(queue.tenant), to_c(queue.name)};
}

inline Scope from_c(const queen_scope& scope) noexcept {
    return {from_c(scope.queue), from_c(scope.group)};
}
inline queen_scope to_c(const Scope& scope) noexcept {
    return {to_c(scope.queue), to_c(scope.group)};
}

/// SteadyTime::max() and INT64_MAX, both "never", are the same number.
inline SteadyTime time_from_c(std::int64_t value) noexcept {
    return SteadyTime(Nanoseconds(value));
}
inline std::int64_t to_c(SteadyTime time) noexcept {
    return time.time_since_epoch().count();
}

inline Mark from_c(const queen_mark& mark) noexcept {
    return {from_c(mark.partition), from_c(mark.partition_id), mark.frames};
}
inline queen_mark to_c(const Mark& mark) noexcept {
    return {to_c(mark.partition), to_c(mark.partition_id), mark.frames};
}

inline ReseedRow from_c(const queen_reseed_row& row) noexcept {
    return {from_c(row.partition), from_c(row.partition_id)};
}
inline queen_reseed_row to_c(const ReseedRow& row) noexcept {
    return {to_c(row.partition), to_c(row.partition_id)};
}

/// A kind this side does not know counts as "not evaluated".
inline VerdictKind verdict_kind_from_c(std::int32_t kind) noexcept {
    switch (kind) {
    case QUEEN_TOOK_LEASED:
        return VerdictKind::took_leased;
    case QUEEN_TOOK_ACKED:
        return VerdictKind::took_acked;
    case QUEEN_EMPTY:
        return VerdictKind::empty;
    case QUEEN_LEASED:
        return VerdictKind::leased;
    }
    return VerdictKind::requeue;
}
inline Verdict from_c(const queen_verdict& verdict) noexcept {
    return {verdict.token,
            from_c(verdict.partition),
            from_c(verdict.partition_id),
            verdict_kind_from_c(verdict.kind),
            verdict.drained != 0,
            verdict.frames,
            time_from_c(verdict.until)};
}
inline queen_verdict to_c(const Verdict& verdict) noexcept {
    return {verdict.token,
            to_c(verdict.partition),
            to_c(verdict.partition_id),
            static_cast<std::int32_t>(verdict.kind),
            verdict.drained ? 1 : 0,
            verdict.frames,
            to_c(verdict.until)};
}

// ---- mesh --------------------------------------------------------------------------------------

/// nullopt: a kind this side does not know.
inline std::optional<HintKind> hint_kind_from_c(std::int32_t kind) noexcept {
    switch (kind) {
    case QUEEN_HINT_STORED:
        return HintKind::stored;
    case QUEEN_HINT_MOVED:
        return HintKind::moved;
    case QUEEN_HINT_CONFIGURED:
        return HintKind::configured;
    case QUEEN_HINT_DELETED:
        return HintKind::deleted;
    case QUEEN_HINT_SWITCHED:
        return HintKind::switched;
    }
    return std::nullopt;
}
inline queen_hint to_c(const Hint& hint) noexcept {
    return {static_cast<std::int32_t>(hint.kind),
            hint.enabled ? 1 : 0,
            to_c(hint.tenant),
            to_c(hint.queue),
            to_c(hint.partition),
            to_c(hint.group),
            to_c(hint.subject)};
}
/// nullopt: of a kind this side does not know.
inline std::optional<Hint> hint_from_c(const queen_hint& hint) noexcept {
    const auto kind = hint_kind_from_c(hint.kind);
    if (!kind) {
        return std::nullopt;
    }
    return Hint{*kind,
                hint.enabled != 0,
                from_c(hint.tenant),
                from_c(hint.queue),
                from_c(hint.partition),
                from_c(hint.group),
                from_c(hint.subject)};
}

inline Peer from_c(const queen_peer& peer) noexcept {
    return {from_c(peer.address),
            from_c(peer.server_id),
            peer.connected != 0,
            peer.alive != 0,
            Nanoseconds(peer.silent),
            peer.sent,
            peer.received,
            peer.dropped,
            peer.queued};
}
inline queen_peer to_c(const Peer& peer) noexcept {
    return {to_c(peer.address), to_c(peer.server_id), peer.connected ? 1 : 0,
            peer.alive ? 1 : 0, peer.silent.count(),  peer.sent,
            peer.received,      peer.dropped,         peer.queued};
}

// ---- timers ------------------------------------------------------------------------------------

/// An outcome this side does not know counts nothing.
inline TimerOutcome timer_outcome_from_c(std::int32_t outcome) noexcept {
    switch (outcome) {
    case QUEEN_TIMER_OK:
        return TimerOutcome::ok;
    case QUEEN_TIMER_PERMANENT:
        return TimerOutcome::permanent;
    case QUEEN_TIMER_CONFIG:
        return TimerOutcome::config;
    case QUEEN_TIMER_PAUSED:
        return TimerOutcome::paused;
    case QUEEN_TIMER_CONTENDED:
        return TimerOutcome::contended;
    }
    return TimerOutcome::transient;
}

/// A result this side does not know is one that fired nothing.
inline TimerResult timer_result_from_c(std::int32_t result) noexcept {
    switch (result) {
    case QUEEN_TIMER_FIRED:
        return TimerResult::fired;
    case QUEEN_TIMER_DUPLICATE:
        return TimerResult::duplicate;
    }
    return TimerResult::stale;
}

inline TimerSegment from_c(const queen_timer_segment& segment) noexcept {
    return {from_c(segment.tenant), segment.rows, segment.attempts, segment.bytes,
            Nanoseconds(segment.late)};
}
inline queen_timer_segment to_c(const TimerSegment& segment) noexcept {
    return {to_c(segment.tenant), segment.rows, segment.attempts, segment.bytes,
            segment.late.count()};
}

// ---- lists, after all that they convert --------------------------------------------------------

/// The elements of `in` converted to `To`. Up to kInline of them need no allocation: a push marks
/// a few partitions, a pop settles a few more.
template <class To>
class Converted {
public:
    template <class From>
    explicit Converted(std::span<const From> in) {
        To* out = inline_.data();
        if (in.size() > kInline) {
            many_.resize(in.size());
            out = many_.data();
        }
        for (std::size_t i = 0; i < in.size(); ++i) {
            if constexpr (requires { from_c(in[i]); }) {
                out[i] = from_c(in[i]);
            } else {
                out[i] = to_c(in[i]);
            }
        }
        view_ = {out, in.size()};
    }
    Converted(const Converted&) = delete;
    Converted& operator=(const Converted&) = delete;
    std::span<const To> view() const noexcept { return view_; }
    const To* data() const noexcept { return view_.data(); }
    std::size_t size() const noexcept { return view_.size(); }

private:
    static constexpr std::size_t kInline = 16;
    std::array<To, kInline> inline_;
    std::vector<To> many_;
    std::span<const To> view_;
};

/// An answer in the form of the other side, with the lists that it points to.
class AnswerFromC {
public:
    explicit AnswerFromC(const queen_timer_answer& raw)
        : segments_(std::span<const queen_timer_segment>(raw.segments, raw.segment_count)) {
        results_.reserve(raw.result_count);
        for (std::size_t i = 0; i < raw.result_count; ++i) {
            results_.push_back(timer_result_from_c(raw.results[i]));
        }
        answer_.outcome = timer_outcome_from_c(raw.outcome);
        answer_.error = from_c(raw.error);
        answer_.next_in = Nanoseconds(raw.next_in);
        answer_.due = raw.due;
        answer_.late = Nanoseconds(raw.late);
        answer_.capped = raw.capped != 0;
        answer_.batch = raw.batch;
        answer_.segments = segments_.view();
        answer_.results = results_;
        answer_.rows = raw.rows;
        answer_.exhausted = raw.exhausted;
    }
    AnswerFromC(const AnswerFromC&) = delete;
    AnswerFromC& operator=(const AnswerFromC&) = delete;
    const TimerAnswer& view() const noexcept { return answer_; }

private:
    Converted<TimerSegment> segments_;
    std::vector<TimerResult> results_;
    TimerAnswer answer_;
};

class AnswerToC {
public:
    explicit AnswerToC(const TimerAnswer& answer) : segments_(answer.segments) {
        results_.reserve(answer.results.size());
        for (const TimerResult result : answer.results) {
            results_.push_back(static_cast<std::int32_t>(result));
        }
        raw_.size = sizeof raw_;
        raw_.outcome = static_cast<std::int32_t>(answer.outcome);
        raw_.error = to_c(answer.error);
        raw_.next_in = answer.next_in.count();
        raw_.due = answer.due;
        raw_.late = answer.late.count();
        raw_.capped = answer.capped ? 1 : 0;
        raw_.batch = answer.batch;
        raw_.segments = segments_.data();
        raw_.segment_count = segments_.size();
        raw_.results = results_.data();
        raw_.result_count = results_.size();
        raw_.rows = answer.rows;
        raw_.exhausted = answer.exhausted;
    }
    AnswerToC(const AnswerToC&) = delete;
    AnswerToC& operator=(const AnswerToC&) = delete;
    const queen_timer_answer& view() const noexcept { return raw_; }

private:
    Converted<queen_timer_segment> segments_;
    std::vector<std::int32_t> results_;
    queen_timer_answer raw_{};
};

} // namespace queen::plugin
