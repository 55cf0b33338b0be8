#include "broker/maintenance/retention.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace queen::broker {
namespace {

constexpr std::int32_t kPage = 1000;        ///< entries of a work list at a time
constexpr std::size_t kMostDue = 1'000'000; ///< of a list in a turn, whatever is asked for
constexpr int kHistorySteps = 20;           ///< of a turn: old records are in nobody's way

constexpr std::size_t index_of(DueWork work) {
    return static_cast<std::size_t>(work);
}

Error cut_short() {
    return {Errc::shutting_down, "the turn is over", {}};
}

} // namespace

/// One turn. Continuations of its steps meet here, on any workers.
struct Retention::Run : std::enable_shared_from_this<Retention::Run> {
    /// The lists in the order in which they are worked off.
    static constexpr std::array kOrder{DueWork::retention, DueWork::txns, DueWork::max_wait};

    struct Item {
        DuePartition due;
        bool lost_anything = false;
    };

    Run(Retention& owner_in, TaskTurnPtr turn_in) : owner(owner_in), turn(std::move(turn_in)) {}

    SteadyTime deadline() const { return owner.clock_.now() + owner.options_.wait; }

    void begin_list() {
        if (list == kOrder.size()) {
            clean();
            return;
        }
        const DueWork work = kOrder[list];
        seen = 0;
        {
            const std::lock_guard lock(owner.mutex_);
            after = owner.ended_[index_of(work)];
        }
        ask_page();
    }

    void ask_page() {
        if (turn->over()) {
            turn->finish(fail(cut_short()));
            return;
        }
        const std::size_t room = owner.due_cap() - seen;
        asked = static_cast<std::int32_t>(std::min<std::size_t>(kPage, room));
        owner.store_.due(deadline(), kOrder[list], after, asked,
                         [self = shared_from_this()](Result<std::vector<DuePartition>> page) {
                             self->got_page(std::move(page));
                         });
    }

    void got_page(Result<std::vector<DuePartition>> page) {
        if (!page) {
            turn->finish(fail(std::move(page.error())));
            return;
        }
        seen += page->size();
        last_page = page->size() < static_cast<std::size_t>(asked);
        page_end = page->empty() ? after : std::optional(page->back().key);
        {
            const std::lock_guard lock(mutex);
            for (DuePartition& due : *page) {
                if (kOrder[list] != DueWork::retention || !owner.left_alone(due)) {
                    items.push_back({due, false});
                }
            }
            flying = 1; // this call, until it has sent what it may
        }
        landed();
    }

    /// A step is over: sends the next ones, or ends the page.
    void landed() {
        std::vector<Item> sending;
        bool page_over = false;
        {
            const std::lock_guard lock(mutex);
            --flying;
            const bool stops = error.has_value() || turn->over();
            while (!stops && !items.empty() && flying < owner.options_.parallel) {
                sending.push_back(items.front());
                items.pop_front();
                ++flying;
            }
            page_over = flying == 0;
        }
        for (Item& item : sending) {
            send(item);
        }
        if (page_over) {
            end_page();
        }
    }

    void send(Item item) {
        const SteadyTime began = owner.clock_.now();
        const Uuid id = item.due.key.partition_id;
        const std::int32_t rows = owner.options_.batch;
        const auto got = [self = shared_from_this(), item, began](auto result) {
            self->got_step(item, began, std::move(result));
        };
        switch (kOrder[list]) {
        case DueWork::retention:
            owner.store_.retention_step(deadline(), id, item.due.cutoff, item.due.completed_cutoff,
                                        rows, got);
            break;
        case DueWork::max_wait:
            owner.store_.max_wait_step(deadline(), id, item.due.cutoff.value_or(WallTime::min()),
                                       rows, got);
            break;
        case DueWork::txns:
            owner.store_.purge_step(deadline(), id, item.due.cutoff.value_or(WallTime::min()), rows,
                                    got);
            break;
        }
    }

