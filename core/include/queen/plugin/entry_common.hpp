// queen/plugin/entry_common.hpp - what every kind of plugin needs to become a C table: the stamp,
// the option table, the host as a plugin sees it, and the guards of the calls.
#pragma once
#include <queen/plugin/abi.h>
#include <queen/plugin/common.hpp>
#include <queen/plugin/convert.hpp>

#include <chrono>
#include <cstddef>
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

/// The lowest minor of the ABI that has what plugins of this kind use.
consteval std::uint16_t minor_of(std::string_view extension) {
    if (extension == QUEEN_CANDIDATES) {
        return QUEEN_CANDIDATES_MINOR;
    }
    if (extension == QUEEN_MESH) {
        return QUEEN_MESH_MINOR;
    }
    if (extension == QUEEN_TIMERS) {
        return QUEEN_TIMERS_MINOR;
    }
    return QUEEN_ABI_MINOR;
}

/// `exact_host`: the one broker version that may load it; "" for every broker of this ABI.
consteval queen_build_stamp make_stamp(std::string_view id, std::string_view version,
                                       std::string_view exact_host = "",
                                       std::uint16_t minor = QUEEN_ABI_MINOR) {
    queen_build_stamp stamp{};
    stamp.magic = QUEEN_ABI_MAGIC;
    stamp.size = sizeof(queen_build_stamp);
    stamp.abi_major = QUEEN_ABI_MAJOR;
    stamp.abi_minor = minor;
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

static_assert(static_cast<int>(LogLevel::error) == QUEEN_LOG_ERROR &&
              static_cast<int>(LogLevel::debug) == QUEEN_LOG_DEBUG);

/// What the broker offers to a plugin of any kind. It outlives the object that make() returns, so
/// that may keep references to it and to its clock().
/// @thread any, but for the option readers, which are [main]
class HostView : private Clock {
public:
    HostView(const HostView&) = delete;
    HostView& operator=(const HostView&) = delete;

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

    /// For libpq, with what it takes to log in: never write it to a log. Empty when this broker
    /// lets no plugin into its database.
    std::string conninfo() const {
        const auto* database =
            static_cast<const queen_host_database*>(host_->extension(host_, QUEEN_HOST_DATABASE));
        return database == nullptr || database->size < sizeof(queen_host_database)
                   ? std::string()
                   : std::string(from_c(database->conninfo(host_)));
    }

    const Clock& clock() const noexcept { return *this; }
    void log(LogLevel level, std::string_view text) const noexcept {
        host_->log(host_, static_cast<std::int32_t>(level), to_c(text));
    }

protected:
    /// @errors throws when the broker's table is not whole
    explicit HostView(const queen_host* host) : host_(host) {
        if (host == nullptr || host->size < sizeof(queen_host)) {
            throw std::runtime_error("this broker's host table is too short");
        }
    }
    ~HostView() override = default;
    /// What the broker offers to one kind. @errors throws when it lacks that, or has less of it
    /// @param least bytes that must be there; what lies behind them, only `size` tells
    template <class Table>
    const Table& offered(const char* id, std::size_t least = sizeof(Table)) const {
        const auto* table = static_cast<const Table*>(host_->extension(host_, id));
        if (table == nullptr || table->size < least) {
            throw std::runtime_error(std::string("this broker has no ") + id);
        }
        return *table;
    }
    const queen_host* raw() const noexcept { return host_; }

private:
    SteadyTime now() const noexcept override { return time_from_c(host_->now(host_)); }

    const queen_host* host_;
};

// ---- a class as a C table ----------------------------------------------------------------------

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

/// Puts the exception that is being handled into words.
inline void report_current(queen_error* error) noexcept {
    try {
        throw;
    } catch (const ConfigError& e) {
        report(error, QUEEN_BAD_OPTION, e.option(), e.what());
    } catch (const std::exception& e) {
        report(error, QUEEN_FAILED, "", e.what());
    } catch (...) {
        report(error, QUEEN_FAILED, "", "an exception of unknown type");
    }
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

class SinkStats final : public Stats {
public:
    SinkStats(void* sink, queen_stat_fn add) noexcept : sink_(sink), add_(add) {}
    void add(std::string_view name, double value) override { add_(sink_, to_c(name), value); }

private:
    void* sink_;
    queen_stat_fn add_;
};

/// One instance: the object and the host view it was built from. Members die in reverse order, so
/// the object never outlives its host.
template <class HostOfKind, class Class>
struct Instance {
    HostOfKind host;
    std::unique_ptr<Class> object;
    explicit Instance(const queen_host* raw) : host(raw) {}

    static Class& of(void* self) noexcept { return *static_cast<Instance*>(self)->object; }

    template <auto Make>
    static void* create(const queen_host* raw, queen_error* error) noexcept {
        try {
            auto instance = std::make_unique<Instance>(raw);
            instance->object = Make(instance->host);
            if (instance->object != nullptr) {
                return instance.release();
            }
            report(error, QUEEN_FAILED, "", "the plugin made nothing");
        } catch (...) {
            report_current(error);
        }
        return nullptr;
    }
    static void destroy(void* self) noexcept { delete static_cast<Instance*>(self); }
    static void stats(void* self, void* sink, queen_stat_fn add) noexcept {
        guarded([&] {
            SinkStats out(sink, add);
            of(self).stats(out);
        });
    }
    static std::int64_t tick(void* self, std::int64_t now) noexcept {
        std::int64_t next = to_c(time_from_c(now) + kTickAfterFault);
        guarded([&] { next = to_c(of(self).tick(time_from_c(now))); });
        return next;
    }

    /// A tick that throws is asked again after a second rather than never. A guess, not measured.
    static constexpr Nanoseconds kTickAfterFault = std::chrono::seconds(1);
};

} // namespace detail

} // namespace queen::plugin
