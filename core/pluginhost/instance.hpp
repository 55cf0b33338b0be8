// pluginhost/instance.hpp - one living instance of a plugin, of whatever kind: its `self`, its
// options, its guard and its view of the host. What a kind adds stands with its adapter.
#pragma once
#include "base/result.hpp"
#include "pluginhost/guard.hpp"
#include "pluginhost/host_services.hpp"
#include "pluginhost/library.hpp"
#include "pluginhost/options.hpp"

#include <queen/plugin/abi.h>
#include <queen/plugin/convert.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace queen::pluginhost {

/// Bytes of any name that crosses the border (the broker's limit on every name).
inline constexpr std::size_t kMostNameBytes = 255;

/// Whether a name of a plugin's can be used: points somewhere, has no NUL, is not too long. An
/// empty one can.
bool sound_name(const queen_str& name) noexcept;

/// Invariant: `self_` is valid from create() on; destroy() is called exactly once, last.
class Instance {
public:
    struct Parts {
        std::string name;
        settings::Place place; ///< of its entry in YAML
        std::shared_ptr<const Library> library;
        OptionValues options;
        GuardLimits limits;
        HostServices services;
    };
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
    virtual ~Instance() = default;

    const std::string& name() const noexcept { return parts_.name; }
    const Library& library() const noexcept { return *parts_.library; }
    void* self() const noexcept { return self_; }
    Guard& guard() noexcept { return guard_; }
    const Clock& clock() const noexcept { return *parts_.services.clock; }

    /// When the instance wants its next tick; max() for never. The plugin pulls it forward.
    SteadyTime tick_due() const noexcept { return plugin::time_from_c(tick_due_.load()); }
    /// Calls tick() if it is due. @thread ticker
    virtual void tick_if_due(SteadyTime /*now*/) {}

protected:
    explicit Instance(Parts parts);

    /// What a kind's read() and constructor need to become an instance.
    /// @return the instance, or the problem, ready to print
    template <class Kind, class... More>
    static tl::expected<std::shared_ptr<Kind>, std::string> make(Parts parts, More... more);

    /// A plugin that failed is asked again after this long. A guess, not measured.
    static constexpr Nanoseconds kAfterFault = std::chrono::seconds(1);

    using Create = void* (*)(const queen_host*, queen_error*);
    using Destroy = void (*)(void*);
    using Tick = int64_t (*)(void*, int64_t);
    std::optional<std::string> begin(Create create);
    /// Of a kind's destructor, the last that it does.
    void end(Destroy destroy) noexcept;
    /// Lowers `earliest` to `when` if that is earlier.
    static void pull_forward(std::atomic<std::int64_t>& earliest, SteadyTime when) noexcept;
    void pull_tick(SteadyTime when) noexcept { pull_forward(tick_due_, when); }
    void ask_for_tick(SteadyTime when) noexcept; ///< and tells the ticker
    void run_tick(Tick tick, SteadyTime now);
    /// Runs a call that may refuse in words of its own: it gets the error to fill and answers
    /// whether it succeeded. Not measured: creation and start may take their time.
    /// @param silent what is said of a plugin that gave no reason
    /// @return the problem, ready to print, with the place of the option at fault
    template <class Body>
    std::optional<std::string> refusal_of(std::string_view silent, Body&& body) const;
    void collect(void (*stats)(void*, void*, queen_stat_fn), plugin::Stats& out);
    /// Runs a call that is not measured: it is allowed to take its time.
    template <class Body>
    bool unmeasured(std::string_view what, Body&& body) noexcept;

    /// What the host offers to this kind, nullptr for what it does not.
    virtual const void* extension(std::string_view id) const noexcept = 0;
    const HostServices& services() const noexcept { return parts_.services; }

    template <class Kind>
    static Kind& of(const queen_host* host) noexcept {
        return static_cast<Kind&>(*static_cast<Instance*>(host->self));
    }
    /// An exception of the core's must not run through the plugin's frames, which may be C.
    template <class Kind, class Body>
    static void serve(const queen_host* host, Body&& body) noexcept;
    /// The tick_at() of the kinds that have one.
    static void host_tick_at(const queen_host* host, int64_t when) noexcept;

private:
    std::string problem_of(const std::string& option, const std::string& message) const;
    std::string problem_of(const queen_error& error, std::string_view silent) const;

    static int64_t host_now(const queen_host* host) noexcept;
    static void host_log(const queen_host* host, int32_t level, queen_str text) noexcept;
    static int32_t host_option_int(const queen_host* host, const char* name, int64_t* out) noexcept;
    static int32_t host_option_str(const queen_host* host, const char* name,
                                   queen_str* out) noexcept;
    static const void* host_extension(const queen_host* host, const char* id) noexcept;
    static queen_str host_conninfo(const queen_host* host) noexcept;
    static const queen_host_database kHostDatabase;

    const Parts parts_;
    Guard guard_;
    queen_host host_{};
    void* self_ = nullptr;
    std::atomic<std::int64_t> tick_due_{INT64_MAX};
};

template <class Kind, class... More>
tl::expected<std::shared_ptr<Kind>, std::string> Instance::make(Parts parts, More... more) {
    const auto table = Kind::read(parts.library->factory(Kind::kKind));
    if (!table) {
        return tl::unexpected(problem(parts.place, parts.name, "",
                                      parts.library->path() + " " + table.error().message));
    }
    std::shared_ptr<Kind> instance(new Kind(std::move(parts), *table, std::move(more)...));
    if (auto refused = instance->begin(table->create)) {
        return tl::unexpected(std::move(*refused));
    }
    return instance;
}

template <class Body>
std::optional<std::string> Instance::refusal_of(std::string_view silent, Body&& body) const {
    queen_error error{};
    error.size = sizeof error;
    try {
        if (body(&error)) {
            return std::nullopt;
        }
    } catch (const std::exception& e) {
        return problem_of("", std::string("cannot start: ") + e.what());
    } catch (...) {
        return problem_of("", "cannot start: an exception of unknown type");
    }
    return problem_of(error, silent);
}

template <class Kind, class Body>
void Instance::serve(const queen_host* host, Body&& body) noexcept {
    try {
        body(of<Kind>(host));
    } catch (const std::exception& e) {
        of<Kind>(host).guard().count(Fault::exception, e.what());
    }
}

template <class Body>
bool Instance::unmeasured(std::string_view what, Body&& body) noexcept {
    // The plugin boundary is one of the places where exceptions end.
    try {
        body();
        return true;
    } catch (const std::exception& e) {
        guard_.count(Fault::exception, e.what());
    } catch (...) {
        guard_.count(Fault::exception, what);
    }
    return false;
}

} // namespace queen::pluginhost
