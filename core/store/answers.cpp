#include "store/answers.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <limits>

namespace queen::store {
namespace {

using json::Kind;
using json::Value;

/// Reads members of the procedures' answers. The first member that is absent or of another kind is
/// remembered; reads after it return empty values.
class Reader {
public:
    explicit Reader(std::string_view procedure) : procedure_(procedure) {}

    std::int64_t integer(const Value& object, std::string_view name) {
        const auto value = object[name].integer();
        if (!value) {
            fault(name, "an integer");
        }
        return value.value_or(0);
    }
    std::int64_t integer_or(const Value& object, std::string_view name, std::int64_t fallback) {
        return absent(object[name]) ? fallback : integer(object, name);
    }
    std::uint32_t index(const Value& object, std::string_view name) {
        const std::int64_t value = integer(object, name);
        if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
            fault(name, "a 32-bit count");
            return 0;
        }
        return static_cast<std::uint32_t>(value);
    }
    bool boolean_or(const Value& object, std::string_view name, bool fallback) {
        if (absent(object[name])) {
            return fallback;
        }
        const auto value = object[name].boolean();
        if (!value) {
            fault(name, "a boolean");
        }
        return value.value_or(fallback);
    }
    std::string string(const Value& object, std::string_view name) {
        if (!object[name].is(Kind::string)) {
            fault(name, "a string");
        }
        return std::string(object[name].string());
    }
    std::string string_or_empty(const Value& object, std::string_view name) {
        return absent(object[name]) ? std::string{} : string(object, name);
    }
    Uuid uuid(const Value& object, std::string_view name) {
        const auto id = parse_uuid(object[name].string());
        if (!id) {
            fault(name, "a uuid");
        }
        return id.value_or(Uuid{});
    }
    Uuid uuid_or_unknown(const Value& object, std::string_view name) {
        return absent(object[name]) ? Uuid{} : uuid(object, name);
    }
    WallTime time(const Value& object, std::string_view name) {
        const auto at = parse_time(object[name].string());
        if (!at) {
            fault(name, "a time");
        }
        return at.value_or(WallTime{});
    }
    std::vector<TxnHash> hashes(const Value& object, std::string_view name) {
        const Value list = object[name];
        std::vector<TxnHash> out;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto bytes = from_hex(list.at(i).string());
            TxnHash hash;
            if (!bytes || bytes->size() != hash.bytes.size()) {
                fault(name, "hashes of 32 hex characters");
                return {};
            }
            std::copy(bytes->begin(), bytes->end(), hash.bytes.begin());
            out.push_back(hash);
        }
        return out;
    }

    std::vector<std::int64_t> integers(const Value& object, std::string_view name) {
        const Value list = object[name];
        std::vector<std::int64_t> out;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto value = list.at(i).integer();
            if (!value) {
                fault(name, "integers");
                return {};
            }
            out.push_back(*value);
        }
        return out;
    }

    void fault(std::string_view name, std::string_view wanted) {
        if (fault_.empty()) {
            fault_ = std::string(procedure_) + ": member \"" + std::string(name) + "\" is not " +
                     std::string(wanted);
        }
    }
    Result<void> status() const {
        if (!fault_.empty()) {
            return fail(Errc::internal, fault_);
        }
        return {};
    }

private:
    static bool absent(const Value& value) {
        return value.is(Kind::missing) || value.is(Kind::null);
    }

    std::string_view procedure_;
    std::string fault_;
};

Result<json::Document> document(std::string_view procedure, std::string_view text) {
    auto parsed = json::Document::parse(text);
    if (!parsed) {
        return fail(Errc::internal, std::string(procedure) + ": " + parsed.error().message);
    }
    return parsed;
}

/// The value, unless the reader met a fault.
template <class T>
Result<T> unless_faulty(const Reader& read, T value) {
    if (auto status = read.status(); !status) {
        return fail(std::move(status.error()));
    }
    return value;
}

