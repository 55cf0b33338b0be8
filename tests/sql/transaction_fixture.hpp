// Calls of log_transaction_v1.
#pragma once
#include "base/text.hpp"
#include "model/hash.hpp"
#include "sql/sql_fixture.hpp"

#include <string>
#include <vector>

namespace queen::test {

struct TransactionText {
    struct Push {
        std::string queue, partition;
        std::vector<std::string> ids;
    };
    struct Ack {
        std::string pid, group, worker, id, status = "completed", error{};
    };
    std::vector<Push> pushes;
    std::vector<Ack> acks;
    std::vector<std::string> leases{};
    std::string tenant{kTenant};
    /// Messages brought as dead letters; their content is made up from pid and offset.
    std::vector<std::pair<std::string, std::int64_t>> letters{};
    bool last = false;
    std::string forms{}; ///< by segment, as {t,f}: whether it is encrypted; empty: not said
};

inline std::vector<SqlArg> arguments(const TransactionText& what) {
    std::vector<std::string> queues, partitions, hashes, blobs, pids, groups, workers, ids, words,
        errors, letter_pids;
    std::vector<std::int64_t> counts, verified, offsets;
    for (const auto& push : what.pushes) {
        queues.push_back(push.queue);
        partitions.push_back(push.partition);
        counts.push_back(static_cast<std::int64_t>(push.ids.size()));
        std::string bytes = "\\x";
        for (const auto& id : push.ids) {
            bytes += hash_hex(id);
        }
        hashes.push_back(bytes);
        blobs.push_back("\\x" + to_hex(push.ids.empty() ? "" : push.ids.front()));
        verified.push_back(-1);
    }
    for (const auto& ack : what.acks) {
        pids.push_back(ack.pid);
        groups.push_back(ack.group);
        workers.push_back(ack.worker);
        ids.push_back(hash(ack.id));
        words.push_back(ack.status);
        errors.push_back(ack.error);
    }
    for (const auto& [pid, offset] : what.letters) {
        letter_pids.push_back(pid);
        offsets.push_back(offset);
    }
    return {what.tenant, queues,      partitions,  counts,  hashes,    verified,
            blobs,       pids,        groups,      workers, ids,       words,
            errors,      what.leases, letter_pids, offsets, what.last, what.forms};
}

inline constexpr const char* kTransactionCall =
    "queen.log_transaction_v1($1, $2, $3, $4, $5, $6, $7, null, null, null, null, $8, $9, $10, "
    "$11, $12, $13, $14, l.pids, l.offsets, l.ids, l.txns, l.traces, l.producers, l.payloads, "
    "l.encrypted, l.times, $17, nullif($18, '')::boolean[]) from (select coalesce(array_agg(p), "
    "'{}') as pids, "
    "coalesce(array_agg(o), '{}') as offsets, "
    "array_agg(('00000000-0000-0000-0001-' || lpad(o::text, 12, '0'))::uuid) as ids, "
    "array_agg('m' || o) as txns, "
    "array_agg('00000000-0000-0000-0000-000000000000'::uuid) as traces, "
    "array_agg(''::text) as producers, array_agg(convert_to(o::text, 'UTF8')) as payloads, "
    "array_agg(false) as encrypted, array_agg(timestamptz '2029-12-31 00:00:00+00') as times "
    "from unnest($15::uuid[], $16::bigint[]) as u (p, o)) l";

/// The answer as JSON text. Throws SqlError.
inline std::string transact(SqlSession& session, const TransactionText& what) {
    return session.one(std::string("select ") + kTransactionCall, arguments(what));
}

/// "ok", or what it was refused with: state and message.
inline std::string verdict(SqlSession& session, const TransactionText& what) {
    try {
        transact(session, what);
        return "ok";
    } catch (const SqlError& e) {
        return e.what();
    }
}

} // namespace queen::test
