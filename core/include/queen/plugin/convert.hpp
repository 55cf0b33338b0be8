// queen/plugin/convert.hpp - the views of abi.h as the views of candidates.hpp and back. Both sides
// of the boundary use it: entry.hpp in the plugin, the plugin host in the broker. Views convert
// without copying bytes; what they point to must outlive them.
#pragma once
#include <queen/plugin/abi.h>
#include <queen/plugin/candidates.hpp>

#include <array>
#include <cstddef>
#include <cstring>
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

} // namespace queen::plugin
