#include "base/json.hpp"
#include "base/text.hpp"
#include "broker/message_status.hpp"
#include "broker/page_cursor.hpp"
#include "http/error_map.hpp"
#include "http/handlers.hpp"
#include "http/page_reader.hpp"
#include "http/replay_writer.hpp"
#include "model/names.hpp"

#include <array>
#include <optional>

namespace queen::http {
namespace {

constexpr std::int32_t kDefaultMessages = 200;

Result<broker::BrowseQuery> read_list(const Call& call) {
    auto page = read_page(call.query(), kDefaultMessages);
    if (!page) {
        return fail(page.error());
    }
    broker::BrowseQuery query;
    MessageQuery& filter = query.filter;
    filter.tenant = call.tenant();
    std::optional<std::string> alias;
    for (const auto& [name, field] :
         {std::pair{"queue", &filter.queue}, std::pair{"partition", &filter.partition},
          std::pair{"namespace", &filter.name_space}, std::pair{"ns", &alias},
          std::pair{"task", &filter.task}}) {
        auto read = read_filter(call.query(), name);
        if (!read) {
            return fail(read.error());
        }
        *field = std::move(*read);
    }
    if (alias) {
        if (filter.name_space && *filter.name_space != *alias) {
            return fail(Errc::invalid_argument, "namespace and ns are the same and differ");
        }
        filter.name_space = std::move(alias);
    }
    const auto status = call.query().text("status");
    if (!status) {
        return fail(status.error());
    }
    if (*status && !(*status)->empty()) {
        filter.status = broker::parse_message_status(**status);
        if (!filter.status) {
            return fail(
                not_allowed("status", "pending, processing, completed or dead_letter", **status));
        }
    }
    filter.from = page->from;
    filter.to = page->to;
    query.limit = page->limit;
    query.offset = page->offset;
    if (page->after) {
        filter.after = broker::read_message_cursor(*page->after);
        if (!filter.after) {
            return fail(not_allowed("after", "the next of an earlier page", *page->after));
        }
    }
    return query;
}

// A message as a path names it.
struct Address {
    Uuid partition_id;
    std::string transaction_id;
    std::array<std::pair<std::string_view, std::string>, 2> members() const {
        return {{{"partitionId", to_string(partition_id)}, {"transactionId", transaction_id}}};
    }
};

// Answers the call when it cannot be read.
std::optional<Address> address_of(const std::shared_ptr<Call>& call) {
    const auto id = read_id("partitionId", call->parameter("partitionId"));
    if (!id) {
        call->reply(error_reply(id.error()));
        return std::nullopt;
    }
    const std::string_view transaction = call->parameter("transactionId");
    if (auto ok = check_transaction_id("transactionId", transaction); !ok) {
        call->reply(error_reply(ok.error()));
        return std::nullopt;
    }
    return Address{*id, std::string(transaction)};
}

Reply render_deleted(const Address& address, std::int64_t gone) {
    Reply reply;
    reply.status = gone > 0 ? 200 : rule_for(Errc::not_found).status;
    json::Writer writer(reply.body);
    writer.begin_object();
    writer.key("success").boolean(gone > 0);
    for (const auto& [name, value] : address.members()) {
        writer.key(name).string(value);
    }
    if (gone > 0) {
        writer.key("deleted").integer(gone);
        writer.key("message").string("Message deleted successfully");
    } else {
        writer.key("error").string("Message not found");
        writer.key("code").string(rule_for(Errc::not_found).code);
        writer.key("message").string(
            "No dead letter has this address; messages in a queue cannot be deleted");
    }
    writer.end_object();
    return reply;
}

} // namespace

void list_messages(const std::shared_ptr<Call>& call) {
    auto query = read_list(*call);
    if (!query) {
        call->reply(error_reply(query.error()));
        return;
    }
    call->services().messages.list(
        std::move(*query), [call](Result<std::optional<std::string>> body) {
            call->guard([&] {
                call->reply(body ? json_reply(std::move(**body))
                                 : error_reply(body.error(), "list failed"));
            });
        });
}

void message_detail(const std::shared_ptr<Call>& call) {
    const auto address = address_of(call);
    if (!address) {
        return;
    }
    call->services().messages.find(
        std::string(call->tenant()), address->partition_id, address->transaction_id,
        [call](Result<std::optional<std::string>> body) {
            call->guard([&] {
                if (!body) {
                    call->reply(error_reply(body.error(), "message failed"));
                } else if (!*body) {
                    call->reply(error_reply({Errc::not_found, "Message not found", {}}));
                } else {
                    call->reply(json_reply(std::move(**body)));
                }
            });
        });
}

void delete_message(const std::shared_ptr<Call>& call) {
    const auto address = address_of(call);
    if (!address) {
        return;
    }
    call->services().letters.remove(
        std::string(call->tenant()), address->partition_id, address->transaction_id,
        [call, address = *address](const Result<std::int64_t>& gone) {
            call->guard([&] {
                call->reply(gone ? render_deleted(address, *gone)
                                 : error_reply(gone.error(), "delete failed"));
            });
        });
}

void retry_message(const std::shared_ptr<Call>& call) {
    const auto address = address_of(call);
    if (!address) {
        return;
    }
    call->services().letters.retry(
        std::string(call->tenant()), address->partition_id, address->transaction_id,
        [call, address = *address](const broker::Replay& replay) {
            call->guard([&] { call->reply(render_replay(replay, address.members())); });
        });
}

} // namespace queen::http
