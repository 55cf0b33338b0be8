// One partition and one group: any order of pushes, pops, acks, expiries and moved cursors, against
// a model in memory. Over the procedures as they are, and over broken ones: QUEEN_BREAK names what
// is wrong with them.
#include "base/text.hpp"
#include "model/hash.hpp"
#include "model/names.hpp"
#include "sql/ack_model.hpp"
#include "sql/property_session.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace queen::test {
namespace {

const Breaks kBreaks{
    {"clamp", {"least(v_completed, v_signal.pos - 1)", "v_completed"}},
    {"gap", {" OR v_passed AND v_to < v_signal.pos - 1;", ";"}},
    {"retry_charges", {"EXIT WHEN v_signal.rank = 3 OR", "EXIT WHEN"}},
    {"tie", {"ARRAY['dlq', 'failed', 'retry'], a.word", "ARRAY['failed', 'dlq', 'retry'], a.word"}},
    {"budget", {"WHEN v_passed OR v_to >= v_row.retry_offset THEN 0", "WHEN false THEN 0"}},
    {"fresh",
     {"WHEN f.fresh THEN 0 ELSE c.batch_retry_count", "WHEN false THEN 0 ELSE "
                                                      "c.batch_retry_count"}},
    {"charged_head",
     {"retry_offset = greatest(CASE WHEN f.fresh THEN NULL",
      "retry_offset = greatest(CASE WHEN true THEN NULL"}},
    {"expired", {"coalesce(v_row.lease_expires_at > v_now, false)", "true"}},
    {"owner", {"AND NOT (v_held AND v_row.worker_id = p_worker)", "AND NOT v_held"}},
    {"half_done", {"IF v_missing THEN", "IF false THEN"}},
    {"unasked", {"v_missing := v_missing OR NOT v_signal.letter", "v_missing := false"}},
    {"stays",
     {"v_rejected := v_signal.pos;\n                EXIT;", "v_rejected := v_signal.pos;"}},
    {"delay", {"v_release := v_charge IS NOT NULL OR", "v_release := true OR"}},
    {"undelayed",
     {"lease_expires_at = CASE WHEN p_release THEN p_hold",
      "lease_expires_at = CASE WHEN p_release THEN NULL"}},
    {"attempt",
     {"WHEN p_committed < c.batch_end THEN p_committed + 1 END",
      "WHEN p_committed < c.batch_end THEN p_committed END"}},
    {"begun", {"p_ok AND v_row.committed >= p_first", "false"}},
    {"handed_back", {"attempt_count = c.prior_attempt_count,", "attempt_count = c.attempt_count,"}},
};

SqlSession& session() {
    static SqlSession session = property_session(kBreaks, "epoch");
    return session;
}

/// The model and the database, one step at a time.
class World {
public:
    World() {
        session().query("select queen.delete_queue_v1($1, 'q')", {std::string(kDefaultTenant)});
        clock(0);
        run(Settings{3, 0, true});
        run(Push{4});
        partition_ = session().one("select id from queen.log_partitions");
    }

    void run(const Step& step) {
        std::visit([this](const auto& s) { this->act(s); }, step);
        RC_ASSERT(row() == (model_.known ? model_.row() : ""));
        // Rows of one moment have no order of their own.
        RC_ASSERT(session().one("select coalesce(string_agg(l, ' ' order by l), '') from (select "
                                "\"offset\" || 'x' || retry_count as l from queen.log_dlq) l") ==
                  sorted(model_.letters));
    }

    /// Acks the batch that is held both ways, one of them taken back.
    void ack_whole() {
        if (!model_.held() || model_.worker != holder_) {
            return;
        }
        std::vector<std::string> hashes;
        for (auto at = model_.committed + 1; at <= model_.batch_end; ++at) {
            hashes.push_back("\\x" + to_hex(hash_transaction_id("m" + std::to_string(at)).view()));
        }
        const std::string outcome = "concat_ws(' ', a ->> 'ok', a ->> 'acked', a ->> "
                                    "'leaseReleased', a ->> 'covered', a ->> 'queue', a ->> "
                                    "'partition')";
        session().script("begin");
        const auto by_position =
            session().one(
                "select " + outcome +
                    " from jsonb_array_elements(queen.log_ack_multi_v1(array[$1]::uuid[], "
                    "array['g'], array[$2]::bigint[], array[$3], array[0], $4, "
                    "array[$5]::bigint[]) -> 'results') a",
                {partition_, model_.batch_end, *holder_, std::string(kDefaultTenant),
                 model_.committed + 1}) +
            " | " + row();
        session().script("rollback");
        const auto by_hash =
            session().one("select " + outcome +
                              " from queen.log_ack_by_hash_v1($1, 'g', $2, $3, $4, $5, null, "
                              "'{}') a",
                          {partition_, *holder_, hashes,
                           std::vector<std::string>(hashes.size(), "completed"),
                           std::string(kDefaultTenant)}) +
            " | " + row();
        RC_ASSERT(by_position == by_hash);
    }

private:
    static std::string row() {
        return session().one(
            "select concat_ws(' ', committed, coalesce(batch_end::text, '-'), "
            "coalesce('''' || worker_id || '''', '-'), "
            "coalesce(extract(epoch from lease_expires_at)::bigint::text, '-'), "
            "batch_retry_count || '@' || coalesce(retry_offset::text, '-'), "
            "attempt_count || '@' || coalesce(attempt_offset::text, '-'), "
            "prior_attempt_count || '@' || coalesce(prior_attempt_offset::text, '-'), "
            "total_consumed) from queen.log_consumers");
    }

