#include "http/front/reader.hpp"

#include "http/front/codec.hpp"

#include <algorithm>
#include <cstring>

namespace queen::http {

void release(std::string& text) noexcept {
    std::string().swap(text);
}

bool BodyBudget::take(std::size_t bytes) noexcept {
    if (!fits(bytes)) {
        return false;
    }
    used_ += bytes;
    return true;
}

struct RequestReader::Pending {
    Pending(Whole request, std::size_t most) : whole(std::move(request)), chunks(most) {}
    Whole whole;
    ChunkedBody chunks;
    Framing framing = Framing::none;
    std::uint64_t length = 0;
    std::size_t filled = 0; ///< bytes of whole.request.body that arrived, when read by length
    bool complete = false;
};

RequestReader::RequestReader(const Limits& limits, const HeadLimits& head_limits,
                             BodyBudget& budget)
    : limits_(limits), budget_(budget), gate_(head_limits) {}

RequestReader::~RequestReader() {
    abandon();
}

void RequestReader::abandon() noexcept {
    if (pending_) {
        budget_.give(pending_->whole.charge);
        pending_.reset();
    }
    wants_continue_ = false;
    release(kept_);
    kept_begin_ = 0;
}

RequestReader::Outcome RequestReader::feed(std::string_view bytes) {
    if (refusal_) {
        return Outcome::refused;
    }
    if (pending_ && pending_->complete) {
        keep(bytes); // one request at a time: the rest waits
        return Outcome::whole;
    }
    if (kept_bytes() != 0) {
        keep(bytes);
        return next();
    }
    std::size_t used = 0;
    const Outcome outcome = read(bytes, used);
    keep(bytes.substr(used));
    return outcome;
}

RequestReader::Outcome RequestReader::next() {
    if (kept_bytes() == 0) {
        return Outcome::more;
    }
    std::size_t used = 0;
    const Outcome outcome = read(std::string_view(kept_).substr(kept_begin_), used);
    drop_kept(used);
    return outcome;
}

RequestReader::Outcome RequestReader::read(std::string_view bytes, std::size_t& used) {
    used = 0;
    if (!pending_) {
        switch (gate_.scan(bytes)) {
        case Gate::Verdict::more:
            return Outcome::more;
        case Gate::Verdict::refused:
            return refuse(gate_.take_refusal());
        case Gate::Verdict::passed:
            break;
        }
        auto request = parse_head(bytes, gate_.head());
        if (!request) {
            return refuse({400, request.error().message});
        }
        pending_ =
            std::make_unique<Pending>(Whole{.request = std::move(*request)}, limits_.body_bytes);
        used = gate_.head().end;
        return begin_body(bytes, used);
    }
    return pending_->framing == Framing::chunked ? read_chunks(bytes, used)
                                                 : read_by_length(bytes, used);
}

RequestReader::Outcome RequestReader::begin_body(std::string_view bytes, std::size_t& used) {
    const Head head = gate_.head();
    gate_.reset();
    Pending& pending = *pending_;
    pending.whole.keep_alive = head.keep_alive;
    pending.whole.version_1_0 = head.version_1_0;
    pending.framing = head.framing;
    pending.length = head.content_length;
    wants_continue_ = head.expects_continue && used == bytes.size();
    Outcome outcome = Outcome::more;
    switch (head.framing) {
    case Framing::none:
        pending.complete = true;
        outcome = Outcome::whole;
        break;
    case Framing::length:
        if (pending.length > limits_.body_bytes) {
            return refuse({413, "the body of the request is longer than " +
                                    std::to_string(limits_.body_bytes) + " bytes"});
        }
        if (!budget_.fits(pending.length)) {
            return refuse_budget();
        }
        outcome = read_by_length(bytes, used);
        break;
    case Framing::chunked:
        outcome = read_chunks(bytes, used);
        break;
    }
    wants_continue_ = wants_continue_ && outcome == Outcome::more;
    return outcome;
}

RequestReader::Outcome RequestReader::read_by_length(std::string_view bytes, std::size_t& used) {
    Pending& pending = *pending_;
    std::string& body = pending.whole.request.body;
    const auto length = static_cast<std::size_t>(pending.length);
    const std::size_t part = std::min(length - pending.filled, bytes.size() - used);
    const std::size_t wanted = pending.filled + part;
    if (body.size() < wanted) {
        if (!charge(wanted - body.size())) {
            return refuse_budget();
        }
        body.append(wanted - body.size(), '\0');
    }
    std::memcpy(body.data() + pending.filled, bytes.data() + used, part);
    used += part;
    return received(part);
}

std::span<char> RequestReader::body_space() noexcept {
    if (!in_body() || pending_->framing != Framing::length) {
        return {};
    }
    std::string& body = pending_->whole.request.body;
    return {body.data() + pending_->filled, body.size() - pending_->filled};
}

RequestReader::Outcome RequestReader::received(std::size_t bytes) {
    Pending& pending = *pending_;
    std::string& body = pending.whole.request.body;
    const auto length = static_cast<std::size_t>(pending.length);
    pending.filled += bytes;
    if (pending.filled == length) {
        pending.complete = true;
        return Outcome::whole;
    }
    if (pending.filled == body.size()) {
        // Room grows with what really arrived: double, from one step to the whole length.
        const std::size_t size = std::min(length, std::max(2 * body.size(), kBodyStep));
        if (!charge(size - body.size())) {
            return refuse_budget();
        }
        body.resize(size);
    }
    return Outcome::more;
}

RequestReader::Outcome RequestReader::read_chunks(std::string_view bytes, std::size_t& used) {
    Pending& pending = *pending_;
    std::string& body = pending.whole.request.body;
    const std::size_t before = body.size();
    std::size_t taken = 0;
    const ChunkedBody::Verdict verdict = pending.chunks.feed(bytes.substr(used), taken, body);
    used += taken;
    if (verdict == ChunkedBody::Verdict::refused) {
        return refuse(pending.chunks.take_refusal());
    }
    if (!charge(body.size() - before)) {
        return refuse_budget();
    }
    if (verdict == ChunkedBody::Verdict::more) {
        return Outcome::more;
    }
    pending.complete = true;
    return Outcome::whole;
}

bool RequestReader::charge(std::size_t bytes) noexcept {
    if (!budget_.take(bytes)) {
        return false;
    }
    pending_->whole.charge += bytes;
    return true;
}

RequestReader::Outcome RequestReader::refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    abandon();
    return Outcome::refused;
}

