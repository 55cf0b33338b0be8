#include "http/configure_reader.hpp"

#include "base/json.hpp"
#include "http/query.hpp"
#include "http/request_names.hpp"
#include "model/queue_options.hpp"

#include <algorithm>

namespace queen::http {
namespace {

using json::Kind;
using json::Value;
using Refusal = tl::unexpected<ConfigurationError>;

Refusal refuse(std::string text, std::string_view option = {}) {
    return Refusal(
        ConfigurationError{{Errc::invalid_argument, std::move(text), {}}, std::string(option)});
}
Refusal refuse(Error error, std::string_view option = {}) {
    return Refusal(ConfigurationError{std::move(error), std::string(option)});
}
Refusal unreadable(Error error) {
    return Refusal(ConfigurationError{std::move(error), {}, true});
}

bool absent(Value value) noexcept {
    return value.is(Kind::missing) || value.is(Kind::null);
}

bool is_label(std::string_view name) noexcept {
    return name == "namespace" || name == "task";
}

bool is_frame(std::string_view name) noexcept { // of the request, not options
    return name == "queue" || name == "mode" || name == "options";
}

std::string option_names() {
    std::string names = "namespace, task";
    for (const QueueOption& option : queue_options()) {
        names.append(", ").append(option.name);
    }
    return names;
}

std::string echo_of(Value value) {
    switch (value.kind()) {
    case Kind::missing:
    case Kind::null:
        return "null";
    case Kind::boolean:
        return value.boolean().value_or(false) ? "true" : "false";
    case Kind::number:
        return std::string(value.raw_number());
    case Kind::string:
        return std::string(value.string());
    case Kind::array:
        return "an array";
    case Kind::object:
        return "an object";
    }
    return {};
}

bool is_hold_name(std::string_view text, std::int64_t max) noexcept {
    return static_cast<std::int64_t>(text.size()) <= max &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

tl::expected<void, ConfigurationError> write_option(json::Writer& writer, const QueueOption& option,
                                                    Value value, bool has_key) {
    switch (option.type) {
    case QueueOption::Type::integer: {
        const std::string allowed = "an integer from " + std::to_string(option.min) + " to " +
                                    std::to_string(option.max) +
                                    (option.unit.empty() ? "" : " " + std::string(option.unit));
        auto number = value.integer();
        if (number && option.clamps) {
            number = std::clamp(*number, option.min, option.max);
        }
        if (!number || *number < option.min || *number > option.max) {
            return refuse(not_allowed(option.name, allowed, echo_of(value)), option.name);
        }
        writer.key(option.name).integer(*number);
        return {};
    }
    case QueueOption::Type::boolean: {
        const auto flag = value.boolean();
        if (!flag) {
            return refuse(not_allowed(option.name, "a boolean", echo_of(value)), option.name);
        }
        if (*flag && !has_key && option.name == "encryptionEnabled") {
            return refuse("encryptionEnabled needs an encryption key, and this broker has none",
                          option.name);
        }
        writer.key(option.name).boolean(*flag);
        return {};
    }
    case QueueOption::Type::text:
        if (!value.is(Kind::string) || !is_hold_name(value.string(), option.max)) {
            return refuse(not_allowed(option.name,
                                      "at most " + std::to_string(option.max) +
                                          " characters out of A-Z a-z 0-9 . _ -",
                                      echo_of(value)),
                          option.name);
        }
        writer.key(option.name).string(value.string());
        return {};
    }
    return {};
}

// The options of a request: its `options`, or its top level when it has none.
struct Sources {
    Value root;
    Value options;
    bool nested;
    bool has_key; ///< of the broker
};

// Every name must be known, and options stand in one place only.
tl::expected<void, ConfigurationError> check_keys(const Sources& from) {
    for (std::size_t i = 0; i < from.root.size(); ++i) {
        const std::string_view name = from.root.key_at(i);
        if (is_frame(name) || is_label(name)) {
            continue;
        }
        if (find_queue_option(name) == nullptr) {
            return refuse("unknown key \"" + std::string(name) +
                              "\"; allowed: queue, mode, options, " + option_names(),
                          name);
        }
        if (from.nested) {
            return refuse(std::string(name) + " stands beside options; put it into options", name);
        }
    }
    for (std::size_t i = 0; from.nested && i < from.options.size(); ++i) {
        const std::string_view name = from.options.key_at(i);
        if (!is_label(name) && find_queue_option(name) == nullptr) {
            return refuse(
                "unknown option \"" + std::string(name) + "\"; allowed: " + option_names(), name);
        }
    }
    return {};
}

// A label may stand at the top or among the options; the top one goes first.
tl::expected<void, ConfigurationError> write_label(json::Writer& writer, const Sources& from,
                                                   std::string_view name, bool merge) {
    Value value = from.root[name];
    if (absent(value) && from.nested && !from.options[name].is(Kind::missing)) {
        value = from.options[name];
    }
    if (absent(value)) {
        if (merge && value.is(Kind::null)) {
            writer.key(name).null();
        }
        return {};
    }
    if (!value.is(Kind::string)) {
        return refuse(not_allowed(name, "a string", echo_of(value)), name);
    }
    const auto label = read_label(name, value.string());
    if (!label) {
        return refuse(label.error(), name);
    }
    writer.key(name).string(*label);
    return {};
}

tl::expected<bool, ConfigurationError> read_merge(Value mode, bool merges) {
    if (absent(mode)) {
        return merges;
    }
    if (mode.string() == "merge") {
        return true;
    }
    if (mode.string() == "replace") {
        return false;
    }
    return refuse("mode must be \"merge\" or \"replace\", got " + echo_of(mode));
}

tl::expected<std::string, ConfigurationError> write_options(const Sources& from, bool merge) {
    std::string out;
    json::Writer writer(out);
    writer.begin_object().key("mode").string(merge ? "merge" : "replace");
    for (const std::string_view name : {"namespace", "task"}) {
        if (auto ok = write_label(writer, from, name, merge); !ok) {
            return Refusal(ok.error());
        }
    }
    for (const QueueOption& option : queue_options()) {
        const Value value = from.options[option.name];
        if (value.is(Kind::missing)) {
            continue;
        }
        if (value.is(Kind::null)) {
            if (merge) { // with replace what is left out is the default anyway
                writer.key(option.name).null();
            }
            continue;
        }
        if (auto ok = write_option(writer, option, value, from.has_key); !ok) {
            return Refusal(ok.error());
        }
    }
    writer.end_object();
    return out;
}

} // namespace

tl::expected<Configuration, ConfigurationError>
read_configuration(std::string_view tenant, std::string_view body, bool merges, bool has_key) {
    if (body.size() > kMaxConfigureBodyBytes) {
        return refuse(Error{Errc::too_large,
                            "a configure body may have " + std::to_string(kMaxConfigureBodyBytes) +
                                " bytes, got " + std::to_string(body.size()),
                            {}});
    }
    const auto document = json::Document::parse(body);
    if (!document) {
        return unreadable(document.error());
    }
    const Value root = document->root();
    if (!root.is(Kind::object)) {
        return unreadable({Errc::invalid_argument, "the body is not an object", {}});
    }
    if (absent(root["queue"])) {
        return refuse("queue is required");
    }
    if (!root["queue"].is(Kind::string)) {
        return refuse("queue must be a string");
    }
    auto queue = read_queue(root["queue"].string());
    if (!queue) {
        return refuse(queue.error());
    }
    if (auto fit = check_fit(tenant, *queue, {}, {}); !fit) {
        return refuse(fit.error());
    }
    const Value options = root["options"];
    if (!absent(options) && !options.is(Kind::object)) {
        return refuse("options must be an object, got " + echo_of(options), "options");
    }
    const Sources from{root, absent(options) ? root : options, !absent(options), has_key};
    if (auto ok = check_keys(from); !ok) {
        return Refusal(ok.error());
    }
    const auto merge = read_merge(root["mode"], merges);
    if (!merge) {
        return Refusal(merge.error());
    }
    auto written = write_options(from, *merge);
    if (!written) {
        return Refusal(written.error());
    }
    return Configuration{std::move(*queue), std::move(*written)};
}

} // namespace queen::http