    void clock(int now) {
        model_.now = now;
        session().query("select set_config('test.now', $1, false)", {std::to_string(now)});
    }

    /// Null: lease-less.
    std::optional<std::string> worker(Who who) const {
        switch (who) {
        case Who::holder:
            return holder_;
        case Who::nobody:
            return std::nullopt;
        case Who::stranger:
            return "x";
        }
        return std::nullopt;
    }

    void act(const Push& push) {
        std::string hashes = "\\x";
        for (int i = 0; i < push.messages; ++i) {
            hashes += to_hex(hash_transaction_id("m" + std::to_string(model_.messages++)).view());
        }
        session().query("select queen.log_push_one_v1('q', 'p', $1, $2, -1, 'x')",
                        {push.messages, hashes});
    }

    void act(const Take& take) {
        const auto by = "w" + std::to_string(++pops_);
        const auto taken = model_.pop(take, by);
        if (taken > 0 && !take.auto_ack) {
            holder_ = by;
        }
        RC_ASSERT(session().integer("select coalesce(sum(r_take), 0) from queen.log_pop_v1('q', "
                                    "'p', 'g', $1, $2, $3, $4)",
                                    {take.budget, take.lease, by, take.auto_ack}) == taken);
    }

    void act(const Vector& vector) {
        std::vector<std::pair<std::int64_t, Word>> items;
        std::vector<std::string> hashes, statuses;
        for (const auto& [at, word] : vector.items) {
            const auto offset = std::clamp<std::int64_t>(model_.committed + at, 0, model_.messages);
            items.emplace_back(offset, word);
            hashes.push_back("\\x" +
                             to_hex(hash_transaction_id("m" + std::to_string(offset)).view()));
            statuses.emplace_back(text_of(word));
        }
        const auto before = row();
        const auto by = worker(vector.who);
        const auto want = model_.ack(items, by, vector.unbrought);
        auto got = ack(by, hashes, statuses, {}, false);
        for (int rounds = 0; got.get(0, 1) != ""; ++rounds) {
            RC_ASSERT(rounds < 2);
            RC_ASSERT(row() == before); // asking changes nothing
            Offsets asked;
            for (const auto& offset : split(got.get(0, 1))) {
                asked.push_back(std::stoll(offset));
            }
            const auto missing = static_cast<std::size_t>(vector.unbrought);
            const bool last = vector.unbrought >= 0 && missing < asked.size();
            if (last) {
                asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(missing));
            } else {
                RC_ASSERT(asked == want.letters);
            }
            got = ack(by, hashes, statuses, asked, last);
        }
        RC_ASSERT(got.get(0, 0) == show(want));
    }

    static std::string show(const Model::Answer& want) {
        if (!want.error.empty()) {
            return want.error;
        }
        const auto flag = [](bool is) { return std::string(is ? " true" : " false"); };
        const auto list = [](const Offsets& all) {
            std::string text;
            for (const auto one : all) {
                text += (text.empty() ? "" : ", ") + std::to_string(one);
            }
            return " [" + text + "]";
        };
        return std::to_string(want.acked) + " " +
               (want.head == kNone ? "-" : std::to_string(want.head)) +
               flag(!want.letters.empty() || !want.rejected.empty()) + flag(want.dropped) +
               flag(want.released) + flag(want.freed) + flag(want.covered) + list(want.letters) +
               list(want.rejected) + " " + std::to_string(want.noop) + " " +
               std::to_string(want.stale) + " " + std::to_string(want.unresolved);
    }

