#include "http/call.hpp"

#include "http/error_map.hpp"
#include "http/request_names.hpp"

#include <Poco/Logger.h>

#include <exception>

namespace queen::http {

Call::Call(const Services& services, Request request, std::shared_ptr<Exchange> exchange,
           Parameters parameters)
    : services_(services), request_(std::move(request)), exchange_(std::move(exchange)),
      parameters_(std::move(parameters)) {}

std::string_view Call::parameter(std::string_view name) const noexcept {
    for (const auto& [key, value] : parameters_) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

void Call::reply(Reply reply, std::function<void()> undelivered) {
    if (!replied_.exchange(true)) {
        exchange_->reply(std::move(reply), std::move(undelivered));
    }
}

Result<void> Call::check_parameters() {
    std::string_view queue;
    std::string_view partition;
    std::string_view group;
    for (auto& [name, value] : parameters_) {
        Result<std::string> read = fail(Errc::internal, {});
        if (name == "queue") {
            read = read_queue(value);
        } else if (name == "partition") {
            read = read_partition(value);
        } else if (name == "group") {
            read = read_group(value);
        } else {
            continue;
        }
        if (!read) {
            return fail(read.error());
        }
        value = std::move(*read);
        (name == "queue" ? queue : name == "partition" ? partition : group) = value;
    }
    return check_fit(tenant(), queue, group, partition);
}

Result<void> Call::check_query() {
    auto query = Query::parse(request_.query);
    if (!query) {
        return fail(std::move(query).error());
    }
    query_ = std::move(*query);
    return {};
}

Done<std::optional<std::string>> Call::figures(std::string_view context, std::string_view missing) {
    return [self = shared_from_this(), context, missing](Result<std::optional<std::string>> json) {
        self->guard([&] {
            if (!json) {
                self->reply(error_reply(json.error(), context));
            } else if (!*json) {
                self->reply(error_reply({Errc::not_found, std::string(missing), {}}));
            } else {
                self->reply(json_reply(std::move(**json)));
            }
        });
    };
}

void Call::guard(const std::function<void()>& render) noexcept {
    try {
        render();
    } catch (const std::exception& exception) {
        Poco::Logger::get("http").error("request failed method=" + request_.method + " path=" +
                                        request_.path + " reason=\"" + exception.what() + "\"");
        reply(error_reply({Errc::internal, "the request failed inside the broker", {}}));
    }
}

} // namespace queen::http
