#include "app/postgres_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace queen::app {

namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

std::string megabytes(std::uint64_t bytes) {
    return std::to_string(bytes / kMiB) + "MB";
}

} // namespace

std::uint64_t usable_memory() {
    std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                          static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::ifstream limit("/sys/fs/cgroup/memory.max"); // "max" without a limit, which does not parse
    if (std::uint64_t allowed = 0; limit >> allowed && allowed > 0) {
        bytes = std::min(bytes, allowed);
    }
    return bytes;
}

std::string postgres_configuration(int max_connections, bool durable, std::uint64_t memory,
                                   const std::map<std::string, std::string>& extra) {
    // An eighth: the broker and the page cache want the rest. Segments are read once and soon.
    const std::uint64_t buffers = std::clamp(memory / 8, 64 * kMiB, 4'096 * kMiB);
    std::map<std::string, std::string> settings{
        {"max_connections", std::to_string(max_connections)},
        {"shared_buffers", megabytes(buffers)},
        {"effective_cache_size", megabytes(std::max(memory / 2, 128 * kMiB))},
        // Checkpoints by time, not by the rate of pushes, so that full-page images stay rare.
        {"max_wal_size", "4GB"},
        {"checkpoint_timeout", "15min"},
        {"wal_buffers", "16MB"},
        // Statements are short: compiling a plan costs more than it ever saves.
        {"jit", "off"},
        {"random_page_cost", "1.1"},
        // Cursor, lease and partition rows are rewritten all the time; segments come and go.
        {"autovacuum_naptime", "10s"},
        {"autovacuum_vacuum_cost_limit", "2000"},
        {"autovacuum_vacuum_scale_factor", "0.05"},
        {"unix_socket_permissions", "0700"},
        {"timezone", "UTC"},
        {"log_timezone", "UTC"},
        {"log_line_prefix", "%m [%p] "},
        {"log_checkpoints", "off"},
        // A statement's text may hold what a tenant sent.
        {"log_min_error_statement", "panic"},
    };
    if (!durable) {
        // A commit still reaches the kernel, so it survives kill -9, though not a power cut.
        settings["fsync"] = "off";
        settings["full_page_writes"] = "off";
    }
    for (const auto& [name, value] : extra) {
        settings[name] = value;
    }
    std::string text = "# Rewritten by the broker at each start; put your own into local.conf.\n";
    for (const auto& [name, value] : settings) {
        text += name + " = '";
        for (const char c : value) {
            text += c == '\'' ? "''" : std::string(1, c);
        }
        text += "'\n";
    }
    return text;
}

} // namespace queen::app
