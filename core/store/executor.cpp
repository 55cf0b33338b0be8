#include "store/executor.hpp"

#include "base/assert.hpp"

#include <Poco/Logger.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

namespace queen::store {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, kLanes> kLaneNames{"ack", "push", "pop", "admin"};
constexpr std::chrono::seconds kSaturationLogEvery{10}; // PL-7
constexpr std::chrono::hours kLongestSleep{1};          // keeps wait_for() far from overflow

Poco::Logger& logger() {
    return Poco::Logger::get("queen.executor");
}

std::size_t index_of(Lane lane) {
    return static_cast<std::size_t>(lane);
}

/// One session for each other lane; a lane alone never gets less than one.
std::size_t lane_cap(std::size_t sessions) {
    return sessions > kLanes - 1 ? sessions - (kLanes - 1) : 1;
}

/// What the worker on this thread is doing. Set while it runs a task or a continuation.
struct Current {
    const Executor* owner = nullptr;
    bool took_on = false; ///< it will look for work itself when it is through
};
thread_local Current current;

class Duty {
public:
    explicit Duty(const Executor* owner) : before_(current) { current = {owner, false}; }
    ~Duty() { current = before_; }
    Duty(const Duty&) = delete;
    Duty& operator=(const Duty&) = delete;

private:
    const Current before_;
};

} // namespace

Executor::Executor(Options options, const SessionFactory& make, const Clock& clock)
    : options_(options), clock_(clock), lane_cap_(lane_cap(options.sessions)) {
    QUEEN_ASSERT(options_.sessions > 0, "an executor needs a session");
    slots_.resize(options_.sessions);
    for (Slot& slot : slots_) {
        slot.session = make();
        idle_.push_back(&slot);
    }
    const std::size_t spare = options_.spare_threads > 0
                                  ? options_.spare_threads
                                  : std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < options_.sessions + spare; ++i) {
        threads_.emplace_back([this] {
            ::pthread_setname_np(::pthread_self(), "queen-worker");
            work();
        });
    }
}

Executor::~Executor() {
    stop(milliseconds{0});
}

void Executor::post(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            logger().debug("task dropped reason=stopped");
            return;
        }
        tasks_.push_back(std::move(task));
    }
    wake_one();
}

/// The usual request is one task that submits one statement and is through. Its own worker then
/// runs that statement, which saves two switches between threads: 7 us of CPU a round trip against
/// 16 us (2026-11-29, 2 busy cores, unix socket, "select 1" submitted by the continuation of the
/// one before). So the first piece of work that a worker hands in wakes nobody; each further one
/// does.
void Executor::wake_one() {
    if (current.owner == this && !current.took_on) {
        current.took_on = true;
        return;
    }
    work_.notify_one();
}

void Executor::enqueue(std::unique_ptr<Job> job) {
    const SteadyTime now = clock_.now();
    std::unique_ptr<Job> refused;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            refused = std::move(job);
        } else {
            LaneState& lane = lanes_[index_of(job->lane_)];
            const SteadyTime deadline = job->deadline_;
            const auto place =
                lane.queue.insert(lane.queue.end(), Waiting{std::move(job), deadlines_.end(), now});
            if (deadline != SteadyTime::max()) {
                place->timer = deadlines_.emplace(deadline, place);
            }
        }
    }
    if (refused) { // the workers have left
        refused->fail(Error{Errc::shutting_down, "the broker stops", {}});
        finish(*refused);
        return;
    }
    wake_one();
}

std::optional<std::size_t> Executor::entitled() const {
    if (idle_.empty()) {
        return std::nullopt;
    }
    std::optional<std::size_t> sure; // of the lanes that run none, the one not served for longest
    std::size_t without = 0;         // lanes that run none
    for (std::size_t i = 0; i < kLanes; ++i) {
        if (lanes_[i].statistics.running > 0) {
            continue;
        }
        ++without;
        if (!lanes_[i].queue.empty() &&
            (!sure || lanes_[i].last_served < lanes_[*sure].last_served)) {
            sure = i;
        }
    }
    if (sure) {
        return sure;
    }
    for (std::size_t i = 0; i < kLanes; ++i) {
        if (!lanes_[i].queue.empty() && lanes_[i].statistics.running < lane_cap_ &&
            idle_.size() > without) {
            return i;
        }
    }
    return std::nullopt;
}

