// Calls of the procedures of timers.
#pragma once
#include "base/text.hpp"
#include "model/hash.hpp"
#include "sql/transaction_fixture.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace queen::test {

inline const std::string kTenantB = "00000000-0000-0000-0000-000000000002";

struct TimerText {
    std::string key;
    std::int64_t delay = 0; ///< ms
    std::string kind = "schedule";
    std::string queue = "q";
    std::string partition = "p";
    std::string txn{}; ///< empty: t- and the key
    std::string payload = "{}";
    bool zstd = false, encrypted = false;
};

/// A statement, so that a test may run it or send it.
struct SqlCall {
    std::string sql;
    std::vector<SqlArg> args;
    SqlRows run(SqlSession& session) const { return session.query(sql, args); }
    void send(SqlSession& session) const { session.send(sql, args); }
    /// The first column of all rows, or the state that it was refused with.
    std::string words(SqlSession& session) const {
        try {
            return run(session).column(0);
        } catch (const SqlError& e) {
            return e.state();
        }
    }
};

inline std::string timer_id(std::int64_t serial) {
    const auto digits = std::to_string(serial);
    return "00000000-0000-7000-8000-" + std::string(12 - digits.size(), '0') + digits;
}

/// The ten arrays of operations, from $first on.
inline std::string timer_arrays(int first) {
    std::string text;
    for (const char* type : {"text", "text", "text", "text", "text", "bigint", "uuid", "bytea",
                             "boolean", "boolean"}) {
        text += (text.empty() ? "$" : ", $") + std::to_string(first++) + "::" + type + "[]";
    }
    return text;
}
inline std::vector<SqlArg> timer_args(const std::vector<TimerText>& ops) {
    static std::int64_t serial = 0;
    std::vector<std::string> kinds, queues, keys, txns, partitions, ids, payloads, zstd, encrypted;
    std::vector<std::int64_t> delays;
    for (const auto& op : ops) {
        kinds.push_back(op.kind);
        queues.push_back(op.queue);
        keys.push_back(op.key);
        txns.push_back(op.txn.empty() ? "t-" + op.key : op.txn);
        partitions.push_back(op.partition);
        delays.push_back(op.delay * 1000);
        ids.push_back(timer_id(++serial));
        payloads.push_back("\\x" + to_hex(op.payload));
        zstd.emplace_back(op.zstd ? "t" : "f");
        encrypted.emplace_back(op.encrypted ? "t" : "f");
    }
    return {kinds, queues, keys, txns, partitions, delays, ids, payloads, zstd, encrypted};
}

/// Rows: status, txn, message_id, deliver_at, left_us.
inline SqlCall apply_call(const std::vector<TimerText>& ops,
                          const std::string& tenant = std::string(kTenant),
                          const std::string& producer = "") {
    SqlCall call{"select * from queen.log_timers_apply_v1($11, " + timer_arrays(1) + ", $12)",
                 timer_args(ops)};
    call.args.emplace_back(tenant);
    call.args.emplace_back(producer);
    return call;
}
inline TimerText cancel_of(const std::string& key, const std::string& queue = "q") {
    return {.key = key, .kind = "cancel", .queue = queue, .txn = "mine"};
}

/// A transaction with pushes of one message each and these timers. One row: what became of the
/// timers.
inline SqlCall ride_call(const std::vector<TimerText>& timers,
                         const std::vector<TransactionText::Push>& pushes) {
    std::vector<std::string> queues, partitions, hashes, blobs;
    std::vector<std::int64_t> counts, verified;
    for (const auto& push : pushes) {
        queues.push_back(push.queue);
        partitions.push_back(push.partition);
        hashes.push_back(hash(push.ids.at(0)));
        blobs.emplace_back("\\x78");
        counts.push_back(1);
        verified.push_back(-1);
    }
    SqlCall call{"select string_agg(t ->> 'status', ' ' order by n) from "
                 "queen.log_transaction_v1($11, $12, $13, $14, $15, $16, $17, null, null, null, "
                 "null, '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_timer_kinds => $1, "
                 "p_timer_queues => $2, p_timer_keys => $3, p_timer_txns => $4, "
                 "p_timer_partitions => $5, p_timer_delays => $6, p_timer_ids => $7, "
                 "p_timer_payloads => $8, p_timer_zstd => $9, p_timer_encrypted => $10) r, "
                 "jsonb_array_elements(r -> 'timers') with ordinality as e (t, n)",
                 timer_args(timers)};
    for (const SqlArg& arg : std::vector<SqlArg>{std::string(kTenant), queues, partitions, counts,
                                                 hashes, verified, blobs}) {
        call.args.push_back(arg);
    }
    return call;
}

/// A row in hand.
struct Hand {
    std::string tenant, queue, key, partition, token, txn, id;
    std::int64_t attempts = 0, late_us = 0;
};

struct ClaimText {
    std::int64_t shards = -1; ///< all
    std::int64_t lease = 30000;
    int rows = 200, per_tenant = 200;
    std::int64_t bytes = std::int64_t{32} << 20;
};
inline SqlCall claim_call(const ClaimText& what = {}) {
    return {"select tenant_id, queue, timer_key, \"partition\", claim_token, txn, message_id, "
            "attempts, late_us from queen.log_timers_claim_v1($1, $2, $3, $4, $5)",
            {what.shards, what.lease, what.rows, what.per_tenant, what.bytes}};
}
inline std::vector<Hand> hands_of(const SqlRows& rows) {
    std::vector<Hand> hands;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        hands.push_back({rows.get(i, 0), rows.get(i, 1), rows.get(i, 2), rows.get(i, 3),
                         rows.get(i, 4), rows.get(i, 5), rows.get(i, 6), rows.integer(i, 7),
                         rows.integer(i, 8)});
    }
    return hands;
}
inline std::string keys_of(const std::vector<Hand>& hands) {
    std::string keys;
    for (const auto& hand : hands) {
        keys += (keys.empty() ? "" : " ") + hand.key;
    }
    return keys;
}