PushOutcome read_push_outcome(Reader& read, const Value& element) {
    PushOutcome out;
    const std::string status = read.string(element, "status");
    if (status == "queued") {
        out.base = Offset{read.integer(element, "baseOffset")};
        out.created_at = read.time(element, "createdAt");
        out.partition_id = read.uuid(element, "partitionId");
    } else if (status == "duplicate") {
        out.duplicate = true;
        out.partition_id = read.uuid_or_unknown(element, "partitionId");
        const Value repeats = element["dups"];
        for (std::size_t i = 0; i < repeats.size(); ++i) {
            out.repeats.push_back(
                {read.index(repeats.at(i), "i"), Offset{read.integer(repeats.at(i), "off")}});
        }
    } else if (status == "form") {
        out.wants_encrypted = read.boolean_or(element, "encrypted", false);
    } else {
        read.fault("status", "queued, duplicate or form");
    }
    out.window = std::chrono::seconds{read.integer_or(element, "window", 0)};
    out.probed = read.integer_or(element, "probed", 0);
    if (element["after"].is(Kind::string)) {
        out.after = read.time(element, "after");
    }
    return out;
}

PoppedPartition read_partition(Reader& read, const Value& element,
                               const std::vector<std::string_view>& blobs, std::size_t& next) {
    PoppedPartition out;
    out.queue = read.string_or_empty(element, "queue");
    out.partition = read.string(element, "partition");
    out.partition_id = read.uuid(element, "partitionId");
    out.attempt = static_cast<std::int32_t>(read.integer_or(element, "deliveryAttempt", 1));
    if (element["leaseLeftMs"].is(Kind::number)) {
        out.lease_left = std::chrono::milliseconds{read.integer(element, "leaseLeftMs")};
    }
    out.drained = read.integer(element, "batchEnd") >= read.integer(element, "lastOff"); // CL-14
    const Value segments = element["segments"];
    for (std::size_t i = 0; i < segments.size(); ++i, ++next) {
        const Value segment = segments.at(i);
        if (next >= blobs.size()) {
            read.fault("segments", "as long as the blobs");
            break;
        }
        out.segments.push_back({.base = Offset{read.integer(segment, "seq")},
                                .start = read.index(segment, "startOff"),
                                .take = read.index(segment, "take"),
                                .created_at = read.time(segment, "createdAt"),
                                .blob = std::string(blobs[next])});
    }
    return out;
}

} // namespace

Result<std::vector<PushOutcome>> read_push(std::string_view json, std::size_t segments) {
    const auto parsed = document("log_push_multi_v1", json);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("log_push_multi_v1");
    const Value list = parsed->root();
    if (!list.is(Kind::array) || list.size() != segments) {
        read.fault("", "one element per segment");
    }
    std::vector<PushOutcome> out;
    out.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        out.push_back(read_push_outcome(read, list.at(i)));
    }
    return unless_faulty(read, std::move(out));
}

Result<PopResult> read_pop(std::string_view meta, const std::vector<std::string_view>& blobs) {
    const auto parsed = document("pop", meta);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("pop");
    const Value root = parsed->root();
    PopResult out;
    out.seeded = read.boolean_or(root, "seeded", true);
    out.delay_seconds = read.integer_or(root, "delay", 0);
    out.window_seconds = read.integer_or(root, "window", 0);
    out.min_pop_wait = std::chrono::milliseconds{read.integer_or(root, "minWait", 0)};
    out.conflates = read.boolean_or(root, "conflation", false);
    out.conflation_conflict = read.boolean_or(root, "conflationConflict", false);
    const Value partitions = root["partitions"];
    std::size_t next = 0; // blob of the next segment
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        out.partitions.push_back(read_partition(read, partitions.at(i), blobs, next));
    }
    if (next != blobs.size()) {
        read.fault("segments", "as long as the blobs");
    }
    return unless_faulty(read, std::move(out));
}

