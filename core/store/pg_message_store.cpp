#include "store/pg_message_store.hpp"

#include "base/json.hpp"
#include "store/statements.hpp"

namespace queen::store {
namespace {

namespace sql = statements;
using json::Kind;
using json::Value;

Error not_an_answer(std::string_view what) {
    return {Errc::internal, "the store's answer about messages: " + std::string(what), {}};
}

WallTime at_micros(std::int64_t micros) {
    return WallTime{std::chrono::microseconds(micros)};
}

/// The value of queen._message_place.
Result<MessagePlace> read_place(Value value) {
    const auto id = parse_uuid(value["id"].string());
    const auto priority = value["priority"].integer();
    if (!id || !priority || !value["groups"].is(Kind::array)) {
        return fail(not_an_answer("a partition without id, priority or groups"));
    }
    MessagePlace place;
    place.partition_id = *id;
    place.partition = value["partition"].string();
    place.queue = value["queue"].string();
    place.name_space = value["namespace"].string();
    place.task = value["task"].string();
    place.priority = *priority;
    const Value groups = value["groups"];
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const Value group = groups.at(i);
        const auto committed = group["committed"].integer();
        if (!committed) {
            return fail(not_an_answer("a group without a cursor"));
        }
        GroupPosition position;
        position.name = group["name"].string();
        position.committed = Offset{*committed};
        if (const auto leased = group["leasedTo"].integer()) {
            position.leased_to = Offset{*leased};
        }
        if (const auto expires = group["expires"].integer()) {
            position.lease_expires_at = at_micros(*expires);
        }
        place.groups.push_back(std::move(position));
    }
    return place;
}

Result<MessageSlices> decode_slices(const Rows& rows) {
    const auto text = only_text(rows);
    if (!text) {
        return fail(text.error());
    }
    return read_message_slices(*text);
}

Result<std::optional<FoundMessage>> decode_found(const Rows& rows) {
    if (rows.count() == 0) {
        return std::optional<FoundMessage>{};
    }
    Row row(rows, 0);
    const std::string_view json = row.text(0);
    FoundMessage found;
    found.options = row.text(1);
    if (!row.null(2)) {
        found.offset = Offset{row.integer(2)};
    }
    if (!row.null(3)) {
        found.segment.emplace();
        found.segment->base = Offset{row.integer(3)};
        found.segment->created_at = row.timestamptz(4);
        found.segment->blob = row.bytea(5);
    }
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    const auto document = json::Document::parse(json);
    if (!document) {
        return fail(not_an_answer(document.error().message));
    }
    auto place = read_place(document->root());
    if (!place) {
        return fail(place.error());
    }
    found.place = std::move(*place);
    return std::optional(std::move(found));
}

} // namespace

Result<MessageSlices> read_message_slices(std::string_view json) {
    const auto document = json::Document::parse(json);
    if (!document) {
        return fail(not_an_answer(document.error().message));
    }
    const Value root = document->root();
    MessageSlices out;
    const auto complete = root["complete"].boolean();
    if (!complete) {
        return fail(not_an_answer("no word on whether it is complete"));
    }
    out.complete = *complete;
    for (std::size_t i = 0; i < root["places"].size(); ++i) {
        auto place = read_place(root["places"].at(i));
        if (!place) {
            return fail(place.error());
        }
        out.places.push_back(std::move(*place));
    }
    const auto place_of = [&](Value value) -> std::optional<std::size_t> {
        const auto index = value.integer();
        if (!index || *index < 0 || static_cast<std::size_t>(*index) >= out.places.size()) {
            return std::nullopt;
        }
        return static_cast<std::size_t>(*index);
    };
    for (std::size_t i = 0; i < root["slices"].size(); ++i) {
        const Value value = root["slices"].at(i);
        const auto place = place_of(value.at(0));
        const auto base = value.at(1).integer();
        const auto created = value.at(2).integer();
        const auto low = value.at(3).integer();
        const auto high = value.at(4).integer();
        const auto bytes = value.at(5).integer();
        if (!place || !base || !created || !low || !high || !bytes || *low < *base ||
            *high < *low) {
            return fail(not_an_answer("not a slice"));
        }
        out.slices.push_back(
            {*place, Offset{*base}, at_micros(*created), Offset{*low}, Offset{*high}, *bytes});
    }
    for (std::size_t i = 0; i < root["dead"].size(); ++i) {
        const Value value = root["dead"].at(i);
        const auto place = place_of(value.at(0));
        const auto offset = value.at(1).integer();
        if (!place || !offset) {
            return fail(not_an_answer("not a dead letter's place"));
        }
        out.dead.emplace_back(*place, Offset{*offset});
    }
    return out;
}