std::unique_ptr<Executor::Job> Executor::take(Queue::iterator waiting) {
    std::unique_ptr<Job> job = std::move(waiting->job);
    if (waiting->timer != deadlines_.end()) {
        deadlines_.erase(waiting->timer);
    }
    lanes_[index_of(job->lane_)].queue.erase(waiting);
    return job;
}

Executor::Slot& Executor::check_out() {
    Slot& slot = *idle_.back();
    idle_.pop_back();
    slot.in_use = true;
    return slot;
}

void Executor::check_in(Slot& slot) {
    slot.in_use = false;
    slot.open = slot.session->open();
    idle_.insert(slot.open ? idle_.end() : idle_.begin(), &slot);
    if (idle_.size() == slots_.size()) {
        quiet_.notify_all();
    }
}

/// Runs `work` without the lock, and hands on what else there is to do before and after.
template <class Work>
void Executor::outside(std::unique_lock<std::mutex>& lock, Work&& work) {
    ++busy_;
    const bool more = has_work();
    lock.unlock();
    if (more) {
        work_.notify_one();
    }
    work();
    lock.lock();
    --busy_;
}

void Executor::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (!deadlines_.empty() && deadlines_.begin()->first <= clock_.now()) {
            auto job = take(deadlines_.begin()->second);
            ++lanes_[index_of(job->lane_)].statistics.expired;
            warn_saturated(*job);
            finish_unrun(lock, std::move(job), Error{Errc::unavailable, "pool", {}});
            continue;
        }
        if (!tasks_.empty()) {
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            outside(lock, [&] {
                const Duty duty(this);
                try {
                    task();
                } catch (const std::exception& thrown) {
                    logger().error("task failed error=\"" + std::string(thrown.what()) + "\"");
                }
                task = nullptr; // what it captured goes without the lock
            });
            continue;
        }
        if (stopping_) {
            const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                           [](const LaneState& l) { return !l.queue.empty(); });
            if (lane != lanes_.end()) {
                ++lane->statistics.refused;
                finish_unrun(lock, take(lane->queue.begin()),
                             Error{Errc::shutting_down, "the broker stops", {}});
                continue;
            }
            if (busy_ == 0) {
                closed_ = true;
                work_.notify_all();
                return;
            }
        } else if (const auto lane = entitled()) {
            run_one(lock, *lane);
            continue;
        }
        if (closed_) {
            return;
        }
        if (deadlines_.empty()) {
            work_.wait(lock);
        } else {
            const auto left = deadlines_.begin()->first - clock_.now();
            work_.wait_for(lock, std::min<SteadyTime::duration>(left, kLongestSleep));
        }
    }
}

void Executor::finish_unrun(std::unique_lock<std::mutex>& lock, std::unique_ptr<Job> job,
                            Error error) {
    outside(lock, [&] {
        job->fail(std::move(error));
        finish(*job);
        job.reset();
    });
}

void Executor::run_one(std::unique_lock<std::mutex>& lock, std::size_t lane) {
    LaneState& state = lanes_[lane];
    waits_[lane].observe(clock_.now() - state.queue.front().since);
    auto job = take(state.queue.begin());
    Slot& slot = check_out();
    ++state.statistics.running;
    state.last_served = ++grants_;
    outside(lock, [&] { run_job(*job, slot); });
    --state.statistics.running;
    check_in(slot);
    outside(lock, [&] {
        finish(*job);
        job.reset();
    });
}

void Executor::run_job(Job& job, Slot& slot) {
    LaneStatistics& statistics = lanes_[index_of(job.lane_)].statistics;
    if (auto ready = make_ready(slot); !ready) {
        job.fail(std::move(ready.error()));
        const std::lock_guard lock(mutex_);
        ++statistics.refused;
        return;
    }
    call(job, *slot.session);
    bool repeated = false;
    if (job.error() != nullptr && job.repeat_ == Repeat::once && !slot.session->open() &&
        job.error()->code == Errc::transient && make_ready(slot)) {
        repeated = true;
        call(job, *slot.session);
    }
    const std::lock_guard lock(mutex_);
    ++statistics.done;
    repeats_ += repeated ? 1 : 0;
    if (const Error* error = job.error()) {
        ++statistics.failed;
        timeouts_ += error->code == Errc::timeout ? 1 : 0;
    }
}