    template <class Step>
    void got_step(Item item, SteadyTime began, Result<Step> step) {
        owner.step_duration_.observe(owner.clock_.now() - began);
        if (!step) {
            owner.failed_steps_.add();
            if (step.error().code != Errc::transient) { // a locked row is due again next time
                const std::lock_guard lock(mutex);
                error = error ? error : std::optional(std::move(step.error()));
            }
        } else {
            owner.steps_.add();
            const bool lost = count(*step);
            item.lost_anything = item.lost_anything || lost;
            if (!step->done && lost) {
                const std::lock_guard lock(mutex);
                items.push_back(item);
            } else if (kOrder[list] == DueWork::retention) {
                owner.lost(item.due, item.lost_anything);
            }
        }
        landed();
    }

    bool count(const RetentionStep& step) {
        const auto add = [this](Type type, const Removed& removed) {
            auto& counted = owner.removed_[static_cast<std::size_t>(type)];
            counted.segments.add(static_cast<std::uint64_t>(removed.segments));
            counted.messages.add(static_cast<std::uint64_t>(removed.messages));
            counted.bytes.add(static_cast<std::uint64_t>(removed.bytes));
        };
        add(kOrder[list] == DueWork::max_wait ? Type::max_wait : Type::retention, step.aged);
        add(Type::completed, step.consumed);
        return step.aged.segments + step.consumed.segments > 0;
    }
    bool count(const RowsStep& step) {
        owner.hash_rows_.add(static_cast<std::uint64_t>(step.rows));
        return step.rows > 0;
    }

    void end_page() {
        if (error) {
            turn->finish(fail(std::move(*error)));
            return;
        }
        if (!items.empty()) { // stopped: the next turn begins where this page did
            turn->finish(fail(cut_short()));
            return;
        }
        const bool list_over = last_page || seen >= owner.due_cap();
        if (!list_over) {
            after = page_end;
            ask_page();
            return;
        }
        {
            const std::lock_guard lock(owner.mutex_);
            owner.due_[index_of(kOrder[list])] = seen;
            owner.ended_[index_of(kOrder[list])] = last_page ? std::nullopt : page_end;
        }
        ++list;
        begin_list();
    }

    /// Partitions that nobody uses, page by page.
    void clean() {
        {
            const std::lock_guard lock(owner.mutex_);
            const SteadyTime now = owner.clock_.now();
            if (owner.cleaned_ && now - *owner.cleaned_ < kCleanupEvery) {
                turn->finish({});
                return;
            }
            owner.cleaned_ = now;
        }
        if (owner.options_.cleanup) {
            clean_page(std::nullopt);
        } else {
            purge_history(kHistorySteps);
        }
    }

    void clean_page(std::optional<CleanupKey> from) {
        if (turn->over()) {
            turn->finish(fail(cut_short()));
            return;
        }
        owner.store_.cleanup_step(deadline(), owner.options_.idle, owner.options_.batch, from,
                                  [self = shared_from_this()](Result<CleanupStep> step) {
                                      if (!step) {
                                          self->owner.failed_steps_.add();
                                          self->turn->finish(fail(std::move(step.error())));
                                          return;
                                      }
                                      self->owner.steps_.add();
                                      self->owner.partitions_.add(
                                          static_cast<std::uint64_t>(step->partitions));
                                      if (step->next) {
                                          self->clean_page(step->next);
                                      } else {
                                          self->purge_history(kHistorySteps);
                                      }
                                  });
    }

    void purge_history(int left) {
        if (turn->over()) {
            turn->finish(fail(cut_short()));
            return;
        }
        owner.store_.history_step(deadline(), owner.options_.history, owner.options_.batch,
                                  [self = shared_from_this(), left](Result<RowsStep> step) {
                                      if (!step) {
                                          self->owner.failed_steps_.add();
                                          self->turn->finish(fail(std::move(step.error())));
                                          return;
                                      }
                                      self->owner.steps_.add();
                                      self->owner.records_.add(
                                          static_cast<std::uint64_t>(step->rows));
                                      if (step->done || left <= 1) {
                                          self->turn->finish({});
                                      } else {
                                          self->purge_history(left - 1);
                                      }
                                  });
    }

    Retention& owner;
    const TaskTurnPtr turn;
    std::size_t list = 0; ///< of kOrder

    // Of the page; written while no step is on its way.
    std::optional<DueKey> after, page_end;
    std::int32_t asked = 0;
    std::size_t seen = 0; ///< entries of the list in this turn
    bool last_page = false;

