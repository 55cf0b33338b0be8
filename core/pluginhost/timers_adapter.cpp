#include "pluginhost/timers_adapter.hpp"

#include "base/on_exit.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace queen::pluginhost {
namespace {

/// Of a driver's words about a failure; they are stored with each row. A guess, not measured.
constexpr std::size_t kMostErrorBytes = 1'000;

/// The words, or what is wrong with them: the store takes text only.
std::string_view error_text(const queen_str& error) noexcept {
    if (error.data == nullptr) {
        return {};
    }
    std::string_view text = plugin::from_c(error);
    if (text.size() > kMostErrorBytes) {
        std::size_t end = kMostErrorBytes;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) {
            --end; // not in the middle of a character
        }
        text = text.substr(0, end);
    }
    if (text.find('\0') != std::string_view::npos || !valid_utf8(text)) {
        return "the driver's words are no text";
    }
    return text;
}

} // namespace

const queen_host_timers TimersInstance::kHostTimers{sizeof(queen_host_timers),
                                                    0,
                                                    host_due,
                                                    host_claim,
                                                    host_fire,
                                                    host_fail,
                                                    host_dead_letter,
                                                    host_release,
                                                    host_tick_at};

tl::expected<std::shared_ptr<TimersInstance>, std::string>
TimersInstance::create(Parts parts, std::shared_ptr<const TimerStoreSlot> store) {
    auto instance = make<TimersInstance>(std::move(parts), std::move(store));
    if (instance) { // the first tick is due at once
        (*instance)->pull_tick((*instance)->clock().now());
    }
    return instance;
}

TimersInstance::~TimersInstance() {
    stop();
    end(table_.destroy);
    const auto store = store_->get();
    for (const auto& [batch, segments] : batches_) {
        if (store != nullptr) { // which hands its rows back
            unmeasured("release: an exception of unknown type",
                       [&, named = batch] { store->release(named); });
        }
    }
}

void TimersInstance::stop() noexcept {
    if (self() == nullptr || stopping_.exchange(true)) {
        return;
    }
    unmeasured("stop: an exception of unknown type", [&] { table_.stop(self()); });
    stopped_ = true;
}

/// Told before the next tick, whenever that is.
void TimersInstance::missed(SteadyTime earliest) noexcept {
    pull_forward(missed_, earliest);
}

void TimersInstance::scheduled(SteadyTime earliest) noexcept {
    if (stopping_.load(std::memory_order_relaxed)) {
        return;
    }
    if (guard().paused()) {
        missed(earliest);
        ask_for_tick(guard().paused_until());
        return;
    }
    if (guard().run(Call::scheduled,
                    [&] { return table_.scheduled(self(), plugin::to_c(earliest)); }) != 0) {
        ask_for_tick(clock().now() + kAfterFault); // the driver looks for itself
    }
}

void TimersInstance::answered(plugin::TimerCall call, const plugin::TimerAnswer& answer) noexcept {
    end_claim(call);
    // Inside the guard: noting a batch and converting its segments allocates.
    if (guard().run(
            Call::answered,
            [&] {
                if (answer.batch != 0) {
                    const std::lock_guard lock(mutex_);
                    batches_[answer.batch] = answer.segments.size();
                }
                const plugin::AnswerToC converted(answer);
                return table_.answered(self(), call, &converted.view());
            },
            0, answer.segments.size() + answer.results.size()) != 0) {
        unmeasured("release: an exception of unknown type", [&] { release(answer.batch); });
        ask_for_tick(clock().now() + kAfterFault);
    }
}

void TimersInstance::tick_if_due(SteadyTime now) {
    if (stopping_.load(std::memory_order_relaxed)) {
        return;
    }
    if (tick_due() <= now && !guard().paused()) {
        if (const auto earliest = missed_.exchange(INT64_MAX); earliest != INT64_MAX) {
            scheduled(plugin::time_from_c(earliest));
        }
    }
    run_tick(table_.tick, now);
}

// ---- batches -----------------------------------------------------------------------------------

/// Whether it was noted here or not. 0: there is none.
void TimersInstance::release(plugin::TimerBatch batch) {
    if (batch == 0) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        batches_.erase(batch);
    }
    if (const auto store = store_->get()) {
        store->release(batch);
    }
}

/// @return false when the driver has as many batches as it may, claims under way among them: each
/// is payloads in memory
bool TimersInstance::begin_claim(plugin::TimerCall call) {
    const std::lock_guard lock(mutex_);
    if (batches_.size() + claims_.size() >= plugin::kTimerBatches) {
        return false;
    }
    claims_.insert(call);
    return true;
}

void TimersInstance::end_claim(plugin::TimerCall call) {
    const std::lock_guard lock(mutex_);
    if (const auto found = claims_.find(call); found != claims_.end()) {
        claims_.erase(found);
    }
}