    SqlRows ack(const std::optional<std::string>& by, const std::vector<std::string>& hashes,
                const std::vector<std::string>& statuses, const Offsets& letters, bool last) {
        return session().query(
            "select case when (a ->> 'ok')::bool then concat_ws(' ', a ->> 'acked', "
            "coalesce(a ->> 'off', '-'), a ->> 'dlq', a ->> 'dropped', a ->> 'leaseReleased', "
            "a ->> 'freed', a ->> 'covered', a ->> 'filed', a ->> 'rejectedItems', "
            "jsonb_array_length(a -> 'noopHashes'), jsonb_array_length(a -> 'staleHashes'), "
            "jsonb_array_length(a -> 'unresolvedHashes')) else a ->> 'error' end, "
            "translate(a ->> 'letters', '[],', '') "
            "from (select coalesce(array_agg(o), '{}') as at, array_agg(gen_random_uuid()) as ids, "
            "array_agg('m' || o) as txns, array_agg(gen_random_uuid()) as traces, "
            "array_agg(''::text) as producers, array_agg('1'::bytea) as payloads, "
            "array_agg(false) as plain, array_agg(queen._clock()) as times "
            "from unnest($5::bigint[]) o) l, "
            "queen.log_ack_by_hash_v1($1, 'g', $2, $3, $4, null, null, l.at, l.ids, l.txns, "
            "l.traces, l.producers, l.payloads, l.plain, l.times, $6) a",
            {partition_, by ? SqlArg(*by) : SqlArg(nullptr), hashes, statuses, letters, last});
    }

    /// The words of a text that ends in a blank, or "", in the order of the database.
    static std::string sorted(const std::string& text) {
        return session().one("select coalesce(string_agg(w, ' ' order by w), '') from "
                             "unnest(string_to_array(rtrim($1), ' ')) w",
                             {text});
    }

    static std::vector<std::string> split(const std::string& text) {
        std::vector<std::string> parts{""};
        for (const char c : text) {
            if (c == ' ') {
                parts.emplace_back();
            } else {
                parts.back() += c;
            }
        }
        return parts;
    }

    void act(const Positional& ack) {
        const auto upto = std::min(model_.committed + ack.upto, model_.messages - 1);
        const auto first = model_.committed + ack.first;
        const auto by = worker(ack.who);
        const auto want = model_.positional(upto, first, ack.ok, by);
        RC_ASSERT(session().one("select case when (a ->> 'ok')::bool then concat_ws(' ', a ->> "
                                "'acked', case when (a ->> 'leaseReleased')::bool then 'released' "
                                "else 'kept' end, case when (a ->> 'covered')::bool then 'all' "
                                "end) else a ->> 'error' end from queen.log_ack_at_v1($1, 'g', "
                                "$2, $3, $4, 0, null, $5) a",
                                {partition_, by ? SqlArg(*by) : SqlArg(nullptr), upto, ack.ok,
                                 first}) == want);
    }

    void act(const Wait& wait) { clock(model_.now + wait.seconds); }

    // As the seek of a group: lease, budget and attempts go with the place they were for.
    void act(const Seek& seek) {
        const auto to =
            std::clamp<std::int64_t>(model_.committed - seek.back, -1, model_.messages - 1);
        if (model_.known) {
            model_.seek(to);
        }
        session().query(
            "update queen.log_consumers set committed = $1, batch_end = null, worker_id = null, "
            "lease_expires_at = null, lease_acquired_at = null, batch_retry_count = 0, "
            "retry_offset = null, attempt_offset = null, attempt_count = 0, "
            "prior_attempt_offset = null, prior_attempt_count = 0",
            {to});
    }

    void act(const Settings& settings) {
        model_.retries = settings.retries;
        model_.delay = settings.delay;
        model_.dead_letters = settings.dead_letters;
        session().query("select queen.configure_queue_v1('q', jsonb_build_object('retryLimit', "
                        "$1::int, 'retryDelay', $2::int * 1000, 'deadLetterQueue', $3::bool, "
                        "'dlqAfterMaxRetries', false))",
                        {settings.retries, settings.delay, settings.dead_letters});
    }

    void act(const HandBack&) {
        const auto by = holder_.value_or("x");
        const bool want = model_.hand_back(by);
        RC_ASSERT(session().yes("select queen.log_release_undelivered_v1($1, 'g', $2)",
                                {partition_, by}) == want);
    }

    void act(const Extend& extend) {
        const auto by = holder_.value_or("x");
        if (model_.live() && model_.worker == by) {
            model_.until = std::max(model_.until, model_.now + extend.seconds);
        }
        session().query("select queen.log_renew_lease_v1($1, $2)", {by, extend.seconds});
    }

    Model model_;
    std::string partition_;
    std::optional<std::string> holder_{"x"}; ///< who got a batch last
    int pops_ = 0;
};

