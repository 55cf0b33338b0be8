#include "queenctl/messages.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "model/uuid7.hpp"
#include "queenctl/json_text.hpp"
#include "settings/values.hpp"

#include <Poco/Exception.h>
#include <Poco/RegularExpression.h>

namespace queen::ctl {
namespace {

/// PCRE searches by recursion, and Poco's copy has no other bound. 6000 levels took under 6 MiB of
/// the usual 8 MiB stack with nested groups (2026-11-29, PCRE 8.39, x86-64); 16000 overflowed it.
constexpr std::string_view kLimits = "(*LIMIT_MATCH=1000000)(*LIMIT_RECURSION=6000)";

} // namespace

struct GroupRegex::Impl {
    explicit Impl(const std::string& pattern)
        : regex(std::string(kLimits) + pattern, Poco::RegularExpression::RE_UTF8) {}
    mutable Poco::RegularExpression regex;
};

GroupRegex::GroupRegex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GroupRegex::GroupRegex(GroupRegex&&) noexcept = default;
GroupRegex& GroupRegex::operator=(GroupRegex&&) noexcept = default;
GroupRegex::~GroupRegex() = default;

Result<GroupRegex> GroupRegex::compile(const std::string& pattern) {
    try {
        GroupRegex regex(std::make_unique<Impl>(pattern));
        try { // a reference to the first group compiles only when there is one
            Poco::RegularExpression probe(pattern + "|(?:\\1)", Poco::RegularExpression::RE_UTF8);
        } catch (const Poco::Exception&) {
            return fail(Errc::invalid_argument,
                        "the expression " + settings::shown(pattern) + " has no (group)");
        }
        return regex;
    } catch (const Poco::Exception& e) {
        return fail(Errc::invalid_argument, "the expression " + settings::shown(pattern) +
                                                " does not compile: " + e.message());
    }
}

Result<std::optional<std::string>> GroupRegex::first_group(const std::string& text) const {
    try {
        Poco::RegularExpression::MatchVec groups;
        if (impl_->regex.match(text, 0, groups) == 0) {
            return std::nullopt;
        }
        if (groups.size() < 2 || groups[1].offset == std::string::npos) {
            return std::nullopt;
        }
        return text.substr(groups[1].offset, groups[1].length);
    } catch (const Poco::Exception& e) {
        const bool limit = e.message().starts_with("PCRE error"); // LIMIT_MATCH or LIMIT_RECURSION
        return fail(Errc::invalid_argument,
                    limit ? "the expression takes too many steps on this line" : e.message());
    }
}

struct MessageMaker::Impl {
    MessageRules rules;
    std::optional<GroupRegex> partition_regex, transaction_regex;
    Uuid7 ids;

    Result<std::string> partition_of(const std::string& text, json::Value value) const;
    Result<std::string> transaction_of(std::int64_t line, const std::string& text,
                                       json::Value value);
};

namespace {

/// The text of a member that can be a name: a string or a number.
Result<std::string> name_at(json::Value value, const std::string& path) {
    const json::Value member = at_path(value, path);
    switch (member.kind()) {
    case json::Kind::string:
        return std::string(member.string());
    case json::Kind::number:
        return std::string(member.raw_number());
    case json::Kind::missing:
    case json::Kind::null:
        return fail(Errc::not_found, "has no field " + path);
    case json::Kind::boolean:
    case json::Kind::array:
    case json::Kind::object:
        break;
    }
    return fail(Errc::invalid_argument, "field " + path + " is neither a text nor a number");
}

Result<std::string> matched(const GroupRegex& regex, const std::string& text) {
    auto group = regex.first_group(text);
    if (!group) {
        return fail(group.error());
    }
    if (!*group || (*group)->empty()) {
        return fail(Errc::not_found, "does not match");
    }
    return std::move(**group);
}

} // namespace

Result<std::string> MessageMaker::Impl::partition_of(const std::string& text,
                                                     json::Value value) const {
    Result<std::string> name = rules.partition;
    if (!rules.partition_field.empty()) {
        name = name_at(value, rules.partition_field);
    } else if (partition_regex) {
        name = matched(*partition_regex, text);
    }
    if (!name && name.error().code == Errc::not_found && rules.partition_default) {
        return *rules.partition_default;
    }
    if (!name) {
        return fail(name.error().code, "no partition: " + name.error().message);
    }
    return name;
}

Result<std::string> MessageMaker::Impl::transaction_of(std::int64_t line, const std::string& text,
                                                       json::Value value) {
    Result<std::string> id{std::string()};
    if (rules.transaction_line) {
        return rules.transaction_prefix + std::to_string(line);
    }
    if (!rules.transaction_field.empty()) {
        id = name_at(value, rules.transaction_field);
    } else if (transaction_regex) {
        id = matched(*transaction_regex, text);
    } else { // ours, so that a repeated request cannot store a message twice
        return to_string(ids.next());
    }
    if (!id) {
        return fail(id.error().code, "no transaction id: " + id.error().message);
    }
    return id;
}

MessageMaker::MessageMaker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageMaker::MessageMaker(MessageMaker&&) noexcept = default;
MessageMaker& MessageMaker::operator=(MessageMaker&&) noexcept = default;
MessageMaker::~MessageMaker() = default;

Result<MessageMaker> MessageMaker::make(MessageRules rules) {
    auto impl = std::make_unique<Impl>();
    for (const auto& [pattern, regex] :
         {std::pair{&rules.partition_regex, &impl->partition_regex},
          std::pair{&rules.transaction_regex, &impl->transaction_regex}}) {
        if (!pattern->empty()) {
            auto compiled = GroupRegex::compile(*pattern);
            if (!compiled) {
                return fail(compiled.error());
            }
            *regex = std::move(*compiled);
        }
    }
    impl->rules = std::move(rules);
    return MessageMaker(std::move(impl));
}

Result<std::optional<Message>> MessageMaker::read(std::int64_t line, std::string_view text) {
    if (text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    if (text.find_first_not_of(" \t") == std::string_view::npos) {
        return std::nullopt;
    }
    if (!valid_utf8(text)) {
        return fail(Errc::invalid_argument, "is not UTF-8");
    }
    const std::string whole(text);
    const MessageRules& rules = impl_->rules;
    const bool needs_fields = !rules.partition_field.empty() || !rules.transaction_field.empty();
    std::optional<json::Document> document;
    if (needs_fields) {
        auto parsed = json::Document::parse(text);
        if (!parsed) {
            return fail(Errc::invalid_argument, "is not JSON, so it has no fields");
        }
        document = std::move(*parsed);
    }
    const json::Value value = document ? document->root() : json::Value();
    Message message;
    message.line = line;
    auto partition = impl_->partition_of(whole, value);
    if (!partition) {
        return fail(partition.error());
    }
    auto transaction = impl_->transaction_of(line, whole, value);
    if (!transaction) {
        return fail(transaction.error());
    }
    message.partition = std::move(*partition);
    message.transaction = std::move(*transaction);
    message.payload = !rules.raw && (document || is_json(text)) ? whole : json::quoted(text);
    return message;
}

} // namespace queen::ctl
