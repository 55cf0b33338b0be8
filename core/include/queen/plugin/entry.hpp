// queen/plugin/entry.hpp - turns a C++ class into the C tables of abi.h. Included by one file of a
// plugin (plugin.cpp by custom) and compiled into it, so no C++ type, exception or allocation
// crosses the library's border: every trampoline below catches whatever the class throws and
// answers non-zero, which the host counts and survives.
//
//     std::unique_ptr<CandidateSource> make(Host& host) {
//         return std::make_unique<Recent>(Options{host.size("capacity")}, host.clock());
//     }
//     QUEEN_PLUGIN("com.acme.recent", "1.0.0", kOptions, QUEEN_CANDIDATES, candidates<make>)
#pragma once
#include <queen/plugin/abi.h>
#include <queen/plugin/candidates.hpp>
#include <queen/plugin/convert.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace queen::plugin {

// ---- the build stamp ---------------------------------------------------------------------------

/// Sanitizers this translation unit is built with. g++ defines macros, clang has __has_feature.
constexpr std::uint32_t build_flags() noexcept {
    std::uint32_t flags = 0;
#if defined(__SANITIZE_ADDRESS__)
    flags |= QUEEN_BUILD_ASAN;
#endif
#if defined(__SANITIZE_THREAD__)
    flags |= QUEEN_BUILD_TSAN;
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    flags |= QUEEN_BUILD_ASAN;
#endif
#if __has_feature(thread_sanitizer)
    flags |= QUEEN_BUILD_TSAN;
#endif
#endif
    return flags;
}

namespace detail {
/// Copies with a closing NUL; a text that does not fit does not compile.
template <std::size_t N>
consteval void put(char (&field)[N], std::string_view text) {
    if (text.size() >= N) {
        throw "plugin id (47), version (15) or exact host (31) is longer than the bytes in "
              "brackets";
    }
    for (std::size_t i = 0; i < N; ++i) {
        field[i] = i < text.size() ? text[i] : '\0';
    }
}
} // namespace detail

/// `exact_host`: the one broker version that may load it; "" for every broker of this ABI.
consteval queen_build_stamp make_stamp(std::string_view id, std::string_view version,
                                       std::string_view exact_host = "") {
    queen_build_stamp stamp{};
    stamp.magic = QUEEN_ABI_MAGIC;
    stamp.size = sizeof(queen_build_stamp);
    stamp.abi_major = QUEEN_ABI_MAJOR;
    stamp.abi_minor = QUEEN_ABI_MINOR;
    stamp.build = build_flags();
    detail::put(stamp.platform, "linux-x86_64");
    detail::put(stamp.exact_host, exact_host);
    detail::put(stamp.plugin_id, id);
    detail::put(stamp.plugin_version, version);
    return stamp;
}

// ---- the option table --------------------------------------------------------------------------

/// What an option takes besides name, type and meaning. `fallback` is YAML text; without one the
/// option is required. `env`: a variable that overrides YAML. `inherits`: the core setting that is
/// used when the option is absent.
struct IntegerBounds {
    const char* unit = "";
    const char* fallback = nullptr;
    std::int64_t min = 0;
    std::int64_t max = INT64_MAX;
    const char* env = nullptr;
    const char* inherits = nullptr;
};
struct DurationBounds {
    const char* fallback = nullptr;
    Nanoseconds min{0};
    Nanoseconds max = Nanoseconds::max();
    const char* env = nullptr;
    const char* inherits = nullptr;
};
struct PlainBounds {
    const char* fallback = nullptr;
    const char* env = nullptr;
    const char* inherits = nullptr;
};

constexpr queen_option integer(const char* name, IntegerBounds b, const char* doc) {
    return {name, QUEEN_OPTION_INT, 0, b.unit, b.fallback, b.min, b.max, doc, b.env, b.inherits};
}
constexpr queen_option duration(const char* name, DurationBounds b, const char* doc) {
    return {name,          QUEEN_OPTION_DURATION, 0,   "ns",  b.fallback,
            b.min.count(), b.max.count(),         doc, b.env, b.inherits};
}
constexpr queen_option text(const char* name, PlainBounds b, const char* doc) {
    return {name, QUEEN_OPTION_STRING, 0, "", b.fallback, 0, 0, doc, b.env, b.inherits};
}
constexpr queen_option boolean(const char* name, PlainBounds b, const char* doc) {
    return {name, QUEEN_OPTION_BOOL, 0, "", b.fallback, 0, 1, doc, b.env, b.inherits};
}