bool TimersInstance::holds(plugin::TimerBatch batch) const {
    const std::lock_guard lock(mutex_);
    return batches_.contains(batch);
}

/// Whether these are segments of a batch that it has, each once.
bool TimersInstance::holds(plugin::TimerBatch batch, const std::uint32_t* segments,
                           std::size_t count) const {
    std::size_t all = 0;
    {
        const std::lock_guard lock(mutex_);
        const auto found = batches_.find(batch);
        if (found == batches_.end()) {
            return false;
        }
        all = found->second;
    }
    if (segments == nullptr || count == 0 || count > all) {
        return false;
    }
    std::vector<bool> named(all);
    for (const std::uint32_t segment : std::span(segments, count)) {
        if (segment >= all || named[segment]) {
            return false;
        }
        named[segment] = true;
    }
    return true;
}

// ---- what the plugin calls ---------------------------------------------------------------------

const void* TimersInstance::extension(std::string_view id) const noexcept {
    return id == QUEEN_HOST_TIMERS ? &kHostTimers : nullptr;
}

/// `ask` gets the instance and the store and answers whether the call was taken; nullopt says that
/// it makes no sense.
template <class Ask>
int32_t TimersInstance::ask(const queen_host* host, const char* verb, Ask&& ask) noexcept {
    int32_t answer = 1;
    serve<TimersInstance>(host, [&](TimersInstance& self) {
        const Guard::HostTime aside(self.clock());
        if (self.stopped_.load()) {
            self.guard().count(Fault::out_of_turn, verb);
            return;
        }
        const auto store = self.store_->get();
        if (store == nullptr) {
            return;
        }
        const std::optional<bool> taken = ask(self, *store);
        if (!taken) {
            self.guard().count(Fault::bad_request, verb);
        }
        answer = taken.value_or(false) ? 0 : 1;
    });
    return answer;
}

int32_t TimersInstance::host_due(const queen_host* host, uint64_t call, uint64_t shards,
                                 uint32_t cap) noexcept {
    return ask(host, "due", [&](TimersInstance&, plugin::TimerHost& store) {
        return std::optional(store.due(call, shards, cap));
    });
}

int32_t TimersInstance::host_claim(const queen_host* host, uint64_t call, uint64_t shards,
                                   int64_t lease, uint32_t rows,
                                   uint32_t rows_per_tenant) noexcept {
    return ask(host, "claim",
               [&](TimersInstance& self, plugin::TimerHost& store) -> std::optional<bool> {
                   if (lease <= 0 || !self.begin_claim(call)) {
                       return std::nullopt;
                   }
                   bool taken = false;
                   const OnExit out([&]() noexcept {
                       if (!taken) {
                           self.end_claim(call);
                       }
                   });
                   taken = store.claim(call, shards, Nanoseconds(lease), rows, rows_per_tenant);
                   return taken;
               });
}

int32_t TimersInstance::host_fire(const queen_host* host, uint64_t call, uint64_t batch,
                                  const uint32_t* segments, size_t count) noexcept {
    return ask(host, "fire",
               [&](TimersInstance& self, plugin::TimerHost& store) -> std::optional<bool> {
                   if (!self.holds(batch, segments, count)) {
                       return std::nullopt;
                   }
                   return store.fire(call, batch, std::span(segments, count));
               });
}

int32_t TimersInstance::host_fail(const queen_host* host, uint64_t call, uint64_t batch,
                                  const uint32_t* segments, size_t count, int64_t backoff,
                                  queen_str error, int32_t counted, int32_t most) noexcept {
    return ask(host, "fail",
               [&](TimersInstance& self, plugin::TimerHost& store) -> std::optional<bool> {
                   if (!self.holds(batch, segments, count) || backoff < 0) {
                       return std::nullopt;
                   }
                   return store.fail(call, batch, std::span(segments, count), Nanoseconds(backoff),
                                     error_text(error), counted != 0, most);
               });
}

int32_t TimersInstance::host_dead_letter(const queen_host* host, uint64_t call, uint64_t batch,
                                         int32_t most) noexcept {
    return ask(host, "dead_letter",
               [&](TimersInstance& self, plugin::TimerHost& store) -> std::optional<bool> {
                   if (!self.holds(batch)) {
                       return std::nullopt;
                   }
                   return store.dead_letter(call, batch, most);
               });
}

/// After stop() as well: a driver gives back what late answers brought.
void TimersInstance::host_release(const queen_host* host, uint64_t batch) noexcept {
    serve<TimersInstance>(host, [&](TimersInstance& self) {
        const Guard::HostTime aside(self.clock());
        if (!self.holds(batch)) {
            self.guard().count(Fault::bad_request, "release");
            return;
        }
        self.release(batch);
    });
}

} // namespace queen::pluginhost