Result<void> read_states(std::string_view json, PopResult& result) {
    const auto parsed = document("log_pop_list_v1", json);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("log_pop_list_v1");
    const Value list = parsed->root();
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Value element = list.at(i);
        CandidateState state;
        state.partition = read.string(element, "p");
        state.partition_id = read.uuid_or_unknown(element, "id");
        const std::string kind = read.string(element, "s");
        if (kind == "took") {
            state.kind = CandidateState::Kind::took;
        } else if (kind == "leased") {
            state.kind = CandidateState::Kind::leased;
            state.left = std::chrono::milliseconds{read.integer_or(element, "leftMs", 0)};
        } else if (kind != "empty") {
            read.fault("s", "took, empty or leased");
        }
        result.states.push_back(std::move(state));
    }
    return read.status();
}

Result<HashAckOutcome> read_hash_ack(std::string_view json) {
    const auto parsed = document("log_ack_by_hash_v1", json);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("log_ack_by_hash_v1");
    const Value root = parsed->root();
    HashAckOutcome out;
    out.ok = read.boolean_or(root, "ok", false);
    out.error = read.string_or_empty(root, "error");
    if (!out.ok && out.error.empty()) {
        read.fault("error", "there although ok is not true");
    }
    out.acked = read.integer_or(root, "acked", 0);
    out.lease_released = read.boolean_or(root, "leaseReleased", false);
    out.covered = read.boolean_or(root, "covered", false);
    out.freed = read.boolean_or(root, "freed", false);
    out.dropped = read.boolean_or(root, "dropped", false);
    out.conflated = read.integer_or(root, "conflated", 0);
    if (root["off"].is(Kind::number)) {
        out.head = Offset{read.integer(root, "off")};
    }
    out.queue = read.string_or_empty(root, "queue");
    out.partition = read.string_or_empty(root, "partition");
    for (const auto offset : read.integers(root, "letters")) {
        out.wanted.emplace_back(offset);
    }
    for (const auto item : read.integers(root, "filedItems")) {
        out.filed.push_back(static_cast<std::size_t>(item));
    }
    for (const auto item : read.integers(root, "rejectedItems")) {
        out.rejected.push_back(static_cast<std::size_t>(item));
    }
    out.noop = read.hashes(root, "noopHashes");
    out.stale = read.hashes(root, "staleHashes");
    out.unresolved = read.hashes(root, "unresolvedHashes");
    return unless_faulty(read, std::move(out));
}

Result<std::vector<PositionAckOutcome>> read_position_acks(std::string_view json,
                                                           std::size_t count) {
    const auto parsed = document("log_ack_multi_v1", json);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("log_ack_multi_v1");
    const Value list = parsed->root()["results"];
    if (!list.is(Kind::array) || list.size() != count) {
        read.fault("results", "one element per ack");
    }
    std::vector<PositionAckOutcome> out;
    out.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        out.push_back({.ok = read.boolean_or(list.at(i), "ok", false),
                       .error = read.string_or_empty(list.at(i), "error"),
                       .acked = read.integer_or(list.at(i), "acked", 0),
                       .lease_released = read.boolean_or(list.at(i), "leaseReleased", false),
                       .covered = read.boolean_or(list.at(i), "covered", false),
                       .queue = read.string_or_empty(list.at(i), "queue"),
                       .partition = read.string_or_empty(list.at(i), "partition"),
                       .conflated = read.integer_or(list.at(i), "conflated", 0)});
    }
    return unless_faulty(read, std::move(out));
}

Result<RenewOutcome> read_renew(std::string_view json) {
    const auto parsed = document("log_renew_lease_v1", json);
    if (!parsed) {
        return fail(parsed.error());
    }
    Reader read("log_renew_lease_v1");
    const Value root = parsed->root();
    RenewOutcome out;
    out.renewed = read.integer(root, "renewed");
    if (root["expiresAt"].is(Kind::string)) {
        out.expires_at = read.time(root, "expiresAt");
    }
    return unless_faulty(read, out);
}

} // namespace queen::store
