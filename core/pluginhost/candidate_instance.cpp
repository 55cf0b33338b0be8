// The instance behind an adapter: its life, and what the plugin calls back.
#include "pluginhost/candidate_adapter.hpp"

#include <queen/plugin/convert.hpp>

#include <algorithm>
#include <cstring>

namespace queen::pluginhost {

using plugin::from_c;
using plugin::time_from_c;

const queen_host_candidates CandidateInstance::kHostCandidates{
    sizeof(queen_host_candidates), 0, host_wake, host_reseed, host_tick_at};

CandidateInstance::CandidateInstance(std::string name, std::shared_ptr<const Library> library,
                                     OptionValues options, GuardLimits limits,
                                     HostServices services)
    : name_(std::move(name)), library_(std::move(library)), options_(std::move(options)),
      services_(std::move(services)), guard_(name_, limits, services_) {
    host_ = {sizeof(queen_host), 0, this, host_now, host_log, host_option_int, host_option_str,
             host_extension};
}

tl::expected<std::shared_ptr<CandidateInstance>, CandidateInstance::Refusal>
CandidateInstance::create(std::string name, std::shared_ptr<const Library> library,
                          OptionValues options, GuardLimits limits, HostServices services) {
    const auto table = read_candidates_table(library->factory(QUEEN_CANDIDATES));
    if (!table) {
        return tl::unexpected(Refusal{"", library->path() + " " + table.error().message});
    }
    std::shared_ptr<CandidateInstance> instance(new CandidateInstance(
        std::move(name), std::move(library), std::move(options), limits, std::move(services)));
    instance->table_ = *table;
    queen_error error{};
    error.size = sizeof error;
    // Not through the guard: creation may take its time, and its failure has its own words.
    try {
        instance->self_ = table->create(&instance->host_, &error);
    } catch (const std::exception& e) {
        return tl::unexpected(Refusal{"", std::string("cannot start: ") + e.what()});
    } catch (...) {
        return tl::unexpected(Refusal{"", "cannot start: an exception of unknown type"});
    }
    if (instance->self_ == nullptr) {
        const std::string message(error.message, ::strnlen(error.message, sizeof error.message));
        const std::string option(error.option, ::strnlen(error.option, sizeof error.option));
        return tl::unexpected(
            Refusal{option, message.empty() ? "made no instance and gave no reason" : message});
    }
    // The first tick is due at once: only the plugin knows when it wants the next.
    if (table->tick != nullptr) {
        instance->pull_tick(instance->clock().now());
    }
    return instance;
}

CandidateInstance::~CandidateInstance() {
    if (self_ == nullptr) {
        return;
    }
    try {
        table_.destroy(self_);
    } catch (const std::exception& e) {
        guard_.count(Fault::exception, e.what());
    } catch (...) {
        guard_.count(Fault::exception, "destroy: an exception of unknown type");
    }
}

SteadyTime CandidateInstance::tick_due() const noexcept {
    return time_from_c(tick_due_.load());
}

void CandidateInstance::tick_if_due(SteadyTime now) {
    if (table_.tick == nullptr || tick_due() > now) {
        return;
    }
    // Emptied before the call: a tick_at() that arrives during it must not be overwritten.
    tick_due_.store(INT64_MAX);
    if (guard_.paused()) {
        pull_tick(guard_.paused_until());
        return;
    }
    /// A tick that throws, or asks to be called in the past, must not spin the ticker.
    constexpr Nanoseconds kAtLeast = std::chrono::milliseconds(1);
    constexpr Nanoseconds kAfterFault = std::chrono::seconds(1);
    std::int64_t next = plugin::to_c(now + kAfterFault);
    guard_.run(Call::tick, [&] {
        next = table_.tick(self_, plugin::to_c(now));
        return 0;
    });
    pull_tick(std::max(time_from_c(next), now + kAtLeast));
}

void CandidateInstance::pull_tick(SteadyTime when) noexcept {
    const std::int64_t wanted = plugin::to_c(when);
    std::int64_t due = tick_due_.load();
    while (wanted < due && !tick_due_.compare_exchange_weak(due, wanted)) {
    }
}

// ---- what the plugin calls ---------------------------------------------------------------------

CandidateInstance& CandidateInstance::of(const queen_host* host) noexcept {
    return *static_cast<CandidateInstance*>(host->self);
}

/// An exception of the core's must not run through the plugin's frames, which may be C.
template <class Body>
void CandidateInstance::serve(const queen_host* host, Body&& body) noexcept {
    try {
        body(of(host));
    } catch (const std::exception& e) {
        of(host).guard_.count(Fault::exception, e.what());
    }
}

int64_t CandidateInstance::host_now(const queen_host* host) noexcept {
    return plugin::to_c(of(host).services_.clock->now());
}

void CandidateInstance::host_log(const queen_host* host, int32_t level, queen_str text) noexcept {
    serve(host, [&](CandidateInstance& self) {
        if (self.services_.log) {
            const auto known = std::clamp<int32_t>(level, QUEEN_LOG_ERROR, QUEEN_LOG_DEBUG);
            self.services_.log(self.name_, static_cast<queen_log_level>(known), from_c(text));
        }
    });
}

int32_t CandidateInstance::host_option_int(const queen_host* host, const char* name,
                                           int64_t* out) noexcept {
    const OptionValues& options = of(host).options_;
    const auto found = name == nullptr ? options.end() : options.find(std::string_view(name));
    if (found == options.end() || found->second.type == QUEEN_OPTION_STRING || out == nullptr) {
        return 1;
    }
    *out = found->second.number;
    return 0;
}

int32_t CandidateInstance::host_option_str(const queen_host* host, const char* name,
                                           queen_str* out) noexcept {
    const OptionValues& options = of(host).options_;
    const auto found = name == nullptr ? options.end() : options.find(std::string_view(name));
    if (found == options.end() || found->second.type != QUEEN_OPTION_STRING || out == nullptr) {
        return 1;
    }
    *out = plugin::to_c(std::string_view(found->second.text));
    return 0;
}

const void* CandidateInstance::host_extension(const queen_host* /*host*/, const char* id) noexcept {
    return id != nullptr && std::strcmp(id, QUEEN_HOST_CANDIDATES) == 0 ? &kHostCandidates
                                                                        : nullptr;
}

void CandidateInstance::host_wake(const queen_host* host, const queen_queue* queue,
                                  const queen_str* group, uint64_t ready) noexcept {
    serve(host, [&](CandidateInstance& self) {
        if (self.services_.wake) {
            self.services_.wake(from_c(*queue),
                                group == nullptr ? std::string_view{} : from_c(*group), ready);
        }
    });
}

void CandidateInstance::host_reseed(const queen_host* host, const queen_scope* scope,
                                    uint64_t ticket, int64_t window) noexcept {
    serve(host, [&](CandidateInstance& self) {
        if (self.services_.reseed) {
            self.services_.reseed(self.name_, from_c(*scope), ticket, Nanoseconds(window));
        }
    });
}

void CandidateInstance::host_tick_at(const queen_host* host, int64_t when) noexcept {
    serve(host, [&](CandidateInstance& self) {
        self.pull_tick(time_from_c(when));
        if (self.services_.tick_at) {
            self.services_.tick_at(time_from_c(when));
        }
    });
}

} // namespace queen::pluginhost
