// Two drivers and their clients in any order against a model in memory: after each call the table,
// the log and the dead letters are what the model says, so every timer ends once, as its last
// answer said. QUEEN_BREAK names a condition that is left out of a procedure.
#include "sql/property_session.hpp"
#include "sql/timers_fixture.hpp"

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace queen::test {
namespace {

const Breaks kBreaks{
    {"guard", {"IF v_row.claim_token IS NOT NULL AND v_row.claimed_until > v_now", "IF false"}},
    {"guard_time",
     {"v_row.claim_token IS NOT NULL AND v_row.claimed_until > v_now",
      "v_row.claim_token IS NOT NULL"}},
    {"guard_token",
     {"v_row.claim_token IS NOT NULL AND v_row.claimed_until > v_now",
      "v_row.claimed_until > v_now"}},
    {"reset", {"attempts = 0, last_error = NULL, claimed_until = NULL, claim_token = NULL,", ""}},
    {"token", {"WHERE t.claim_token = k.token", "WHERE t.claim_token IS NOT NULL"}},
    {"whole",
     {"WHERE s.count = (SELECT count(*) FROM unnest(v_ok)",
      "WHERE 0 < (SELECT count(*) FROM unnest(v_ok)"}},
    {"released", {"SET claim_token = NULL, claimed_until = NULL\n", "SET claim_token = NULL\n"}},
    {"deleted", {"WHERE p_row_segments[k] = ANY (v_live)) w", "WHERE false) w"}},
    {"now",
     {"v_now    timestamptz := queen._clock();\n    v_rows",
      "v_now    timestamptz := queen._clock() + interval '1 second';\n    v_rows"}},
    {"lease", {"claimed_until = v_now + greatest(p_lease_ms, 1)", "claimed_until = v_now + 0"}},
    {"counted", {"t.attempts + p_counted::integer", "t.attempts + 1"}},
    {"handed",
     {"claim_token = NULL,\n            claimed_until = v_now + greatest(p_backoff_ms",
      "claimed_until = v_now + greatest(p_backoff_ms"}},
    {"in_hand", {"t.claim_token IS NULL AND t.attempts >= p_most", "t.attempts >= p_most"}},
    {"budget", {"t.claim_token IS NULL AND t.attempts >= p_most", "t.claim_token IS NULL"}},
};

SqlSession& session() {
    static SqlSession session = property_session(kBreaks);
    return session;
}

constexpr int kKeys = 6;
constexpr int kMost = 1; ///< attempts
const char* const kPartitions[] = {"p", "p", "r"};

struct Waiting {
    std::string txn, partition;
    std::int64_t deliver_at = 0;
    std::optional<std::int64_t> claimed_until{};
    std::string token{}; ///< "": none
    int attempts = 0;

    std::int64_t visible_at() const {
        return std::max(deliver_at, claimed_until.value_or(deliver_at));
    }
    bool in_hand(std::int64_t now) const { return !token.empty() && *claimed_until > now; }
};
struct Model {
    std::map<std::string, Waiting> waiting;
    std::map<std::string, std::string> log; ///< by partition
    std::vector<std::string> letters;
    std::int64_t now = 0;
};

std::string described(const Model& model) {
    std::string text;
    for (const auto& [key, timer] : model.waiting) {
        text += key + " " + timer.txn + " " + timer.partition + " " +
                std::to_string(timer.deliver_at) + " " +
                (timer.claimed_until ? std::to_string(*timer.claimed_until) : "-") + " " +
                timer.token + " " + std::to_string(timer.attempts) + "\n";
    }
    for (const auto& [partition, messages] : model.log) {
        text += partition + " " + messages + "\n";
    }
    auto letters = model.letters;
    std::sort(letters.begin(), letters.end());
    for (const auto& letter : letters) {
        text += letter + "\n";
    }
    return text;
}
std::string stored() {
    return session().one(
        "select concat((select string_agg(concat_ws(' ', t.timer_key, t.txn, t.\"partition\", "
        "(extract(epoch from t.deliver_at - timestamptz '2030-01-01 00:00:00+00'))::bigint, "
        "coalesce((extract(epoch from t.claimed_until - timestamptz '2030-01-01 "
        "00:00:00+00'))::bigint::text, '-'), coalesce(t.claim_token::text, ''), t.attempts) || "
        "E'\\n', '' order by t.timer_key) from queen.log_timers t), "
        "(select string_agg(w.x, '' order by w.x) from (select p.name || ' ' || "
        "string_agg(convert_from(s.blob, 'UTF8'), ' ' order by s.base_offset) || E'\\n' as x from "
        "queen.log_segments s join queen.log_partitions p on p.id = s.partition_id group by "
        "p.name) w), (select string_agg(d.transaction_id || E'\\n', '' order by d.transaction_id "
        "collate \"C\") from queen.log_dlq d))");
}

/// One step, made of numbers that it asks for one after the other.
class Player {
public:
    Player(Model& model, std::array<std::vector<Hand>, 2>& hands, const std::vector<int>& numbers)
        : model_(model), hands_(hands), numbers_(numbers) {}

    void play() {
        auto& hands = hands_[static_cast<std::size_t>(pick(2))];
        switch (pick(9)) {
        case 0:
            model_.now += 1 + pick(6);
            session().query("select set_config('test.now', $1, false)",
                            {std::to_string(model_.now)});
            return;
        case 1:
        case 2:
        case 3:
            apply();
            break;
        case 4:
        case 5:
            claim(hands);
            break;
        case 6:
            fire(hands);
            break;
        case 7:
            fail(hands);
            break;
        default:
            dead_letter(hands);
            break;
        }
        RC_ASSERT(stored() == described(model_));
    }

private:
    int pick(int below) { return next_ < numbers_.size() ? numbers_[next_++] % below : 0; }

    void apply() {
        std::map<std::string, TimerText> ops;
        for (int n = 1 + pick(3); n > 0; --n) {
            const auto key = "k" + std::to_string(pick(kKeys));
            ops[key] = {.key = key,
                        .delay = 1000 * (pick(6) - 2),
                        .kind = pick(3) == 0 ? "cancel" : "schedule",
                        .partition = kPartitions[pick(3)],
                        .txn = "t" + std::to_string(serial_++)};
        }
        std::vector<TimerText> list;
        std::string expected;
        for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
            list.push_back(op->second);
            expected += (expected.empty() ? "" : " ") + became(op->second);
        }
        RC_ASSERT(apply_call(list).words(session()) == expected);
    }
    std::string became(const TimerText& op) {
        const auto found = model_.waiting.find(op.key);
        const bool there = found != model_.waiting.end();
        if (there && found->second.in_hand(model_.now)) {
            return "too_late";
        }
        if (op.kind == "cancel") {
            model_.waiting.erase(op.key);
            return there ? "cancelled" : "absent";
        }
        model_.waiting[op.key] = {
            .txn = op.txn, .partition = op.partition, .deliver_at = model_.now + op.delay / 1000};
        return there ? "rescheduled" : "scheduled";
    }

    void claim(std::vector<Hand>& hands) {
        const int lease = 1 + pick(4), rows = 1 + pick(5);
        const auto taken = hands_of(
            claim_call({.lease = 1000 * lease, .rows = rows, .per_tenant = 100}).run(session()));
        std::int64_t visible = 0;
        for (const auto& [key, timer] : model_.waiting) {
            visible += timer.visible_at() <= model_.now ? 1 : 0;
        }
        RC_ASSERT(static_cast<std::int64_t>(taken.size()) == std::min<std::int64_t>(rows, visible));
        for (const auto& hand : taken) {
            auto& timer = model_.waiting.at(hand.key);
            RC_ASSERT(timer.visible_at() <= model_.now);
            RC_ASSERT(timer.txn == hand.txn);
            RC_ASSERT(hand.attempts == timer.attempts);
            timer.token = hand.token;
            timer.claimed_until = model_.now + lease;
        }
        hands.insert(hands.end(), taken.begin(), taken.end()); // what it lost stays in it, too
        if (hands.size() > 8) {
            hands.erase(hands.begin(), hands.end() - 8);
        }
    }
    /// What the driver holds, or believes to hold, each key once.
    std::vector<Hand> some(std::vector<Hand>& hands, bool keep) {
        std::map<std::string, Hand> latest;
        for (const auto& hand : hands) {
            latest[hand.key] = hand;
        }
        std::vector<Hand> chosen;
        for (const auto& [key, hand] : latest) {
            if (pick(4) != 0) {
                chosen.push_back(hand);
            }
        }
        if (!keep) {
            hands.clear();
        }
        return chosen;
    }
    bool held(const Hand& hand) const {
        const auto found = model_.waiting.find(hand.key);
        return found != model_.waiting.end() && found->second.token == hand.token;
    }

    void fire(std::vector<Hand>& hands) {
        const auto segments = packed(some(hands, pick(3) == 0));
        std::vector<std::string> results;
        for (const auto& segment : segments) {
            const bool whole = std::all_of(segment.begin(), segment.end(),
                                           [&](const Hand& hand) { return held(hand); });
            results.emplace_back(whole ? "fired" : "stale");
            std::string messages;
            for (const auto& hand : segment) {
                messages += (messages.empty() ? "" : ",") + hand.txn;
                if (whole) {
                    model_.waiting.erase(hand.key);
                } else if (held(hand)) {
                    model_.waiting[hand.key].token.clear();
                    model_.waiting[hand.key].claimed_until.reset();
                }
            }
            if (whole) {
                auto& log = model_.log[segment[0].partition];
                log += (log.empty() ? "" : " ") + messages;
            }
        }
        const auto rows = fire_call(segments).run(session());
        RC_ASSERT(rows.size() == results.size());
        for (std::size_t i = 0; i < results.size(); ++i) {
            RC_ASSERT(rows.get(i, 0).substr(0, 5) == results[i]);
        }
    }

    void fail(std::vector<Hand>& hands) {
        const auto chosen = some(hands, true);
        const bool counted = pick(2) == 0;
        const int backoff = pick(4);
        int failed = 0;
        std::string exhausted;
        for (const auto& hand : chosen) {
            if (!held(hand)) {
                continue;
            }
            auto& timer = model_.waiting[hand.key];
            ++failed;
            timer.token.clear();
            timer.claimed_until = backoff > 0 ? std::optional(model_.now + backoff) : std::nullopt;
            timer.attempts += counted ? 1 : 0;
            if (counted && timer.attempts >= kMost) {
                exhausted += (exhausted.empty() ? "" : ",") + hand.key;
            }
        }
        RC_ASSERT(fail_call(chosen, {.backoff = 1000 * backoff, .counted = counted, .most = kMost})
                      .words(session()) == std::to_string(failed) + ":" + exhausted);
    }

    void dead_letter(std::vector<Hand>& hands) {
        const auto chosen = some(hands, true);
        int filed = 0;
        for (const auto& hand : chosen) {
            const auto found = model_.waiting.find(hand.key);
            if (found != model_.waiting.end() && found->second.token.empty() &&
                found->second.attempts >= kMost) {
                model_.letters.push_back(found->second.txn);
                model_.waiting.erase(found);
                ++filed;
            }
        }
        RC_ASSERT(dead_letter_call(chosen, kMost).words(session()) == std::to_string(filed));
    }

    Model& model_;
    std::array<std::vector<Hand>, 2>& hands_;
    const std::vector<int>& numbers_;
    std::size_t next_ = 0;
    static inline int serial_ = 0;
};

RC_GTEST_PROP(TimersSql, EveryTimerEndsOnceAsItsAnswersSaid, ()) {
    session().script("delete from queen.log_timers; delete from queen.queues; "
                     "delete from queen.log_txns; select set_config('test.now', '0', false)");
    Model model;
    std::array<std::vector<Hand>, 2> hands;
    const auto steps = *rc::gen::container<std::vector<std::vector<int>>>(
        rc::gen::container<std::vector<int>>(20, rc::gen::inRange(0, 1000)));
    for (const auto& step : steps) {
        Player(model, hands, step).play();
    }
}

} // namespace
} // namespace queen::test
