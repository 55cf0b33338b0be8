#include "process_figures.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace queen::bench {
namespace {

/// The fields of /proc/PID/stat from the third on, which follows the name in brackets.
std::vector<std::string> stat_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return {};
    }
    std::istringstream rest(line.substr(name_end + 1));
    std::vector<std::string> fields;
    for (std::string field; rest >> field;) {
        fields.push_back(field);
    }
    return fields;
}

constexpr std::size_t kParent = 1, kUser = 11, kSystem = 12, kChildUser = 13, kChildSystem = 14,
                      kThreads = 17, kResidentPages = 21;

} // namespace

std::chrono::nanoseconds cpu_of(pid_t pid) {
    const auto fields = stat_of(pid);
    if (fields.size() <= kResidentPages) {
        return {};
    }
    std::int64_t ticks = 0;
    for (const auto field : {kUser, kSystem, kChildUser, kChildSystem}) {
        ticks += std::stoll(fields[field]);
    }
    return std::chrono::nanoseconds(ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
}

std::vector<pid_t> tree_of(pid_t root) {
    std::vector<pid_t> tree{root};
    std::vector<std::pair<pid_t, pid_t>> all; // process and parent
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        const auto pid = static_cast<pid_t>(std::stol(name));
        if (const auto fields = stat_of(pid); fields.size() > kParent) {
            all.emplace_back(pid, static_cast<pid_t>(std::stol(fields[kParent])));
        }
    }
    for (std::size_t i = 0; i < tree.size(); ++i) {
        for (const auto& [pid, parent] : all) {
            if (parent == tree[i]) {
                tree.push_back(pid);
            }
        }
    }
    return tree;
}

std::int64_t resident_bytes(pid_t pid) {
    const auto fields = stat_of(pid);
    return fields.size() <= kResidentPages
               ? 0
               : std::stoll(fields[kResidentPages]) * sysconf(_SC_PAGESIZE);
}

int threads_of(pid_t pid) {
    const auto fields = stat_of(pid);
    return fields.size() <= kThreads ? 0 : std::stoi(fields[kThreads]);
}

} // namespace queen::bench
