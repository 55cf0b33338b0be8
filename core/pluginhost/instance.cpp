// What all kinds share: the life of an instance, and what the plugin calls back.
#include "pluginhost/instance.hpp"

#include <algorithm>
#include <cstring>

namespace queen::pluginhost {

using plugin::from_c;
using plugin::time_from_c;

bool sound_name(const queen_str& name) noexcept {
    if (name.data == nullptr) {
        return name.size == 0;
    }
    return name.size <= kMostNameBytes && from_c(name).find('\0') == std::string_view::npos;
}

const queen_host_database Instance::kHostDatabase{sizeof(queen_host_database), 0, host_conninfo};

Instance::Instance(Parts parts)
    : parts_(std::move(parts)), guard_(parts_.name, parts_.limits, parts_.services) {
    host_ = {sizeof(queen_host), 0, this, host_now, host_log, host_option_int, host_option_str,
             host_extension};
}

std::string Instance::problem_of(const std::string& option, const std::string& message) const {
    const auto value = parts_.options.find(option);
    return problem(value == parts_.options.end() ? parts_.place : value->second.place, name(),
                   option, message);
}

std::string Instance::problem_of(const queen_error& error, std::string_view silent) const {
    const std::string message(error.message, ::strnlen(error.message, sizeof error.message));
    const std::string option(error.option, ::strnlen(error.option, sizeof error.option));
    return problem_of(option, message.empty() ? std::string(silent) : message);
}

std::optional<std::string> Instance::begin(Create create) {
    return refusal_of("made no instance and gave no reason", [&](queen_error* error) {
        self_ = create(&host_, error);
        return self_ != nullptr;
    });
}

void Instance::end(Destroy destroy) noexcept {
    if (self_ != nullptr) {
        unmeasured("destroy: an exception of unknown type", [&] { destroy(self_); });
    }
}

void Instance::pull_forward(std::atomic<std::int64_t>& earliest, SteadyTime when) noexcept {
    const std::int64_t wanted = plugin::to_c(when);
    std::int64_t known = earliest.load();
    while (wanted < known && !earliest.compare_exchange_weak(known, wanted)) {
    }
}

void Instance::ask_for_tick(SteadyTime when) noexcept {
    pull_tick(when);
    if (services().tick_at) {
        unmeasured("tick_at: an exception of unknown type", [&] { services().tick_at(when); });
    }
}

void Instance::run_tick(Tick tick, SteadyTime now) {
    if (tick == nullptr || tick_due() > now) {
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
    std::int64_t next = plugin::to_c(now + kAfterFault);
    guard_.run(Call::tick, [&] {
        next = tick(self_, plugin::to_c(now));
        return 0;
    });
    pull_tick(std::max(time_from_c(next), now + kAtLeast));
}

void Instance::collect(void (*stats)(void*, void*, queen_stat_fn), plugin::Stats& out) {
    if (stats == nullptr || guard_.paused()) {
        return;
    }
    struct Sink {
        plugin::Stats& out;
        Guard& guard;
    } sink{out, guard_};
    guard_.run(Call::stats, [&] {
        stats(self_, &sink, [](void* to, queen_str name, double value) noexcept {
            auto& [figures, guard] = *static_cast<Sink*>(to);
            if (name.size == 0 || !sound_name(name)) {
                guard.count(Fault::bad_name, "stats");
                return;
            }
            try {
                figures.add(from_c(name), value);
            } catch (const std::exception& e) {
                guard.count(Fault::exception, e.what());
            }
        });
        return 0;
    });
}

// ---- what the plugin calls ---------------------------------------------------------------------

int64_t Instance::host_now(const queen_host* host) noexcept {
    return plugin::to_c(of<Instance>(host).clock().now());
}

void Instance::host_log(const queen_host* host, int32_t level, queen_str text) noexcept {
    serve<Instance>(host, [&](Instance& self) {
        if (self.services().log) {
            const auto known = std::clamp<int32_t>(level, QUEEN_LOG_ERROR, QUEEN_LOG_DEBUG);
            self.services().log(self.name(), static_cast<queen_log_level>(known), from_c(text));
        }
    });
}

int32_t Instance::host_option_int(const queen_host* host, const char* name, int64_t* out) noexcept {
    const OptionValues& options = of<Instance>(host).parts_.options;
    const auto found = name == nullptr ? options.end() : options.find(std::string_view(name));
    if (found == options.end() || found->second.type == QUEEN_OPTION_STRING || out == nullptr) {
        return 1;
    }
    *out = found->second.number;
    return 0;
}

int32_t Instance::host_option_str(const queen_host* host, const char* name,
                                  queen_str* out) noexcept {
    const OptionValues& options = of<Instance>(host).parts_.options;
    const auto found = name == nullptr ? options.end() : options.find(std::string_view(name));
    if (found == options.end() || found->second.type != QUEEN_OPTION_STRING || out == nullptr) {
        return 1;
    }
    *out = plugin::to_c(std::string_view(found->second.text));
    return 0;
}

const void* Instance::host_extension(const queen_host* host, const char* id) noexcept {
    if (id == nullptr) {
        return nullptr;
    }
    const auto& self = of<Instance>(host);
    if (std::strcmp(id, QUEEN_HOST_DATABASE) == 0) {
        return self.services().conninfo.empty() ? nullptr : &kHostDatabase;
    }
    return self.extension(id);
}

queen_str Instance::host_conninfo(const queen_host* host) noexcept {
    return plugin::to_c(std::string_view(of<Instance>(host).services().conninfo));
}

void Instance::host_tick_at(const queen_host* host, int64_t when) noexcept {
    of<Instance>(host).ask_for_tick(time_from_c(when));
}

} // namespace queen::pluginhost
