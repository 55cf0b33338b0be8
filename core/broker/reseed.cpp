#include "broker/reseed.hpp"

#include "model/names.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace queen::broker {

struct Reseeder::Walk {
    plugin::Scope scope() const { return {{key, query.tenant, query.queue}, query.group}; }

    std::string source_name;
    SourcePtr source; ///< null until it was found
    std::string key;
    plugin::Ticket ticket = 0;
    ReseedQuery query;
    std::uint32_t pages = 0;  ///< answered
    SteadyTime read_at{};     ///< before the page under way was asked for
    std::optional<Seen> last; ///< of the last page, when the queue exists
};

Reseeder::Reseeder(Store& store, Workers& workers, const Clock& clock, Find find, Options options)
    : store_(store), workers_(workers), clock_(clock), find_(std::move(find)),
      options_(std::move(options)) {}

void Reseeder::open() {
    {
        const std::lock_guard lock(mutex_);
        if (state_ == State::fresh) {
            state_ = State::open;
        }
    }
    start_waiting();
}

void Reseeder::close() {
    std::deque<WalkPtr> dropped;
    {
        const std::lock_guard lock(mutex_);
        state_ = State::closed;
        dropped.swap(waiting_);
    }
    for (const auto& walk : dropped) {
        refuse(walk);
    }
}

void Reseeder::reseed(std::string_view source, const plugin::Scope& scope, plugin::Ticket ticket,
                      Nanoseconds window) {
    const auto walk = std::make_shared<Walk>();
    walk->source_name = source;
    // Now, not when its turn comes: another instance may bear the name by then.
    walk->source = find_(source);
    walk->key = queue_key(scope.queue.tenant, scope.queue.name);
    walk->ticket = ticket;
    walk->query.tenant = scope.queue.tenant;
    walk->query.queue = scope.queue.name;
    walk->query.group = scope.group;
    walk->query.window =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(window, Nanoseconds{0}));
    walk->query.partitions = options_.partitions;
    bool taken = false;
    {
        const std::lock_guard lock(mutex_);
        taken = state_ != State::closed && waiting_.size() < options_.waiting;
        if (taken) {
            waiting_.push_back(walk);
        }
    }
    if (!taken) {
        refuse(walk);
        return;
    }
    start_waiting();
}

/// Gives free slots to those who wait.
void Reseeder::start_waiting() {
    std::vector<WalkPtr> starting;
    {
        const std::lock_guard lock(mutex_);
        while (state_ == State::open && stats_.walking < options_.parallel && !waiting_.empty()) {
            starting.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
            ++stats_.walking;
        }
    }
    for (auto& walk : starting) {
        workers_.post([this, walk = std::move(walk)] { begin(walk); });
    }
}

void Reseeder::begin(const WalkPtr& walk) {
    if (walk->source == nullptr) { // asked for while its plugin was being loaded
        walk->source = find_(walk->source_name);
    }
    if (walk->source == nullptr) {
        end(walk, false);
        return;
    }
    ask(walk);
}

void Reseeder::ask(const WalkPtr& walk) {
    bool closed = false;
    {
        const std::lock_guard lock(mutex_);
        closed = state_ == State::closed;
    }
    if (closed) {
        end(walk, false);
        return;
    }
    // Before the statement: what is configured while it runs is younger than what it reads.
    walk->read_at = clock_.now();
    store_.reseed_page(walk->read_at + options_.wait, walk->query,
                       [this, walk](Result<ReseedPage> page) { got(walk, std::move(page)); });
}

void Reseeder::got(const WalkPtr& walk, Result<ReseedPage> page) {
    if (!page) {
        end(walk, false);
        return;
    }
    ++walk->pages;
    {
        const std::lock_guard lock(mutex_);
        ++stats_.pages;
        stats_.rows += page->rows.size();
    }
    const auto scope = walk->scope();
    if (page->exists) {
        walk->last = Seen{page->queue_id, page->deleted};
        walk->source->configured(scope.queue,
                                 {std::chrono::seconds(page->delay_seconds),
                                  std::chrono::seconds(page->window_seconds), walk->read_at});
    }
    std::vector<plugin::ReseedRow> rows;
    rows.reserve(page->rows.size());
    for (const auto& row : page->rows) {
        rows.push_back({row.partition, row.partition_id});
    }
    const bool wants_more = walk->source->reseed_page(scope, walk->ticket, rows);
    if (!page->next) {
        end(walk, true);
    } else if (!wants_more || walk->pages >= options_.pages) {
        end(walk, false);
    } else {
        walk->query.after = page->next;
        ask(walk);
    }
}

/// Of a walk that has a slot.
void Reseeder::end(const WalkPtr& walk, bool complete) {
    if (walk->source != nullptr) {
        walk->source->reseed_done(walk->scope(), walk->ticket, complete);
        if (complete && many_went(*walk)) {
            walk->source->forget(walk->query.tenant, walk->query.queue, {});
            if (options_.forgot) {
                options_.forgot(walk->query.tenant, walk->query.queue);
            }
        }
    }
    {
        const std::lock_guard lock(mutex_);
        if (!complete) {
            ++stats_.failed;
        } else if (walk->query.window.count() > 0) {
            ++stats_.window;
        } else {
            ++stats_.full;
        }
        --stats_.walking;
    }
    start_waiting();
}

/// Whether a full walk that is complete found that the source shall forget the queue.
bool Reseeder::many_went(const Walk& walk) {
    if (!walk.last || walk.query.window.count() > 0) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    if (seen_.size() >= kMostSeen) {
        seen_.clear();
    }
    std::string key = walk.source_name;
    key.append(1, kKeySeparator).append(walk.key);
    const auto [at, is_new] = seen_.emplace(std::move(key), *walk.last);
    Seen& seen = at->second;
    const bool anew = seen.queue_id != walk.last->queue_id;
    if (is_new ||
        (!anew && walk.last->deleted - seen.deleted < options_.gone * std::int64_t{walk.pages})) {
        return false;
    }
    seen = *walk.last;
    ++stats_.forgotten;
    return true;
}

/// A walk that never got a slot.
void Reseeder::refuse(const WalkPtr& walk) {
    {
        const std::lock_guard lock(mutex_);
        ++stats_.failed;
    }
    workers_.post([this, walk] {
        if (walk->source == nullptr) {
            walk->source = find_(walk->source_name);
        }
        if (walk->source != nullptr) {
            walk->source->reseed_done(walk->scope(), walk->ticket, false);
        }
    });
}

Reseeder::Stats Reseeder::stats() const {
    const std::lock_guard lock(mutex_);
    Stats now = stats_;
    now.waiting = waiting_.size();
    return now;
}

} // namespace queen::broker