void Executor::call(Job& job, Session& session) {
    try {
        job.run(session);
    } catch (const std::exception& thrown) {
        session.quarantine(); // it may have been left between a question and its answer
        logger().error("call failed error=\"" + std::string(thrown.what()) + "\"");
        job.fail(Error{Errc::internal, thrown.what(), {}});
    }
}

void Executor::finish(Job& job) {
    const Duty duty(this);
    try {
        job.finish();
    } catch (const std::exception& thrown) {
        logger().error("continuation failed error=\"" + std::string(thrown.what()) + "\"");
    }
}

Result<void> Executor::make_ready(Slot& slot) {
    if (slot.session->check()) {
        return {};
    }
    bool probe = false; // this job is the one that tries for all
    {
        const std::lock_guard lock(mutex_);
        if (outage_.active) {
            if (outage_.probing || clock_.now() < outage_.retry_at) {
                return fail(Errc::unavailable, outage_.why);
            }
            probe = outage_.probing = true;
        }
    }
    auto connected = slot.session->connect();
    const std::lock_guard lock(mutex_);
    if (probe) {
        outage_.probing = false;
    }
    note_connect(slot, connected);
    return connected;
}

void Executor::note_connect(Slot& slot, const Result<void>& connected) {
    if (connected) {
        if (outage_.active) {
            logger().information("database reached again");
        }
        outage_ = {};
        ++(slot.ever_open ? resets_ : connects_);
        slot.ever_open = true;
        return;
    }
    const SteadyTime now = clock_.now();
    if (!outage_.active) {
        outage_.backoff = options_.backoff_first;
        logger().error("database lost error=\"" + connected.error().message + "\"");
    } else if (now >= outage_.retry_at) { // sessions that failed side by side count once
        outage_.backoff = std::min(outage_.backoff * 2, options_.backoff_longest);
    }
    outage_.active = true;
    outage_.retry_at = now + outage_.backoff;
    outage_.why = connected.error().message;
}

void Executor::warn_saturated(const Job& job) {
    const SteadyTime now = clock_.now();
    if (saturation_logged_ != SteadyTime::min() && now - saturation_logged_ < kSaturationLogEvery) {
        return;
    }
    saturation_logged_ = now;
    std::string text = "no session in time lane=";
    text += kLaneNames[index_of(job.lane_)];
    text += " sessions=" + std::to_string(slots_.size()) +
            " in_use=" + std::to_string(slots_.size() - idle_.size());
    for (std::size_t i = 0; i < kLanes; ++i) {
        text += ' ';
        text += kLaneNames[i];
        text += "_waiting=" + std::to_string(lanes_[i].queue.size());
    }
    logger().warning(text);
}

void Executor::stop(milliseconds grace) {
    const std::lock_guard only_one(stop_mutex_);
    {
        std::unique_lock lock(mutex_);
        stopping_ = true;
        work_.notify_all();
        const auto quiet = [this] { return idle_.size() == slots_.size(); };
        if (!quiet_.wait_for(lock, grace, quiet)) {
            for (Slot& slot : slots_) {
                if (slot.in_use) {
                    slot.session->interrupt();
                }
            }
        }
    }
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
}

void Executor::wake() {
    const std::lock_guard lock(mutex_);
    work_.notify_all();
}

Executor::Statistics Executor::statistics() const {
    const std::lock_guard lock(mutex_);
    Statistics out;
    for (std::size_t i = 0; i < kLanes; ++i) {
        out.lanes[i] = lanes_[i].statistics;
        out.lanes[i].waiting = lanes_[i].queue.size();
        out.lanes[i].waited = waits_[i].snapshot();
    }
    out.tasks_waiting = tasks_.size();
    out.sessions = slots_.size();
    out.in_use = slots_.size() - idle_.size();
    for (const Slot& slot : slots_) {
        out.open += slot.open ? 1 : 0;
        out.broken += slot.ever_open && !slot.open ? 1 : 0;
    }
    out.timeouts = timeouts_;
    out.connects = connects_;
    out.resets = resets_;
    out.repeats = repeats_;
    out.outage = outage_.active;
    return out;
}

} // namespace queen::store
