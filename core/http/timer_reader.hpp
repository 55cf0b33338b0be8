// http/timer_reader.hpp - timers as requests name them: in a body of their own, riding on a
// transaction, or by queue and key in a path.
#pragma once
#include "http/body_events.hpp"
#include "http/message.hpp"
#include "metrics/activity.hpp"
#include "ports/timer_store.hpp"
#include "settings/settings.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::http {

/// Why a request about timers is not done, in the contract's words.
struct TimerRefusal {
    int status = 400;
    std::string_view error = "timers_bad_request";
    std::string reason;
    std::string detail; ///< for people
    metrics::TimerRefused why = metrics::TimerRefused::shape;
    bool retry = false; ///< not now: the answer says when to come again
};

/// {error, code, reason, detail}; `code` repeats `error`, which is a word here.
Reply timer_refusal_reply(const TimerRefusal& refusal);
/// An error of Timers as the contract names it.
TimerRefusal timer_refusal(const Error& error);
/// A name that is not one, in a path or an op. @param where goes before the text: "timer 3: "
TimerRefusal timer_name_refusal(const Error& error, const std::string& where = {});

/// Gathers an array of timer ops out of the events of a body.
/// @source TM-2, TM-7
class TimerOps {
public:
    TimerOps(std::string_view tenant, const settings::TimerSettings& limits)
        : tenant_(tenant), limits_(limits) {}

    // What a reader of bodies saw, inside the array; each false: refused, see refusal().
    bool begin_op();
    void member(std::string_view name);
    void value(std::string_view bytes, BodyEvents::Scalar kind, std::string_view text);
    bool end_op();
    bool no_op(); ///< an element that is no object

    void clear();
    std::size_t size() const noexcept { return ops_.size(); }
    std::vector<TimerOp> take() { return std::move(ops_); }
    const std::optional<TimerRefusal>& refusal() const noexcept { return refusal_; }

private:
    using Field = BodyField;
    struct Fields {
        Field op, queue, key, partition, delay, txn, payload, zstd, encrypted;
        std::string server_owned; ///< the name of a member that is not the client's to give
    };

    bool refuse(std::string_view reason, const std::string& text, int status = 400);
    bool refuse_name(const Error& error);
    bool read_identity(TimerOp& op);
    bool read_new(TimerOp& op);
    bool read_delay(TimerOp& op);
    bool read_payload(TimerOp& op);
    bool read_flag(const Field& field, std::string_view name, bool& flag);

    const std::string tenant_;
    const settings::TimerSettings& limits_;
    std::vector<TimerOp> ops_;
    std::set<std::pair<std::string, std::string>> keys_; ///< queue and key of those
    Fields fields_;
    Field* field_ = nullptr; ///< what a value is for; null: nothing known
    std::optional<TimerRefusal> refusal_;
};

/// The body of POST /api/v1/timers: an array of ops, or an object with one as `operations`.
tl::expected<std::vector<TimerOp>, TimerRefusal>
read_timers(std::string_view tenant, std::string_view body, const settings::TimerSettings& limits);

/// The key of a timer.
/// @errors invalid_argument, name_too_long
Result<void> check_timer_key(std::string_view key);

} // namespace queen::http
