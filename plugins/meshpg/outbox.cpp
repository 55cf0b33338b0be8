#include "outbox.hpp"

#include "shared/hint_json.hpp"

#include <utility>

namespace queen::meshpg {
namespace {

using plugin::Hint;
using plugin::HintKind;

std::string_view word_of(HintKind kind) noexcept {
    switch (kind) {
    case HintKind::stored:
        return {}; // the most frequent, so it goes without saying
    case HintKind::moved:
        return "moved";
    case HintKind::configured:
        return "configured";
    case HintKind::deleted:
        return "deleted";
    case HintKind::switched:
        return "switched";
    }
    return {};
}

std::string item_of(const Hint& hint) {
    std::string out = "{";
    if (hint.kind == HintKind::switched) {
        out += "\"subject\":";
        hint_json::append_text(out, hint.subject);
        out += hint.enabled ? ",\"enabled\":true" : ",\"enabled\":false";
    } else {
        hint_json::append_names(out, hint, !hint.partition.empty());
    }
    const std::string_view word = word_of(hint.kind);
    if (!word.empty()) {
        out += ",\"kind\":\"";
        out += word;
        out += '"';
    }
    out += '}';
    return out;
}

} // namespace

Outbox::Outbox(std::size_t most, std::function<void()> wake)
    : most_(most), wake_(std::move(wake)) {}

std::size_t Outbox::publish(std::span<const Hint> hints) {
    if (!listened()) {
        return 0;
    }
    std::size_t dropped = 0;
    bool first = false;
    for (const Hint& hint : hints) {
        std::string item = item_of(hint);
        const std::lock_guard lock(mutex_);
        // A switch is told as often as it was set: the last one counts.
        const bool once = hint.kind != HintKind::switched;
        if (!listened() || (once && waiting_.known.contains(item))) {
            continue;
        }
        if (size() >= most_) {
            ++dropped;
            continue;
        }
        first = first || waiting_.items.empty();
        waiting_.items.push_back(std::move(item));
        if (once) {
            waiting_.known.insert(waiting_.items.back());
        }
        size_.fetch_add(1, std::memory_order_relaxed);
    }
    if (first) {
        wake_();
    }
    return dropped;
}

std::size_t Outbox::set_listened(bool listened) {
    Batch gone; // freed without the lock
    std::size_t lost = 0;
    {
        const std::lock_guard lock(mutex_);
        listened_.store(listened, std::memory_order_relaxed);
        if (!listened) {
            std::swap(gone, waiting_);
            lost = gone.items.size() + taken_.size();
            taken_.clear();
            size_.store(0, std::memory_order_relaxed);
        }
    }
    return lost;
}

std::size_t Outbox::take(std::string_view head, std::size_t bytes, std::size_t most,
                         std::vector<std::string>& payloads) {
    constexpr std::string_view kEnd = "]}";
    if (taken_.empty()) {
        Batch batch;
        const std::lock_guard lock(mutex_);
        std::swap(batch, waiting_);
        taken_ = std::move(batch.items);
    }
    std::size_t taken = 0;
    std::size_t hints = 0;
    std::string payload;
    while (!taken_.empty()) {
        const std::string& item = taken_.front();
        const bool begins = payload.empty();
        if (begins && payloads.size() == most) {
            break;
        }
        const std::size_t size =
            (begins ? head.size() : payload.size() + 1) + item.size() + kEnd.size();
        if (size > bytes && !begins) {
            payloads.push_back(std::move(payload.append(kEnd)));
            payload.clear();
            continue;
        }
        if (size <= bytes) {
            payload += begins ? head : std::string_view(",");
            payload += item;
            ++hints;
        }
        taken_.pop_front();
        ++taken;
    }
    if (!payload.empty()) {
        payloads.push_back(std::move(payload.append(kEnd)));
    }
    size_.fetch_sub(taken, std::memory_order_relaxed);
    return hints;
}

} // namespace queen::meshpg
