#include "auth/published_keys.hpp"

#include <algorithm>

namespace queen::auth {

Result<std::shared_ptr<PublishedKeys>> PublishedKeys::start(Fetch fetch, Ticker& ticker,
                                                            const Clock& clock, Options options) {
    std::shared_ptr<PublishedKeys> keys(
        new PublishedKeys(std::move(fetch), ticker, clock, std::move(options)));
    if (auto first = keys->read(); !first) {
        return fail(std::move(first).error());
    }
    const std::lock_guard lock(keys->mutex_);
    keys->plan(keys->clock_.now() + keys->options_.refresh);
    return keys;
}

std::shared_ptr<const std::vector<NamedKey>> PublishedKeys::keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
}

void PublishedKeys::missed() {
    const std::lock_guard lock(mutex_);
    const SteadyTime when = std::max(clock_.now(), last_ + options_.floor);
    if (pending_ != 0 && when < planned_) {
        ticker_.cancel(pending_);
        plan(when);
    }
}

Result<void> PublishedKeys::read() {
    {
        const std::lock_guard lock(mutex_);
        last_ = clock_.now();
    }
    auto text = fetch_();
    if (!text) {
        return fail(std::move(text).error());
    }
    auto read = read_key_set(*text);
    if (!read) {
        return fail(std::move(read).error());
    }
    const std::lock_guard lock(mutex_);
    keys_ = std::make_shared<const std::vector<NamedKey>>(std::move(*read));
    return {};
}

void PublishedKeys::look() {
    {
        const std::lock_guard lock(mutex_);
        pending_ = 0;
    }
    const auto done = read();
    if (!done && options_.warn) {
        options_.warn("auth: published keys could not be read again, those known stay: " +
                      done.error().message);
    }
    const std::lock_guard lock(mutex_);
    plan(clock_.now() + (done ? options_.refresh : std::min(options_.refresh, options_.floor)));
}

void PublishedKeys::plan(SteadyTime when) {
    planned_ = when;
    pending_ = ticker_.at(when, [self = weak_from_this()] {
        if (const auto keys = self.lock()) {
            keys->look();
        }
    });
}

} // namespace queen::auth