    std::mutex mutex;
    std::deque<Item> items;     ///< not worked on
    std::size_t flying = 0;     ///< steps on their way
    std::optional<Error> error; ///< the first that is none of a row's
};

Retention::Retention(RetentionStore& store, const Clock& clock, Options options)
    : store_(store), clock_(clock), options_(options) {}

Retention::~Retention() = default;

void Retention::run(TaskTurnPtr turn) {
    {
        const std::lock_guard lock(mutex_);
        ++turn_;
        if (backoffs_.size() >= kMostBackoffs) { // those that are not due any more
            std::erase_if(backoffs_, [this](const auto& entry) {
                return entry.second.until + kLongestBackoff < turn_;
            });
        }
    }
    std::make_shared<Run>(*this, std::move(turn))->begin_list();
}

std::size_t Retention::due_cap() const {
    const std::size_t wanted =
        options_.due_cap > 0 ? options_.due_cap
                             : 5 * static_cast<std::size_t>(options_.batch) * options_.parallel;
    return std::clamp<std::size_t>(wanted, 1, kMostDue);
}

bool Retention::left_alone(const DuePartition& entry) {
    if (entry.cutoff && entry.key.oldest_at < *entry.cutoff) {
        return false; // loses something for certain
    }
    const std::lock_guard lock(mutex_);
    const auto found = backoffs_.find(entry.key.partition_id);
    if (found == backoffs_.end()) {
        return false;
    }
    if (found->second.oldest_at != entry.key.oldest_at) {
        backoffs_.erase(found); // something went meanwhile
        return false;
    }
    const bool alone = turn_ < found->second.until;
    backed_off_.add(alone ? 1 : 0);
    return alone;
}

void Retention::lost(const DuePartition& entry, bool anything) {
    const std::lock_guard lock(mutex_);
    const auto found = backoffs_.find(entry.key.partition_id);
    if (anything) {
        if (found != backoffs_.end()) {
            backoffs_.erase(found);
        }
        return;
    }
    if (found == backoffs_.end() && backoffs_.size() >= kMostBackoffs) {
        return;
    }
    Backoff& backoff = found != backoffs_.end() ? found->second : backoffs_[entry.key.partition_id];
    backoff.oldest_at = entry.key.oldest_at;
    backoff.turns =
        backoff.turns == 0 ? kFirstBackoff : std::min(backoff.turns * 2, kLongestBackoff);
    backoff.until = turn_ + backoff.turns;
}

void Retention::walk(TaskTurnPtr turn) {
    walk_on(turn, std::nullopt);
}

void Retention::walk_on(const TaskTurnPtr& turn, std::optional<Uuid> after) {
    if (turn->over()) {
        turn->finish(fail(cut_short()));
        return;
    }
    store_.walk_step(clock_.now() + options_.wait, after, options_.batch,
                     [this, turn](Result<WalkStep> step) {
                         if (!step) {
                             turn->finish(fail(std::move(step.error())));
                             return;
                         }
                         repaired_.add(static_cast<std::uint64_t>(step->repaired));
                         if (step->next) {
                             walk_on(turn, step->next);
                         } else {
                             turn->finish({});
                         }
                     });
}

Retention::Stats Retention::stats() const {
    Stats out;
    for (std::size_t i = 0; i < kTypes; ++i) {
        out.removed[i] = {static_cast<std::int64_t>(removed_[i].segments.value()),
                          static_cast<std::int64_t>(removed_[i].messages.value()),
                          static_cast<std::int64_t>(removed_[i].bytes.value())};
    }
    out.hash_rows = static_cast<std::int64_t>(hash_rows_.value());
    out.partitions = static_cast<std::int64_t>(partitions_.value());
    out.records = static_cast<std::int64_t>(records_.value());
    out.steps = steps_.value();
    out.failed_steps = failed_steps_.value();
    out.backed_off = backed_off_.value();
    out.repaired = repaired_.value();
    out.step_duration = step_duration_.snapshot();
    const std::lock_guard lock(mutex_);
    out.due = due_;
    return out;
}

} // namespace queen::broker
