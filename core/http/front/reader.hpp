// http/front/reader.hpp - turns the bytes of one connection into whole requests. No socket here.
//
//   head --gate passes--> body by length --+--> whole --take()--> head of the next
//     |                   body by chunks --+
//     +--gate or a limit refuses--> refused: not one byte more is ever read as a request
//
// Bytes of a head stay in the caller's buffer when the request is whole in it; only a request that
// arrives in pieces costs memory of its own. A body of known length is read in place, into the
// string the route will get.
#pragma once
#include "http/front.hpp"
#include "http/front/chunked.hpp"
#include "http/front/gate.hpp"
#include "http/message.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace queen::http {

/// Empties a string and gives its memory back; assigning an empty one keeps the buffer.
void release(std::string& text) noexcept;

/// Bytes of request bodies held by the front and by routes that did not answer yet.
/// @thread the front's
class BodyBudget {
public:
    explicit BodyBudget(std::size_t limit) noexcept : limit_(limit) {}
    bool fits(std::uint64_t bytes) const noexcept { return bytes <= limit_ - used_; }
    bool take(std::size_t bytes) noexcept;
    void give(std::size_t bytes) noexcept { used_ -= bytes; }
    std::size_t used() const noexcept { return used_; }
    std::size_t limit() const noexcept { return limit_; }

private:
    std::size_t limit_;
    std::size_t used_ = 0;
};

/// A request that is whole.
struct Whole {
    Request request;
    std::size_t charge = 0; ///< taken from the budget; whoever answers gives it back
    bool keep_alive = true;
    bool version_1_0 = false;
};

/// @thread the front's
class RequestReader {
public:
    enum class Outcome : std::uint8_t { more, whole, refused };

    /// What a body of known length gets at first and per read at least: an announced length alone
    /// reserves no more than this.
    static constexpr std::size_t kBodyStep = 64 * 1024;

    RequestReader(const Limits& limits, const HeadLimits& head_limits, BodyBudget& budget);
    ~RequestReader();
    RequestReader(const RequestReader&) = delete;
    RequestReader& operator=(const RequestReader&) = delete;

    /// Takes all of `bytes`: what belongs to a later request is kept.
    Outcome feed(std::string_view bytes);
    /// Goes on with bytes kept behind the last request.
    Outcome next();
    /// Where to receive into, instead of feed(), while a body of known length is read; else empty.
    std::span<char> body_space() noexcept;
    /// `bytes` were received into body_space().
    Outcome received(std::size_t bytes);

    /// Reads no more; gives back all memory and what it took from the budget.
    void abandon() noexcept;
    Whole take();                  ///< after `whole`
    Refusal take_refusal();        ///< after `refused`
    bool idle() const noexcept;    ///< no byte of a request is held
    bool in_body() const noexcept; ///< the head passed, the body is not whole
    /// True once, when a head passed that waits for leave to send its body, which is not there yet.
    bool take_continue() noexcept;
    std::size_t kept_bytes() const noexcept { return kept_.size() - kept_begin_; }

private:
    struct Pending;
    Outcome read(std::string_view bytes, std::size_t& used);
    Outcome begin_body(std::string_view bytes, std::size_t& used);
    Outcome read_by_length(std::string_view bytes, std::size_t& used);
    Outcome read_chunks(std::string_view bytes, std::size_t& used);
    Outcome refuse(Refusal refusal);
    Outcome refuse_budget();
    bool charge(std::size_t bytes) noexcept;
    void keep(std::string_view bytes);
    void drop_kept(std::size_t bytes) noexcept;

    const Limits& limits_;
    BodyBudget& budget_;
    Gate gate_;
    std::string kept_; ///< bytes not yet part of a whole request, from kept_begin_ on
    std::size_t kept_begin_ = 0;
    std::unique_ptr<Pending> pending_; ///< the request whose head passed
    std::optional<Refusal> refusal_;
    bool wants_continue_ = false;
};

} // namespace queen::http
