// http/body_events.hpp - what the readers that follow a body as it is parsed have in common.
#pragma once
#include "base/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace queen::http {

/// A reader keeps the place in the document where it stands, and sees what stands there: a member's
/// name, a value, the begin and end of what it entered. What lies inside an array or object it does
/// not enter is passed over by counting what opens and closes. A verb that answers false stops the
/// parse; `stop` says why.
/// @thread one at a time
class BodyEvents : public json::Events {
public:
    /// The body outlives the parse.
    explicit BodyEvents(std::string_view body) : body_(body) {}
    enum class Scalar { null, string, other };

    bool null(std::size_t begin, std::size_t end) final {
        return skipping_ > 0 || value(bytes(begin, end), Scalar::null, {});
    }
    bool boolean(bool, std::size_t begin, std::size_t end) final {
        return skipping_ > 0 || value(bytes(begin, end), Scalar::other, {});
    }
    bool number(std::string_view, std::size_t begin, std::size_t end) final {
        return skipping_ > 0 || value(bytes(begin, end), Scalar::other, {});
    }
    bool string(std::string_view text, std::size_t begin, std::size_t end) final {
        return skipping_ > 0 || value(bytes(begin, end), Scalar::string, text);
    }
    bool key(std::string_view name) final {
        if (skipping_ == 0) {
            member(name);
        }
        return true;
    }
    bool begin_object(std::size_t begin) final { return goes_deeper() || enter_object(begin); }
    bool end_object(std::size_t end) final { return skipping_ > 0 ? close(end) : leave_object(); }
    bool begin_array(std::size_t begin) final { return goes_deeper() || enter_array(begin); }
    bool end_array(std::size_t end) final { return skipping_ > 0 ? close(end) : leave_array(); }

    std::optional<Error> error; ///< why the reader stopped the parse

protected:
    virtual void member(std::string_view name) = 0;
    /// `bytes` as sent; `text` is that of a string.
    virtual bool value(std::string_view bytes, Scalar kind, std::string_view text) = 0;
    /// An object or array begins: the reader's place moves into it, or it calls skip.
    virtual bool enter_object(std::size_t begin) = 0;
    virtual bool enter_array(std::size_t begin) = 0;
    virtual bool leave_object() = 0;
    virtual bool leave_array() = 0;
    /// An array or object ended that skip was called for.
    virtual void skipped(std::string_view bytes) = 0;

    bool skip(std::size_t begin) {
        skip_begin_ = begin;
        skipping_ = 1;
        return true;
    }
    bool stop(std::string text, Errc code = Errc::invalid_argument) {
        error = Error{code, std::move(text), {}};
        return false;
    }

private:
    std::string_view bytes(std::size_t begin, std::size_t end) const {
        return body_.substr(begin, end - begin);
    }
    bool goes_deeper() noexcept {
        skipping_ += skipping_ > 0 ? 1 : 0;
        return skipping_ > 0;
    }
    bool close(std::size_t end) {
        if (--skipping_ == 0) {
            skipped(bytes(skip_begin_, end));
        }
        return true;
    }

    const std::string_view body_;
    std::size_t skipping_ = 0; ///< open arrays and objects of a value that is passed over
    std::size_t skip_begin_ = 0;
};

/// A member as it came. Of an array or object only the bytes are known.
struct BodyField {
    bool given = false; ///< null counts as not given
    bool is_string = false;
    std::string text;       ///< of a string
    std::string_view bytes; ///< of any value, as sent; of null, too

    void put(std::string_view sent, BodyEvents::Scalar kind, std::string_view string) {
        given = kind != BodyEvents::Scalar::null;
        is_string = kind == BodyEvents::Scalar::string;
        text = string;
        bytes = sent;
    }
};

} // namespace queen::http
