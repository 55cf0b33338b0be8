// The only file of this plugin that knows how it is loaded.
#include "sweeper.hpp"

#include <queen/plugin/entry.hpp>

#include <random>

namespace {

namespace plugin = queen::plugin;
using namespace std::chrono_literals;

constexpr queen_option kOptions[] = {
    plugin::boolean("enabled", {.fallback = "true", .env = "QUEEN_SWEEPER"},
                    "Whether this broker fires timers; without it they wait for another one."),
    plugin::duration(
        "min_sleep",
        {.fallback = "5ms", .min = 1ms, .max = 1s, .env = "QUEEN_SWEEPER_MIN_SLEEP_MS"},
        "Shortest time between two cycles."),
    plugin::duration(
        "max_sleep",
        {.fallback = "1s", .min = 5ms, .max = 60s, .env = "QUEEN_SWEEPER_MAX_SLEEP_MS"},
        "Longest time between two cycles; how late another broker's new timers may be."),
    plugin::duration(
        "idle_max_sleep",
        {.fallback = "1s", .min = 5ms, .max = 10min, .env = "QUEEN_SWEEPER_IDLE_MAX_SLEEP_MS"},
        "The same while nothing is near; no less than max_sleep."),
    plugin::integer("idle_after",
                    {.unit = "cycles",
                     .fallback = "5",
                     .min = 1,
                     .max = 1000,
                     .env = "QUEEN_SWEEPER_IDLE_AFTER_CYCLES"},
                    "Cycles with nothing near after which sleeps double up to idle_max_sleep."),
    plugin::duration(
        "empty_claim_min",
        {.fallback = "25ms", .min = 1ms, .max = 60s, .env = "QUEEN_SWEEPER_EMPTY_CLAIM_MIN_MS"},
        "Shortest sleep when others have what is due."),
    plugin::duration(
        "empty_claim_max",
        {.fallback = "200ms", .min = 1ms, .max = 60s, .env = "QUEEN_SWEEPER_EMPTY_CLAIM_MAX_MS"},
        "Longest such sleep; each is drawn at random."),
    plugin::duration(
        "lease", {.fallback = "30s", .min = 1s, .max = 10min, .env = "QUEEN_SWEEPER_LEASE_MS"},
        "How long claimed timers are this broker's; a cycle takes half of it at most."),
    plugin::integer("claim_batch",
                    {.unit = "timers",
                     .fallback = "200",
                     .min = 1,
                     .max = 10'000,
                     .env = "QUEEN_SWEEPER_CLAIM_BATCH"},
                    "Timers a claim takes."),
    plugin::integer("cycle_max_rows",
                    {.unit = "timers",
                     .fallback = "5000",
                     .min = 1,
                     .max = 1'000'000,
                     .env = "QUEEN_SWEEPER_CYCLE_MAX_ROWS"},
                    "Timers a cycle takes, in all lanes together."),
    plugin::integer("due_cap",
                    {.unit = "timers",
                     .fallback = "2000",
                     .min = 1,
                     .max = 1'000'000,
                     .env = "QUEEN_SWEEPER_DUE_CAP"},
                    "How far due timers are counted."),
    plugin::integer("max_fire_bytes",
                    {.unit = "bytes",
                     .fallback = "8388608",
                     .min = 1,
                     .max = 1 << 30,
                     .env = "QUEEN_SWEEPER_MAX_FIRE_BYTES"},
                    "Packed bytes that one transaction fires; a single segment may be more."),
    plugin::integer("max_attempts",
                    {.unit = "attempts",
                     .fallback = "5",
                     .min = 1,
                     .max = 1000,
                     .env = "QUEEN_SWEEPER_MAX_ATTEMPTS"},
                    "Permanent failures after which a timer becomes a dead letter."),
    plugin::integer(
        "parallelism",
        {.unit = "lanes", .fallback = "1", .min = 1, .max = 8, .env = "QUEEN_SWEEPER_PARALLELISM"},
        "Batches fired at a time."),
    plugin::boolean("isolate", {.fallback = "true", .env = "QUEEN_SWEEPER_ISOLATE_ON_PERMANENT"},
                    "Fire one segment at a time after a permanent failure of several."),
    plugin::integer("fire_rate_per_tenant",
                    {.unit = "timers",
                     .fallback = "50",
                     .min = 1,
                     .max = 10'000,
                     .env = "QUEEN_SWEEPER_FIRE_RATE_PER_TENANT"},
                    "Timers of a tenant in a claim; it has more when others leave some."),
    plugin::duration(
        "backoff_min",
        {.fallback = "1s", .min = 1ms, .max = 1h, .env = "QUEEN_SWEEPER_BACKOFF_MIN_MS"},
        "How long a timer waits after its first permanent failure; doubles with each."),
    plugin::duration(
        "backoff_max",
        {.fallback = "60s", .min = 1ms, .max = 24h, .env = "QUEEN_SWEEPER_BACKOFF_MAX_MS"},
        "Longest such wait."),
    plugin::duration(
        "transient_backoff",
        {.fallback = "1s", .min = 1ms, .max = 1h, .env = "QUEEN_SWEEPER_TRANSIENT_BACKOFF_MS"},
        "Sleep after a failure of the database, which counts for no timer."),
};

void no_less(const char* option, queen::Nanoseconds value, const char* than,
             queen::Nanoseconds least) {
    if (value < least) {
        throw plugin::ConfigError(option, std::string("is less than ") + than);
    }
}

std::unique_ptr<plugin::TimerDriver> make(plugin::TimerPluginHost& host) {
    const auto count = [&host](const char* option) {
        return static_cast<std::uint32_t>(host.size(option));
    };
    queen::timers::Options options;
    options.enabled = host.boolean("enabled");
    options.min_sleep = host.duration("min_sleep");
    options.max_sleep = host.duration("max_sleep");
    options.idle_max_sleep = host.duration("idle_max_sleep");
    options.idle_after = count("idle_after");
    options.empty_claim_min = host.duration("empty_claim_min");
    options.empty_claim_max = host.duration("empty_claim_max");
    options.lease = host.duration("lease");
    options.batch = count("claim_batch");
    options.cycle_rows = count("cycle_max_rows");
    options.due_cap = count("due_cap");
    options.fire_bytes = host.size("max_fire_bytes");
    options.attempts = static_cast<std::int32_t>(host.size("max_attempts"));
    options.parallelism = count("parallelism");
    options.isolate = host.boolean("isolate");
    options.tenant_rows = count("fire_rate_per_tenant");
    options.backoff_min = host.duration("backoff_min");
    options.backoff_max = host.duration("backoff_max");
    options.transient_backoff = host.duration("transient_backoff");
    options.seed = std::random_device{}();
    no_less("max_sleep", options.max_sleep, "min_sleep", options.min_sleep);
    no_less("idle_max_sleep", options.idle_max_sleep, "max_sleep", options.max_sleep);
    no_less("empty_claim_max", options.empty_claim_max, "empty_claim_min", options.empty_claim_min);
    no_less("backoff_max", options.backoff_max, "backoff_min", options.backoff_min);
    const auto log = [&host](plugin::LogLevel level, std::string_view line) {
        host.log(level, line);
    };
    return std::make_unique<queen::timers::Sweeper>(options, host.clock(), host, log);
}

} // namespace

QUEEN_PLUGIN("queen.timers", "1.0.0", kOptions, QUEEN_TIMERS, plugin::timers<make>)
