// base/json.hpp - all of our JSON, behind one translation unit (json.cpp is the only file that
// includes RapidJSON: it is slow to compile). Reading is iterative, validates UTF-8 and keeps
// numbers as text, so depth cannot overflow a stack and digits are never rounded (K23).
#pragma once
#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace queen::json {

inline constexpr std::size_t kMaxDepth = 512; ///< arrays and objects inside each other; more: error

/// Events of one document in order. `begin`/`end` are byte positions in the text that was parsed,
/// so a value's exact bytes can be sliced out: from the begin of its first event to the end of its
/// last. The text of a number is a slice of what was parsed; a string or key is decoded and lives
/// until the call returns. Returning false stops the parse.
class Events {
public:
    virtual ~Events() = default;
    virtual bool null(std::size_t begin, std::size_t end) = 0;
    virtual bool boolean(bool value, std::size_t begin, std::size_t end) = 0;
    virtual bool number(std::string_view text, std::size_t begin, std::size_t end) = 0;
    virtual bool string(std::string_view value, std::size_t begin, std::size_t end) = 0;
    virtual bool key(std::string_view name) = 0;
    virtual bool begin_object(std::size_t begin) = 0;
    virtual bool end_object(std::size_t end) = 0;
    virtual bool begin_array(std::size_t begin) = 0;
    virtual bool end_array(std::size_t end) = 0;
};

/// @errors invalid_argument with the parser's text and byte position; also when a handler stopped
/// it (message "stopped": the handler knows why).
Result<void> parse(std::string_view text, Events& events);
/// Whether the text is one document. @errors as parse
Result<void> check(std::string_view text);

enum class Kind { missing, null, boolean, number, string, array, object };

/// A read-only view into a Document. Copying is cheap; it must not outlive the Document.
class Value {
public:
    Value() = default;
    Kind kind() const noexcept;
    bool is(Kind kind) const noexcept { return this->kind() == kind; }
    /// Member of an object; Kind::missing when absent or not an object. Of repeated keys the last.
    Value operator[](std::string_view key) const noexcept;
    Value at(std::size_t index) const noexcept;                ///< element of an array
    std::size_t size() const noexcept;                         ///< elements or members
    std::string_view key_at(std::size_t index) const noexcept; ///< member name by position
    Value value_at(std::size_t index) const noexcept;          ///< member value by position
    std::string_view string() const noexcept;                  ///< "" unless a string
    std::string_view raw_number() const noexcept;
    /// A number that is a whole int64, however it is written: 5, 5.0, 5e3. Never rounded.
    std::optional<std::int64_t> integer() const noexcept;
    std::optional<bool> boolean() const noexcept;

private:
    friend class Document;
    const struct Node* node_ = nullptr;
    explicit Value(const Node* node) : node_(node) {}
};

/// A whole text as a tree, for small bodies: it keeps a copy of the text and an arena of nodes.
class Document {
public:
    /// @errors invalid_argument, as json::parse
    static Result<Document> parse(std::string_view text);
    Document(Document&&) noexcept;
    Document& operator=(Document&&) noexcept;
    ~Document();
    Value root() const noexcept;

private:
    struct Impl;
    explicit Document(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Appends one document to a string. The caller keeps the nesting right; commas are ours.
class Writer {
public:
    explicit Writer(std::string& out) : out_(out) {}
    Writer& begin_object();
    Writer& end_object();
    Writer& begin_array();
    Writer& end_array();
    Writer& key(std::string_view name);
    Writer& string(std::string_view value); ///< UTF-8; a stray byte becomes U+FFFD
    Writer& integer(std::int64_t value);
    Writer& number(double value); ///< finite
    Writer& boolean(bool value);
    Writer& null();
    Writer& raw(std::string_view json); ///< spliced in unchanged

private:
    void separate();
    std::string& out_;
    std::vector<bool> first_;
    bool after_key_ = false;
};

/// The text as a JSON string, with quotes.
std::string quoted(std::string_view text);

} // namespace queen::json
