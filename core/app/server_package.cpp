#include "app/server_package.hpp"

#include "base/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace queen::app {

namespace {

/// Majors whose server (not only the client) is installed, ascending.
std::vector<int> installed(const std::string& root) {
    std::vector<int> majors;
    std::error_code ignored; // a root that cannot be listed offers nothing
    for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
        const auto number = parse_int(entry.path().filename().string());
        const std::string bin = entry.path().string() + "/bin/";
        if (number && *number > 0 && *number < 1'000 &&
            access((bin + "postgres").c_str(), X_OK) == 0 &&
            access((bin + "initdb").c_str(), X_OK) == 0) {
            majors.push_back(static_cast<int>(*number));
        }
    }
    std::sort(majors.begin(), majors.end());
    return majors;
}

std::string package(int major) {
    return "postgresql-" + std::to_string(major);
}

} // namespace

Result<ServerPackage> find_server(const std::string& root, std::optional<int> major_of_data) {
    const std::vector<int> majors = installed(root);
    if (majors.empty()) {
        return fail(Errc::unavailable, "no PostgreSQL server found in " + root +
                                           ": install the package " +
                                           package(major_of_data.value_or(kOldestPostgres)) +
                                           ", or set database.url to a server of yours");
    }
    const int newest = majors.back();
    if (newest < kOldestPostgres) {
        return fail(Errc::unavailable,
                    "PostgreSQL " + std::to_string(newest) + " in " + root +
                        " is too old: version " + std::to_string(kOldestPostgres) +
                        " or newer is needed, install the package " + package(kOldestPostgres));
    }
    const int wanted = major_of_data.value_or(newest);
    if (std::find(majors.begin(), majors.end(), wanted) == majors.end()) {
        return fail(Errc::unavailable,
                    "the data was written by PostgreSQL " + std::to_string(wanted) + ", and " +
                        root + " has " + std::to_string(newest) + ": install the package " +
                        package(wanted) + ", or move the data over with pg_upgrade");
    }
    if (wanted < kOldestPostgres) {
        return fail(Errc::unavailable, "the data was written by PostgreSQL " +
                                           std::to_string(wanted) + ", which is too old: move it " +
                                           "to version " + std::to_string(kOldestPostgres) +
                                           " or newer with pg_upgrade");
    }
    return ServerPackage{wanted, root + "/" + std::to_string(wanted) + "/bin"};
}

} // namespace queen::app