void PgMessageStore::slices(Deadline deadline, MessageQuery query, Done<MessageSlices> done) {
    asker_.ask<MessageSlices>(
        Lane::admin, deadline,
        [query = std::move(query)](Session& session) -> Result<Rows> {
            const auto tenant = tenant_id(query.tenant);
            if (!tenant) {
                return fail(tenant.error());
            }
            std::optional<std::string_view> status;
            if (query.status) {
                status = word_of(*query.status);
            }
            Parameters parameters;
            parameters.uuid(*tenant).text_or_null(query.queue).text_or_null(query.partition);
            parameters.text_or_null(query.name_space).text_or_null(query.task);
            parameters.text_or_null(status);
            parameters.timestamptz_or_null(query.from).timestamptz_or_null(query.to);
            if (query.after) {
                parameters.timestamptz_or_null(query.after->created_at);
                parameters.uuid(query.after->partition_id).int8(query.after->offset.value());
            } else {
                parameters.null(oid::kTimestamptz).null(oid::kUuid).null(oid::kInt8);
            }
            parameters.int4(query.want);
            return session.run(sql::kMessages, parameters);
        },
        decode_slices, std::move(done), Repeat::once);
}

void PgMessageStore::segments(Deadline deadline, std::vector<std::pair<Uuid, Offset>> wanted,
                              Done<std::vector<std::optional<std::string>>> done) {
    const std::size_t count = wanted.size();
    asker_.ask<std::vector<std::optional<std::string>>>(
        Lane::admin, deadline,
        [wanted = std::move(wanted)](Session& session) {
            std::vector<Uuid> ids;
            std::vector<std::int64_t> bases;
            for (const auto& [id, base] : wanted) {
                ids.push_back(id);
                bases.push_back(base.value());
            }
            Parameters parameters;
            parameters.uuid_array(ids).int8_array(bases);
            return session.run(sql::kMessageSegments, parameters);
        },
        [count](const Rows& rows) -> Result<std::vector<std::optional<std::string>>> {
            std::vector<std::optional<std::string>> blobs(count);
            for (int i = 0; i < rows.count(); ++i) {
                Row row(rows, i);
                const auto nth = row.integer(0);
                const auto blob = row.bytea(1);
                if (auto status = row.status(); !status) {
                    return fail(std::move(status.error()));
                }
                if (nth < 0 || static_cast<std::size_t>(nth) >= count) {
                    return fail(not_an_answer("a segment nobody asked for"));
                }
                blobs[static_cast<std::size_t>(nth)].emplace(blob);
            }
            return blobs;
        },
        std::move(done), Repeat::once);
}

void PgMessageStore::find(Deadline deadline, std::string tenant, Uuid partition_id, TxnHash hash,
                          Done<std::optional<FoundMessage>> done) {
    asker_.ask<std::optional<FoundMessage>>(
        Lane::admin, deadline,
        [tenant = std::move(tenant), partition_id, hash](Session& session) -> Result<Rows> {
            const auto id = tenant_id(tenant);
            if (!id) {
                return fail(id.error());
            }
            Parameters parameters;
            parameters.uuid(*id).uuid(partition_id).bytea(hash.view());
            return session.run(sql::kMessage, parameters);
        },
        decode_found, std::move(done), Repeat::once);
}

} // namespace queen::store
