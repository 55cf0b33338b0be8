#include "store/pg_transaction_store.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "store/answers.hpp"
#include "store/push_arrays.hpp"
#include "store/statements.hpp"
#include "store/timer_arrays.hpp"

#include <memory>

namespace queen::store {
namespace {

namespace sql = statements;

using json::Value;
using Settled = TransactionOutcome::Settled;

// What sql/010_log_transaction.sql raises.
constexpr std::string_view kDuplicateState = "23505";
constexpr std::string_view kDuplicateText = "QDUP";
constexpr std::string_view kFormState = "QFRM0";
constexpr std::string_view kRejectedState = "QTXN0";
constexpr std::string_view kLettersState = "QDLQ0";

Result<Rows> run_transaction(Session& session, const TransactionCall& call) {
    const auto tenant = tenant_id(call.tenant);
    if (!tenant) {
        return fail(tenant.error());
    }
    const auto arrays = PushArrays::of(call.segments);
    if (!arrays) {
        return fail(arrays.error());
    }
    std::vector<Uuid> partitions;
    std::vector<std::string_view> groups, workers, hashes, statuses, reasons;
    for (const TransactionAck& ack : call.acks) {
        partitions.push_back(ack.partition_id);
        groups.push_back(ack.group);
        workers.push_back(ack.lease_id);
        hashes.push_back(ack.hash.view());
        statuses.push_back(status_text(ack.status));
        reasons.push_back(ack.reason);
    }
    const TimerArrays timers(call.timers);
    const std::vector<std::string_view> leases(call.required_leases.begin(),
                                               call.required_leases.end());
    Parameters parameters;
    parameters.uuid(*tenant);
    arrays->add_segments(parameters);
    arrays->add_vouches(parameters);
    parameters.uuid_array(partitions).text_array(groups).text_array(workers);
    parameters.bytea_array(hashes).text_array(statuses).text_array(reasons).text_array(leases);
    if (call.letters.empty() && !call.no_further_letters) {
        arrays->add_forms(parameters);
        timers.add_to(parameters);
        parameters.text(call.producer_sub);
        return session.run(sql::kTransaction, parameters);
    }
    std::vector<Uuid> of;
    LetterArrays letters;
    for (const PartitionLetters& partition : call.letters) {
        of.resize(of.size() + partition.letters.size(), partition.partition_id);
        for (const Letter& letter : partition.letters) {
            letters.add(letter);
        }
    }
    parameters.uuid_array(of);
    letters.add_to(parameters);
    parameters.boolean(call.no_further_letters);
    arrays->add_forms(parameters);
    timers.add_to(parameters);
    parameters.text(call.producer_sub);
    return session.run(sql::kTransactionLetters, parameters);
}

Result<TransactionOutcome> decode(const Rows& rows, std::size_t segments, std::size_t timers) {
    Row row(rows, 0);
    const std::string_view pushes = row.text(0);
    const std::string_view acks = row.text(1);
    const std::string_view rest = row.text(2);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    TransactionOutcome outcome;
    auto pushed = read_push(pushes, segments);
    if (!pushed) {
        return fail(std::move(pushed.error()));
    }
    outcome.pushes = std::move(*pushed);
    auto settled = read_settled(acks);
    if (!settled) {
        return fail(std::move(settled.error()));
    }
    outcome.settled = std::move(*settled);
    auto verdicts = read_timers(rest, timers);
    if (!verdicts) {
        return fail(std::move(verdicts.error()));
    }
    outcome.timers = std::move(*verdicts);
    return outcome;
}

std::size_t place(Value value, bool& fits) {
    const auto number = value.integer();
    fits = fits && number && *number >= 0;
    return static_cast<std::size_t>(number.value_or(0));
}

TransactionOutcome::Wanted wanted_of(Value element, bool& fits) {
    TransactionOutcome::Wanted wanted;
    const auto id = parse_uuid(element["partitionId"].string());
    fits = fits && id && element["offsets"].size() > 0;
    wanted.partition_id = id.value_or(Uuid{});
    for (std::size_t i = 0; i < element["offsets"].size(); ++i) {
        const auto offset = place(element["offsets"].at(i), fits);
        wanted.offsets.emplace_back(static_cast<std::int64_t>(offset));
    }
    return wanted;
}

std::vector<std::size_t> places(Value list, bool& fits) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < list.size(); ++i) {
        all.push_back(place(list.at(i), fits));
    }
    return all;
}

TransactionOutcome::Rejection rejection_of(Value element, bool& fits) {
    using Refusal = TransactionOutcome::Refusal;
    TransactionOutcome::Rejection rejection;
    rejection.ack = place(element["n"], fits);
    const auto word = element["error"].string();
    fits = fits && !word.empty();
    if (word == "unresolved") {
        rejection.refusal = Refusal::unresolved;
    } else if (word == "stale") {
        rejection.refusal = Refusal::stale;
    } else if (word == "noop") {
        rejection.refusal = Refusal::committed;
    } else if (word == "dlq") {
        rejection.refusal = Refusal::no_letter;
    } else {
        rejection.error = word;
    }
    return rejection;
}

} // namespace