RequestReader::Outcome RequestReader::refuse_budget() {
    return refuse({503,
                   "the bodies of all requests in flight are limited to " +
                       std::to_string(budget_.limit()) + " bytes; try again",
                   true});
}

Whole RequestReader::take() {
    Whole whole = std::move(pending_->whole);
    pending_.reset();
    return whole;
}

Refusal RequestReader::take_refusal() {
    return *refusal_;
}

bool RequestReader::idle() const noexcept {
    return !pending_ && !refusal_ && kept_bytes() == 0;
}

bool RequestReader::in_body() const noexcept {
    return pending_ && !pending_->complete;
}

bool RequestReader::take_continue() noexcept {
    return std::exchange(wants_continue_, false);
}

void RequestReader::keep(std::string_view bytes) {
    if (!bytes.empty() && !refusal_) {
        kept_.append(bytes);
    }
}

void RequestReader::drop_kept(std::size_t bytes) noexcept {
    kept_begin_ = std::min(kept_begin_ + bytes, kept_.size());
    if (kept_begin_ == kept_.size()) {
        release(kept_); // an idle connection holds no buffer
        kept_begin_ = 0;
    } else if (kept_begin_ > kept_.size() / 2) {
        kept_.erase(0, kept_begin_);
        kept_begin_ = 0;
    }
}

} // namespace queen::http