/// Stands for the option table of a plugin that has none.
inline constexpr struct NoOptions {
} kNoOptions;

namespace detail {
template <std::size_t N>
constexpr const queen_option* option_rows(const queen_option (&table)[N]) noexcept {
    return table;
}
template <std::size_t N>
constexpr std::uint32_t option_count(const queen_option (&)[N]) noexcept {
    return N;
}
constexpr const queen_option* option_rows(NoOptions) noexcept {
    return nullptr;
}
constexpr std::uint32_t option_count(NoOptions) noexcept {
    return 0;
}
} // namespace detail

// ---- the host, as the plugin sees it -----------------------------------------------------------

enum class LogLevel { error = QUEEN_LOG_ERROR, warning, info, debug };

/// One instance's view of the broker. It outlives the source that make() returns, so the source may
/// keep references to it, to its clock() and to it as CandidateHost.
/// @thread any, but for the option readers, which are [main]
class Host final : public CandidateHost, private Clock {
public:
    /// @errors throws when the broker lacks what a candidate source needs
    explicit Host(const queen_host* host) : host_(host) {
        if (host == nullptr || host->size < sizeof(queen_host)) {
            throw std::runtime_error("this broker's host table is too short");
        }
        candidates_ =
            static_cast<const queen_host_candidates*>(host->extension(host, QUEEN_HOST_CANDIDATES));
        if (candidates_ == nullptr || candidates_->size < sizeof(queen_host_candidates)) {
            throw std::runtime_error("this broker has no " QUEEN_HOST_CANDIDATES);
        }
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    /// Effective values, checked against the option table before. @errors throws for an option that
    /// the table does not have, or has with another type.
    std::int64_t integer(const char* option) const {
        std::int64_t value = 0;
        if (host_->option_int(host_, option, &value) != 0) {
            throw ConfigError(option, "is not a number in the plugin's own option table");
        }
        return value;
    }
    std::size_t size(const char* option) const {
        const std::int64_t value = integer(option);
        if (value < 0) {
            throw ConfigError(option, "is negative where a count is expected");
        }
        return static_cast<std::size_t>(value);
    }
    Nanoseconds duration(const char* option) const { return Nanoseconds(integer(option)); }
    bool boolean(const char* option) const { return integer(option) != 0; }
    std::string string(const char* option) const {
        queen_str value{};
        if (host_->option_str(host_, option, &value) != 0) {
            throw ConfigError(option, "is not a text in the plugin's own option table");
        }
        return std::string(from_c(value));
    }

    const Clock& clock() const noexcept { return *this; }
    void log(LogLevel level, std::string_view text) const noexcept {
        host_->log(host_, static_cast<std::int32_t>(level), to_c(text));
    }

    void wake(const Queue& queue, std::string_view group, std::uint64_t ready) override {
        const queen_queue c_queue = to_c(queue);
        const queen_str c_group = to_c(group);
        candidates_->wake(host_, &c_queue, group.empty() ? nullptr : &c_group, ready);
    }
    void reseed(const Scope& scope, Ticket ticket, Nanoseconds window) override {
        const queen_scope c_scope = to_c(scope);
        candidates_->reseed(host_, &c_scope, ticket, window.count());
    }
    void tick_at(SteadyTime when) override { candidates_->tick_at(host_, to_c(when)); }

private:
    SteadyTime now() const noexcept override { return time_from_c(host_->now(host_)); }

    const queen_host* host_;
    const queen_host_candidates* candidates_ = nullptr;
};

// ---- candidates: the class as a C table --------------------------------------------------------

namespace detail {

/// Cuts what does not fit; always ends in NUL.
template <std::size_t N>
void copy_text(char (&field)[N], std::string_view text) noexcept {
    const std::size_t size = text.size() < N - 1 ? text.size() : N - 1;
    std::memcpy(field, text.data(), size);
    field[size] = '\0';
}

inline void report(queen_error* error, std::int32_t code, std::string_view option,
                   std::string_view why) noexcept {
    if (error != nullptr && error->size >= sizeof(queen_error)) {
        error->code = code;
        copy_text(error->option, option);
        copy_text(error->message, why);
    }
}

/// One instance: the source and the host view it was built from. Members die in reverse order, so
/// the source never outlives its host.
struct Instance {
    Host host;
    std::unique_ptr<CandidateSource> source;
    explicit Instance(const queen_host* raw) : host(raw) {}
};

inline CandidateSource& source_of(void* self) noexcept {
    return *static_cast<Instance*>(self)->source;
}

/// Runs a call of the class; an exception is a fault and never leaves the library.
template <class Call>
std::int32_t guarded(Call&& call) noexcept {
    try {
        call();
        return 0;
    } catch (...) {
        return 1;
    }
}

class SinkNames final : public Names {
public:
    explicit SinkNames(const queen_name_sink* sink) noexcept : sink_(sink) {}
    bool add(std::string_view partition, std::uint64_t token) override {
        return sink_->add(sink_->self, to_c(partition), token) == 0;
    }

private:
    const queen_name_sink* sink_;
};

class SinkStats final : public Stats {
public:
    SinkStats(void* sink, queen_stat_fn add) noexcept : sink_(sink), add_(add) {}
    void add(std::string_view name, double value) override { add_(sink_, to_c(name), value); }

private:
    void* sink_;
    queen_stat_fn add_;
};

template <auto Make>
void* create(const queen_host* raw, queen_error* error) noexcept {
    try {
        auto instance = std::make_unique<Instance>(raw);
        instance->source = Make(instance->host);
        if (instance->source != nullptr) {
            return instance.release();
        }
        report(error, QUEEN_FAILED, "", "the plugin made no source");
    } catch (const ConfigError& e) {
        report(error, QUEEN_BAD_OPTION, e.option(), e.what());
    } catch (const std::exception& e) {
        report(error, QUEEN_FAILED, "", e.what());
    } catch (...) {
        report(error, QUEEN_FAILED, "", "an exception of unknown type");
    }
    return nullptr;
}

inline void destroy(void* self) noexcept {
    delete static_cast<Instance*>(self);
}

inline std::int32_t peek(void* self, const queen_scope* scope, queen_readiness* out) noexcept {
    return guarded([&] {
        const Readiness found = source_of(self).peek(from_c(*scope));
        *out = {static_cast<std::int32_t>(found.state), 0, found.partitions, found.messages,
                to_c(found.next_due)};
    });
}

inline std::int32_t take(void* self, const queen_take* take, const queen_name_sink* sink,
                         queen_selection* out) noexcept {
    return guarded([&] {
        SinkNames names(sink);
        Selection made = source_of(self).take(
            {from_c(take->scope), take->round, take->partitions, take->messages, take->limit},
            names);
        // Last, with nothing after it that can throw: the cookie is owned by exactly one side.
        *out = {static_cast<std::int32_t>(made.pick), made.holds_window ? QUEEN_HOLDS_WINDOW : 0u,
                made.window.count(), made.cookie.release()};
    });
}

inline std::int32_t settle(void* self, const queen_scope* scope, void* cookie,
                           const queen_verdict* verdicts, std::size_t count) noexcept {
    std::unique_ptr<Cookie> owned(static_cast<Cookie*>(cookie)); // whatever happens below
    return guarded([&] {
        const Converted<Verdict> converted(std::span<const queen_verdict>(verdicts, count));
        source_of(self).settle(from_c(*scope), std::move(owned), converted.view());
    });
}

inline std::int32_t mark(void* self, const queen_queue* queue, const queen_str* group,
                         std::int32_t origin, const queen_mark* marks, std::size_t count) noexcept {
    return guarded([&] {
        const Converted<Mark> converted(std::span<const queen_mark>(marks, count));
        source_of(self).mark(from_c(*queue), group == nullptr ? std::string_view{} : from_c(*group),
                             static_cast<Origin>(origin), converted.view());
    });
}

inline std::int32_t released(void* self, const queen_queue* queue, queen_str group,
                             const queen_uuid* partition_id, std::int32_t covered) noexcept {
    return guarded([&] {
        source_of(self).released(from_c(*queue), from_c(group), from_c(*partition_id),
                                 covered != 0);
    });
}

inline std::int32_t learn(void* self, const queen_queue* queue, queen_str partition,
                          const queen_uuid* partition_id) noexcept {
    return guarded(
        [&] { source_of(self).learn(from_c(*queue), from_c(partition), from_c(*partition_id)); });
}

inline std::int32_t forget(void* self, queen_str tenant, const queen_str* queue,
                           const queen_str* group) noexcept {
    return guarded([&] {
        source_of(self).forget(from_c(tenant),
                               queue == nullptr ? std::string_view{} : from_c(*queue),
                               group == nullptr ? std::string_view{} : from_c(*group));
    });
}

inline std::int32_t configured(void* self, const queen_queue* queue,
                               const queen_queue_config* config) noexcept {
    return guarded([&] {
        source_of(self).configured(from_c(*queue),
                                   {Nanoseconds(config->delay), Nanoseconds(config->window),
                                    time_from_c(config->read_at)});
    });
}

inline std::int32_t reseed_page(void* self, const queen_scope* scope, std::uint64_t ticket,
                                const queen_reseed_row* rows, std::size_t count) noexcept {
    bool more = false;
    const std::int32_t fault = guarded([&] {
        const Converted<ReseedRow> converted(std::span<const queen_reseed_row>(rows, count));
        more = source_of(self).reseed_page(from_c(*scope), ticket, converted.view());
    });
    return fault != 0 || more ? fault : QUEEN_RESEED_ENOUGH;
}

inline std::int32_t reseed_done(void* self, const queen_scope* scope, std::uint64_t ticket,
                                std::int32_t complete) noexcept {
    return guarded([&] { source_of(self).reseed_done(from_c(*scope), ticket, complete != 0); });
}

/// A tick that throws is asked again after a second rather than never. A guess, not measured.
inline constexpr Nanoseconds kTickAfterFault = std::chrono::seconds(1);

inline std::int64_t tick(void* self, std::int64_t now) noexcept {
    std::int64_t next = to_c(time_from_c(now) + kTickAfterFault);
    guarded([&] { next = to_c(source_of(self).tick(time_from_c(now))); });
    return next;
}

inline void stats(void* self, void* sink, queen_stat_fn add) noexcept {
    guarded([&] {
        SinkStats out(sink, add);
        source_of(self).stats(out);
    });
}

} // namespace detail

/// The C table of a source that `Make(Host&)` builds: Make returns
/// std::unique_ptr<CandidateSource>, or throws ConfigError to refuse an option.
template <auto Make>
inline constexpr queen_candidates candidates{
    sizeof(queen_candidates),
    0,
    detail::create<Make>,
    detail::destroy,
    detail::peek,
    detail::take,
    detail::settle,
    detail::mark,
    detail::released,
    detail::learn,
    detail::forget,
    detail::configured,
    detail::reseed_page,
    detail::reseed_done,
    detail::tick,
    detail::stats,
};

} // namespace queen::plugin

/// Defines the two symbols a plugin exports: the stamp, in the section that the host reads from the
/// file, and the entry. ID: reverse-DNS for vendors. OPTIONS: an array of queen_option, or
/// kNoOptions. TABLE: the C table behind EXTENSION, e.g. `candidates<make>`.
#define QUEEN_PLUGIN(ID, VERSION, OPTIONS, EXTENSION, TABLE)                                       \
    extern "C" {                                                                                   \
    extern const queen_build_stamp queen_plugin_stamp                                              \
        __attribute__((visibility("default"), section(QUEEN_STAMP_SECTION)));                      \
    extern const queen_plugin_entry queen_plugin __attribute__((visibility("default")));           \
    constinit const queen_build_stamp queen_plugin_stamp =                                         \
        ::queen::plugin::make_stamp(ID, VERSION);                                                  \
    constinit const queen_plugin_entry queen_plugin = {                                            \
        sizeof(queen_plugin_entry), ::queen::plugin::detail::option_count(OPTIONS),                \
        ::queen::plugin::detail::option_rows(OPTIONS), [](const char* id) -> const void* {         \
            return std::strcmp(id, EXTENSION) == 0 ? static_cast<const void*>(&(TABLE)) : nullptr; \
        }};                                                                                        \
    }
