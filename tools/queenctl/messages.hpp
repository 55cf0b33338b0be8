// queenctl/messages.hpp - from lines of text to messages of a push.
#pragma once
#include "base/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace queen::ctl {

/// One message of a push.
struct Message {
    std::int64_t line = 0; ///< of the input, from 1
    std::string partition;
    std::string transaction;
    std::string payload; ///< JSON
};

/// How lines become messages. Of the sources of a name at most one is set.
struct MessageRules {
    bool raw = false; ///< every payload is a string, even when the line is JSON
    std::string partition;
    std::string partition_field; ///< a.b
    std::string partition_regex; ///< the first group names the partition
    std::optional<std::string> partition_default;
    std::string transaction_field;
    std::string transaction_regex;
    bool transaction_line = false; ///< PREFIX:LINE
    std::string transaction_prefix;
};

/// Makes messages of lines.
/// @thread one
class MessageMaker {
public:
    /// @errors invalid_argument: a regular expression that does not compile or has no group
    static Result<MessageMaker> make(MessageRules rules);
    MessageMaker(MessageMaker&&) noexcept;
    MessageMaker& operator=(MessageMaker&&) noexcept;
    ~MessageMaker();

    /// @return the message; nullopt for a line without text
    /// @errors invalid_argument: why this line is none
    Result<std::optional<Message>> read(std::int64_t line, std::string_view text);

private:
    struct Impl;
    explicit MessageMaker(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// First group of a Perl-like expression. Steps and depth of a search are bounded: an expression
/// that explodes on a long line gives an error, not a full stack.
class GroupRegex {
public:
    /// @errors invalid_argument
    static Result<GroupRegex> compile(const std::string& pattern);
    GroupRegex(GroupRegex&&) noexcept;
    GroupRegex& operator=(GroupRegex&&) noexcept;
    ~GroupRegex();
    /// @return the group's text, nullopt without a match
    /// @errors invalid_argument: the search was given up
    Result<std::optional<std::string>> first_group(const std::string& text) const;

private:
    struct Impl;
    explicit GroupRegex(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace queen::ctl
