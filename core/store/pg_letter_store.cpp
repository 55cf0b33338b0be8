#include "store/pg_letter_store.hpp"

#include "base/json.hpp"
#include "store/statements.hpp"

namespace queen::store {
namespace {

namespace sql = statements;

/// The columns of queen._letters, from `first` on.
DeadLetter read_letter(Row& row, int first) {
    const auto text = [&](int column) {
        return row.null(first + column) ? std::string() : std::string(row.text(first + column));
    };
    const auto id = [&](int column) {
        return row.null(first + column) ? Uuid{} : row.uuid(first + column);
    };
    DeadLetter letter;
    letter.id = row.uuid(first);
    letter.partition_id = row.uuid(first + 1);
    letter.queue = row.text(first + 2);
    letter.partition = row.text(first + 3);
    letter.group = row.text(first + 4);
    letter.offset = Offset{row.integer(first + 5)};
    letter.message_id = id(6);
    letter.transaction_id = text(7);
    letter.trace_id = id(8);
    letter.producer_sub = text(9);
    if (!row.null(first + 10)) {
        letter.payload = row.bytea(first + 10);
    }
    letter.encrypted = row.boolean(first + 11);
    letter.available = row.boolean(first + 12);
    if (!row.null(first + 13)) {
        letter.error = row.text(first + 13);
    }
    letter.retries = static_cast<std::int32_t>(row.integer(first + 14));
    if (!row.null(first + 15)) {
        letter.created_at = row.timestamptz(first + 15);
    }
    letter.failed_at = row.timestamptz(first + 16);
    if (!row.null(first + 17)) {
        letter.timer_key = row.text(first + 17);
    }
    return letter;
}

Result<LetterPage> decode_page(const Rows& rows) {
    LetterPage page;
    for (int i = 0; i < rows.count(); ++i) {
        Row row(rows, i);
        page.total = row.integer(0);
        if (!row.null(1)) {
            page.letters.push_back(read_letter(row, 1));
        }
        if (auto status = row.status(); !status) {
            return fail(std::move(status.error()));
        }
    }
    return page;
}

Result<std::optional<DeadLetter>> decode_letter(const Rows& rows) {
    if (rows.count() == 0) {
        return std::optional<DeadLetter>{};
    }
    Row row(rows, 0);
    std::optional<DeadLetter> letter = read_letter(row, 0);
    if (auto status = row.status(); !status) {
        return fail(std::move(status.error()));
    }
    return letter;
}

Result<LetterMoved> decode_moved(const Rows& rows) {
    const auto text = only_text(rows);
    if (!text) {
        return fail(text.error());
    }
    const auto document = json::Document::parse(*text);
    if (!document) {
        return fail(Errc::internal, "log_dlq_move_v1: " + document.error().message);
    }
    const json::Value root = document->root();
    const std::string_view result = root["result"].string();
    LetterMoved moved;
    if (result == "gone") {
        moved.result = LetterMoved::Result::gone;
        return moved;
    }
    if (const auto wanted = root["encrypted"].boolean(); result == "refused" && wanted) {
        moved.result = LetterMoved::Result::other_form;
        moved.wants_encrypted = *wanted;
        return moved;
    }
    const auto partition = parse_uuid(root["partitionId"].string());
    const auto offset = root["offset"].integer();
    if ((result != "moved" && result != "duplicate") || !partition || !offset) {
        return fail(Errc::internal, "log_dlq_move_v1: not an answer: " + std::string(*text));
    }
    moved.result = result == "moved" ? LetterMoved::Result::moved : LetterMoved::Result::duplicate;
    moved.group = root["consumerGroup"].string();
    moved.partition_id = *partition;
    moved.offset = Offset{*offset};
    return moved;
}

/// A statement whose first argument is the tenant; `rest` adds the others.
template <class Rest>
std::function<Result<Rows>(Session&)> of_tenant(const Statement& statement, std::string tenant,
                                                Rest rest) {
    return [&statement, tenant = std::move(tenant),
            rest = std::move(rest)](Session& session) -> Result<Rows> {
        const auto id = tenant_id(tenant);
        if (!id) {
            return fail(id.error());
        }
        Parameters parameters;
        parameters.uuid(*id);
        rest(parameters);
        return session.run(statement, parameters);
    };
}

} // namespace

void PgLetterStore::list(Deadline deadline, LetterQuery query, Done<LetterPage> done) {
    std::string tenant = query.tenant;
    asker_.ask<LetterPage>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqList, std::move(tenant),
                  [query = std::move(query)](Parameters& parameters) {
                      std::optional<WallTime> at;
                      std::optional<Uuid> id;
                      if (query.after) {
                          at = query.after->failed_at;
                          id = query.after->id;
                      }
                      parameters.text_or_null(query.queue).text_or_null(query.group);
                      parameters.text_or_null(query.partition);
                      parameters.timestamptz_or_null(query.from).timestamptz_or_null(query.to);
                      parameters.timestamptz_or_null(at).uuid_or_null(id);
                      parameters.int4(query.limit).int4(query.offset).int8(query.bytes);
                  }),
        decode_page, std::move(done), Repeat::once);
}

void PgLetterStore::find(Deadline deadline, std::string tenant, Uuid id,
                         Done<std::optional<DeadLetter>> done) {
    asker_.ask<std::optional<DeadLetter>>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqFind, std::move(tenant),
                  [id](Parameters& parameters) { parameters.uuid(id); }),
        decode_letter, std::move(done), Repeat::once);
}

void PgLetterStore::newest(Deadline deadline, std::string tenant, Uuid partition_id,
                           std::string transaction_id, Done<std::optional<DeadLetter>> done) {
    asker_.ask<std::optional<DeadLetter>>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqNewest, std::move(tenant),
                  [partition_id, txn = std::move(transaction_id)](Parameters& parameters) {
                      parameters.uuid(partition_id).text(txn);
                  }),
        decode_letter, std::move(done), Repeat::once);
}

void PgLetterStore::remove(Deadline deadline, std::string tenant, Uuid partition_id,
                           std::string transaction_id, Done<std::int64_t> done) {
    asker_.ask<std::int64_t>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqDelete, std::move(tenant),
                  [partition_id, txn = std::move(transaction_id)](Parameters& parameters) {
                      parameters.uuid(partition_id).text(txn);
                  }),
        decode_count, std::move(done));
}

void PgLetterStore::purge(Deadline deadline, std::string tenant, std::string queue,
                          std::optional<std::string> group, Done<std::int64_t> done) {
    asker_.ask<std::int64_t>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqPurge, std::move(tenant),
                  [queue = std::move(queue), group = std::move(group)](Parameters& parameters) {
                      parameters.text(queue).text_or_null(group);
                  }),
        decode_count, std::move(done));
}

void PgLetterStore::move(Deadline deadline, LetterMove move, Done<LetterMoved> done) {
    std::string tenant = move.tenant;
    asker_.ask<LetterMoved>(
        Lane::admin, deadline,
        of_tenant(sql::kDlqMove, std::move(tenant),
                  [move = std::move(move)](Parameters& parameters) {
                      parameters.uuid(move.id).text(move.queue).text(move.partition);
                      parameters.bytea(move.hash.view()).bytea(move.blob);
                      parameters.boolean(move.encrypted);
                  }),
        decode_moved, std::move(done));
}

} // namespace queen::store