/// Segments by destination, in the order in which their first rows stand.
inline std::vector<std::vector<Hand>> packed(const std::vector<Hand>& hands) {
    std::vector<std::vector<Hand>> segments;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
    for (const auto& hand : hands) {
        const auto [at, fresh] =
            places.try_emplace({hand.tenant, hand.queue, hand.partition}, segments.size());
        if (fresh) {
            segments.emplace_back();
        }
        segments[at->second].push_back(hand);
    }
    return segments;
}

/// One segment each; its blob are the transaction ids with commas between. Rows: "fired:<offset>",
/// stale or duplicate.
inline SqlCall fire_call(const std::vector<std::vector<Hand>>& segments) {
    std::vector<std::string> tenants, queues, partitions, hashes, blobs, keys, tokens;
    std::vector<std::int64_t> counts, places;
    for (const auto& rows : segments) {
        tenants.push_back(rows.at(0).tenant);
        queues.push_back(rows[0].queue);
        partitions.push_back(rows[0].partition);
        counts.push_back(static_cast<std::int64_t>(rows.size()));
        std::string bytes = "\\x", blob;
        for (const auto& row : rows) {
            bytes += hash_hex(row.txn);
            blob += (blob.empty() ? "" : ",") + row.txn;
            places.push_back(static_cast<std::int64_t>(tenants.size()));
            keys.push_back(row.key);
            tokens.push_back(row.token);
        }
        hashes.push_back(bytes);
        blobs.push_back("\\x" + to_hex(blob));
    }
    return {"select f.status || coalesce(':' || f.first_offset, '') from "
            "queen.log_timers_fire_v1($1, $2, $3, $4, $5, $6, $7, $8, $9) f",
            {tenants, queues, partitions, counts, hashes, blobs, places, keys, tokens}};
}

struct FailText {
    std::int64_t backoff = 1000; ///< ms
    bool counted = true;
    int most = 5;
    std::string error = "it does not fit";
};
/// One row: "<failed>: <exhausted keys>".
inline SqlCall fail_call(const std::vector<Hand>& hands, const FailText& what = {}) {
    std::vector<std::string> tenants, queues, keys, tokens;
    for (const auto& hand : hands) {
        tenants.push_back(hand.tenant);
        queues.push_back(hand.queue);
        keys.push_back(hand.key);
        tokens.push_back(hand.token);
    }
    return {"select f.failed || ':' || array_to_string(f.keys, ',') from "
            "queen.log_timers_fail_v1($1, $2, $3, $4, $5, $6, $7, $8) f",
            {tenants, queues, keys, tokens, what.backoff, what.error, what.counted, what.most}};
}
inline SqlCall dead_letter_call(const std::vector<Hand>& hands, int most = 5) {
    std::vector<std::string> tenants, queues, keys;
    for (const auto& hand : hands) {
        tenants.push_back(hand.tenant);
        queues.push_back(hand.queue);
        keys.push_back(hand.key);
    }
    return {"select queen.log_timers_dlq_v1($1, $2, $3, $4)", {tenants, queues, keys, most}};
}

/// A test about timers; the clock stands where it is put.
class TimersTest : public SqlTest {
protected:
    explicit TimersTest(Database database = Database::shared) : SqlTest(database) {}

    /// @return the verdicts, or the state of the refusal
    std::string apply(const std::vector<TimerText>& ops,
                      const std::string& tenant = std::string(kTenant)) {
        return apply_call(ops, tenant).words(sql);
    }
    std::vector<Hand> claim(const ClaimText& what = {}) {
        return hands_of(claim_call(what).run(sql));
    }
    /// In the order of their keys, whichever shards they were found in.
    std::vector<Hand> claim_by_key() {
        auto hands = claim();
        std::sort(hands.begin(), hands.end(),
                  [](const Hand& x, const Hand& y) { return x.key < y.key; });
        return hands;
    }
    std::string fire(const std::vector<std::vector<Hand>>& segments) {
        return fire_call(segments).words(sql);
    }
    std::string fail(const std::vector<Hand>& hands, const FailText& what = {}) {
        return fail_call(hands, what).words(sql);
    }
    std::string dead_letter(const std::vector<Hand>& hands, int most = 5) {
        return dead_letter_call(hands, most).words(sql);
    }
    /// A column of a timer; "" when there is none.
    std::string timer(const std::string& key, const std::string& column = "txn",
                      const std::string& queue = "q") {
        return sql.one("select t." + column +
                           " from queen.log_timers t where t.queue = $1 and t.timer_key = $2",
                       {queue, key});
    }
    std::int64_t waiting() { return sql.integer("select count(*) from queen.log_timers"); }
    /// Segments of a partition, in order.
    std::string stored(const std::string& queue = "q", const std::string& partition = "p") {
        return sql.one("select string_agg(convert_from(s.blob, 'UTF8'), ' ' order by "
                       "s.base_offset) from queen.log_segments s join queen.log_partitions p on "
                       "p.id = s.partition_id join queen.queues q on q.id = p.queue_id where "
                       "q.name = $1 and p.name = $2",
                       {queue, partition});
    }
    /// due_v1: "<next ms> <due> <capped> <late ms>"
    std::string due(std::int64_t cap = 2000, std::int64_t shards = -1) {
        return sql.one("select concat_ws(' ', coalesce((next_us / 1000)::text, 'none'), due, "
                       "capped, late_us / 1000) from queen.log_timers_due_v1($1, $2)",
                       {shards, cap});
    }
};

} // namespace queen::test
