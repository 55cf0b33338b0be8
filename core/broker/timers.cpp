#include "broker/timers.hpp"

#include "broker/lost_race.hpp"
#include "model/segment.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace queen::broker {
namespace {

/// A statement that only lost a race is sent again this often.
constexpr int kTries = 3;

bool sets(const TimerOp& op) noexcept {
    return op.kind != TimerOp::Kind::cancel;
}

/// Queues of new timers, each once, with the places of their ops.
std::map<std::string, std::vector<std::size_t>> queues_of(const std::vector<TimerOp>& ops) {
    std::map<std::string, std::vector<std::size_t>> queues;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (sets(ops[i])) {
            queues[ops[i].queue].push_back(i);
        }
    }
    return queues;
}

} // namespace

std::string timer_text(std::size_t index) {
    return "timer " + std::to_string(index) + ": ";
}

void ring(std::span<const TimerVerdict> verdicts, const Clock& clock,
          const TimersScheduled& scheduled) {
    std::optional<std::chrono::microseconds> left;
    for (const auto& verdict : verdicts) {
        if (verdict.set()) {
            left = std::min(left.value_or(verdict.left), verdict.left);
        }
    }
    if (left && scheduled) {
        scheduled(clock.now() + *left);
    }
}

Timers::Timers(TimerStore& store, FormStore& forms, const Clock& clock, Options options)
    : store_(store), forms_(forms), clock_(clock), options_(std::move(options)),
      activity_(metrics::Activity::or_own(options_.activity, clock)),
      encryption_(Encryption::or_none(options_.encryption)) {}

bool Timers::takes(std::span<const TimerOp> ops) const {
    return !options_.taken || std::none_of(ops.begin(), ops.end(), sets) || options_.taken();
}

void Timers::stage(const std::string& tenant, std::vector<TimerOp> ops,
                   Done<std::vector<TimerOp>> done) {
    auto queues = queues_of(ops);
    if (queues.empty()) {
        done(std::move(ops));
        return;
    }
    std::vector<std::string> names;
    names.reserve(queues.size());
    for (const auto& [name, places] : queues) {
        names.push_back(name);
    }
    forms_.encrypted(clock_.now() + options_.wait, tenant, std::move(names),
                     [this, tenant, ops = std::move(ops), queues = std::move(queues),
                      done = std::move(done)](const Result<std::vector<bool>>& forms) mutable {
                         if (!forms) {
                             done(fail(forms.error()));
                             return;
                         }
                         std::size_t n = 0;
                         for (const auto& [queue, places] : queues) {
                             const bool wanted = forms->at(n++);
                             encryption_->learn(tenant, queue, wanted);
                             for (const auto i : places) {
                                 if (auto packed = pack(ops[i], i, wanted); !packed) {
                                     done(fail(std::move(packed.error())));
                                     return;
                                 }
                             }
                         }
                         done(std::move(ops));
                     });
}

Result<void> Timers::pack(TimerOp& op, std::size_t index, bool wanted) {
    op.message_id = ids_.next();
    if (!wanted) {
        if (op.encrypted) {
            return fail(Errc::conflict, timer_text(index) + "encrypted is true, and queue '" +
                                            op.queue + "' is not encrypted");
        }
        return {};
    }
    const Cipher* cipher = encryption_->cipher();
    if (cipher == nullptr) {
        return fail(Errc::conflict, timer_text(index) + "queue '" + op.queue +
                                        "' is encrypted and this broker has no encryption key");
    }
    if (op.payload_zstd) { // an envelope is that of the JSON: whoever opens it delivers it
        auto unpacked = decompress_segment(op.payload);
        if (!unpacked) {
            return fail(Errc::invalid_argument, timer_text(index) + unpacked.error().message);
        }
        op.payload = std::move(*unpacked);
        op.payload_zstd = false;
    }
    op.payload = cipher->seal(op.payload);
    op.encrypted = true;
    return {};
}

void Timers::apply(TimerCallOps call, Done<Verdicts> done) {
    const auto tenant = call.tenant;
    auto ops = std::move(call.ops);
    stage(tenant, std::move(ops),
          [this, call = std::move(call),
           done = std::move(done)](Result<std::vector<TimerOp>> staged) mutable {
              if (!staged) {
                  done(fail(std::move(staged.error())));
                  return;
              }
              call.ops = std::move(*staged);
              send(std::make_shared<const TimerCallOps>(std::move(call)), 1, std::move(done));
          });
}

void Timers::send(std::shared_ptr<const TimerCallOps> call, int tries, Done<Verdicts> done) {
    store_.apply(clock_.now() + options_.wait, *call,
                 [this, call, tries, done = std::move(done)](Result<Verdicts> verdicts) mutable {
                     if (!verdicts && lost_a_race(verdicts.error()) && tries < kTries) {
                         send(std::move(call), tries + 1, std::move(done));
                         return;
                     }
                     if (verdicts && verdicts->size() != call->ops.size()) {
                         verdicts = fail(Errc::internal,
                                         "the store answered for another number of timers");
                     }
                     if (verdicts) {
                         ring(*verdicts, clock_, options_.scheduled);
                     }
                     done(std::move(verdicts));
                 });
}

void Timers::peek(std::string tenant, std::string queue, std::string key,
                  Done<std::optional<WaitingTimer>> done) {
    store_.peek(clock_.now() + options_.wait, std::move(tenant), std::move(queue), std::move(key),
                std::move(done));
}

void Timers::list(std::string tenant, std::string queue, std::string after, std::int32_t limit,
                  Done<TimerPage> done) {
    store_.list(clock_.now() + options_.wait, std::move(tenant), std::move(queue), std::move(after),
                limit, std::move(done));
}

void Timers::count(std::string tenant, std::string queue, std::string prefix,
                   Done<std::int64_t> done) {
    store_.count(clock_.now() + options_.wait, std::move(tenant), std::move(queue),
                 std::move(prefix), std::move(done));
}

} // namespace queen::broker