Result<TransactionOutcome> read_refusal(Error error) {
    const bool duplicate =
        error.sqlstate == kDuplicateState && error.message.starts_with(kDuplicateText);
    const bool rejected = error.sqlstate == kRejectedState;
    const bool letters = error.sqlstate == kLettersState;
    const bool form = error.sqlstate == kFormState;
    if (!duplicate && !rejected && !letters && !form) {
        return fail(std::move(error));
    }
    // The session adds the detail in parentheses behind the text, which has none itself.
    const auto open = error.message.find('(');
    const auto detail = open == std::string::npos || !error.message.ends_with(')')
                            ? std::string()
                            : error.message.substr(open + 1, error.message.size() - open - 2);
    const auto parsed = json::Document::parse(detail);
    const Value list = parsed ? parsed->root() : Value();
    bool fits = list.is(json::Kind::array) && list.size() > 0;
    TransactionOutcome outcome;
    outcome.kind = duplicate ? TransactionOutcome::Kind::duplicate
                   : form    ? TransactionOutcome::Kind::form
                   : letters ? TransactionOutcome::Kind::letters
                             : TransactionOutcome::Kind::rejected;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Value element = list.at(i);
        if (duplicate) {
            const auto segment = place(element["s"], fits);
            const auto frame = place(element["i"], fits);
            const auto first = static_cast<std::int64_t>(place(element["off"], fits));
            outcome.repeats.push_back({segment, frame, Offset{first}});
        } else if (form) {
            const auto segment = place(element["s"], fits);
            const auto encrypted = element["encrypted"].boolean();
            fits = fits && encrypted;
            outcome.forms.push_back({segment, encrypted.value_or(false)});
        } else if (letters) {
            outcome.wanted.push_back(wanted_of(element, fits));
        } else if (element["lease"].is(json::Kind::string)) {
            outcome.lost_leases.emplace_back(element["lease"].string());
        } else {
            outcome.rejections.push_back(rejection_of(element, fits));
        }
    }
    if (!fits) {
        return fail(Errc::internal, "log_transaction_v1: its refusal cannot be read",
                    error.sqlstate);
    }
    return outcome;
}

Result<std::vector<TimerVerdict>> read_timers(std::string_view json, std::size_t ops) {
    const auto parsed = json::Document::parse(json);
    const Value root = parsed ? parsed->root() : Value();
    const Value list = root["timers"];
    const auto now = root["now"].integer();
    bool fits = ops == 0 || (list.is(json::Kind::array) && list.size() == ops && now);
    std::vector<TimerVerdict> verdicts;
    for (std::size_t i = 0; fits && i < ops; ++i) {
        const Value element = list.at(i);
        const auto kind = timer_verdict(element["status"].string());
        if (!kind) {
            return fail(kind.error());
        }
        TimerVerdict verdict;
        verdict.kind = *kind;
        verdict.transaction_id = element["txn"].string();
        if (verdict.set()) {
            const auto id = parse_uuid(element["id"].string());
            const auto at = element["at"].integer();
            fits = id && at;
            verdict.message_id = id.value_or(Uuid{});
            verdict.deliver_at = WallTime{std::chrono::microseconds(at.value_or(0))};
            verdict.left = std::chrono::microseconds(at.value_or(0) - now.value_or(0));
        }
        verdicts.push_back(std::move(verdict));
    }
    if (!fits) {
        return fail(Errc::internal, "log_transaction_v1: its timers cannot be read");
    }
    return verdicts;
}

Result<std::vector<Settled>> read_settled(std::string_view json) {
    const auto parsed = json::Document::parse(json);
    const Value list = parsed ? parsed->root() : Value();
    bool fits = list.is(json::Kind::array);
    std::vector<Settled> all;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Value element = list.at(i);
        Settled settled;
        const auto id = parse_uuid(element["partitionId"].string());
        const auto released = element["leaseReleased"].boolean();
        const auto covered = element["covered"].boolean();
        const auto freed = element["freed"].boolean();
        fits = fits && id && released && covered && freed &&
               element["queue"].is(json::Kind::string) &&
               element["partition"].is(json::Kind::string) &&
               element["group"].is(json::Kind::string) && element["items"].is(json::Kind::array) &&
               element["filed"].is(json::Kind::array);
        settled.partition_id = id.value_or(Uuid{});
        settled.group = element["group"].string();
        settled.queue = element["queue"].string();
        settled.partition = element["partition"].string();
        settled.lease_released = released.value_or(false);
        settled.covered = covered.value_or(false);
        settled.freed = freed.value_or(false);
        settled.acks = places(element["items"], fits);
        settled.filed = places(element["filed"], fits);
        all.push_back(std::move(settled));
    }
    if (!fits) {
        return fail(Errc::internal, "log_transaction_v1: its acks cannot be read");
    }
    return all;
}

void PgTransactionStore::transact(SteadyTime deadline, TransactionCall call,
                                  Done<TransactionOutcome> done) {
    const auto lane = call.segments.empty() && call.timers.empty() ? Lane::ack : Lane::push;
    const auto segments = call.segments.size();
    const auto timers = call.timers.size();
    asker_.ask<TransactionOutcome>(
        lane, deadline,
        [call = std::move(call)](Session& session) { return run_transaction(session, call); },
        [segments, timers](const Rows& rows) { return decode(rows, segments, timers); },
        [done = std::move(done)](Result<TransactionOutcome> outcome) {
            done(outcome ? std::move(outcome) : read_refusal(std::move(outcome.error())));
        });
}

} // namespace queen::store