rc::Gen<Word> any_word() {
    return rc::gen::weightedElement<Word>(
        {{4, Word::completed}, {4, Word::failed}, {1, Word::retry}, {3, Word::dlq}});
}

rc::Gen<Who> any_who() {
    return rc::gen::weightedElement<Who>({{6, Who::holder}, {2, Who::nobody}, {1, Who::stranger}});
}

rc::Gen<int> below(int end) {
    return rc::gen::inRange(0, end);
}

rc::Gen<Step> as_step(rc::Gen<Vector> vectors) {
    return rc::gen::map(std::move(vectors), [](Vector v) { return Step{std::move(v)}; });
}

rc::Gen<Vector> any_vector() {
    return rc::gen::construct<Vector>(
        rc::gen::container<std::vector<std::pair<int, Word>>>(rc::gen::pair(below(8), any_word())),
        any_who(), rc::gen::weightedOneOf<int>({{4, rc::gen::just(-1)}, {1, below(3)}}));
}

template <class S, class... Gens>
rc::Gen<Step> step_of(Gens... gens) {
    return rc::gen::map(rc::gen::construct<S>(std::move(gens)...), [](S s) { return Step{s}; });
}

rc::Gen<Step> any_step() {
    return rc::gen::weightedOneOf<Step>(
        {{3, step_of<Push>(rc::gen::inRange(1, 5))},
         {8, step_of<Take>(rc::gen::inRange(1, 7), rc::gen::inRange(2, 9),
                           rc::gen::weightedElement<bool>({{8, false}, {1, true}}))},
         {12, as_step(any_vector())},
         {2,
          step_of<Positional>(below(7), below(3),
                              rc::gen::weightedElement<bool>({{4, true}, {1, false}}), any_who())},
         {4, step_of<Wait>(rc::gen::inRange(1, 6))},
         {1, step_of<Seek>(rc::gen::inRange(-2, 5))},
         {1, step_of<Settings>(below(4), rc::gen::element(0, 0, 3), rc::gen::arbitrary<bool>())},
         {1, rc::gen::just(Step{HandBack{}})},
         {1, step_of<Extend>(rc::gen::inRange(1, 9))}});
}

// RD-1: while a retry is delayed the cursor is nobody's; acks without a lease count all the same.
RC_GTEST_PROP(AckSql, AcksWhileARetryIsDelayed, ()) {
    World world;
    world.run(Settings{*rc::gen::inRange(1, 4), 3, *rc::gen::arbitrary<bool>()});
    for (auto vector : *rc::gen::container<std::vector<Vector>>(any_vector())) {
        if (*rc::gen::weightedElement<bool>({{1, true}, {2, false}})) {
            world.run(Wait{*rc::gen::inRange(2, 5)});
            world.run(Push{3});
            world.run(Take{6, 60, false});
            world.run(Vector{{{*rc::gen::inRange(1, 4), Word::failed}}, Who::holder, -1});
        }
        vector.who = *rc::gen::weightedElement<Who>({{4, Who::nobody}, {1, Who::holder}});
        world.run(vector);
    }
}

// F-37 too: whatever expires on the way costs no budget, since it costs the model none.
RC_GTEST_PROP(AckSql, AnyOrderOfPopsAcksExpiriesAndSeeksIsAsTheModelSays, ()) {
    World world;
    for (const auto& step : *rc::gen::container<std::vector<Step>>(any_step())) {
        world.run(step);
    }
}

// AR-3: the short way of a whole batch leaves what the long way leaves.
RC_GTEST_PROP(AckSql, ABatchAckedWholeByItsPositionIsAsByItsHashes, ()) {
    World world;
    for (const auto& step : *rc::gen::container<std::vector<Step>>(any_step())) {
        world.run(step);
    }
    world.run(Take{*rc::gen::inRange(1, 6), 9, false});
    world.ack_whole();
}

// Whole batches, each position with a status or two or none, over and over.
RC_GTEST_PROP(AckSql, F36_AVectorOfStatusesOverABatchIsSettledInOrder, ()) {
    World world;
    world.run(Settings{*below(3), 0, *rc::gen::weightedElement<bool>({{3, true}, {1, false}})});
    for (const auto& vector : *rc::gen::container<std::vector<Vector>>(any_vector())) {
        world.run(Push{3});
        world.run(Take{6, 60, false});
        auto items = vector.items;
        for (auto& [at, word] : items) {
            at = at % 6 + 1;
        }
        world.run(Vector{items, Who::holder, vector.unbrought});
    }
}

} // namespace
} // namespace queen::test
