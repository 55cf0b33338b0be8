#include "app/socket_folder.hpp"

#include "base/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

namespace queen::app {

namespace {

constexpr std::size_t kPathLimit = 107; // sockaddr_un holds 108 with the NUL
constexpr std::string_view kSocketName = "/.s.PGSQL.5432";

bool fits(const std::string& folder) {
    return folder.size() + kSocketName.size() <= kPathLimit &&
           folder.find(',') == std::string::npos;
}

} // namespace

std::string socket_folder_for(const std::string& data, const Account& account) {
    std::string folder = data + "/run";
    if (fits(folder)) {
        return folder;
    }
    const std::uint64_t hash = std::hash<std::string>{}(data);
    const std::string name =
        "/queen-" + to_hex({reinterpret_cast<const char*>(&hash), sizeof hash});
    const char* runtime = account.change ? "/run" : std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime == '/' && access(runtime, W_OK | X_OK) == 0 &&
        fits(runtime + name)) {
        return runtime + name;
    }
    return "/tmp" + name;
}

Result<void> open_socket_folder(const std::string& folder, const Account& account) {
    if (mkdir(folder.c_str(), 0700) == 0) {
        if (account.change && chown(folder.c_str(), account.uid, account.gid) != 0) {
            return fail(system_error("cannot give away", folder, errno));
        }
        return {};
    }
    if (errno != EEXIST) {
        return fail(system_error("cannot make socket folder", folder, errno));
    }
    struct stat info {};
    if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != account.uid ||
        (info.st_mode & 077U) != 0) {
        return fail(Errc::conflict, "socket folder " + folder +
                                        " exists and is not a private directory of the database's "
                                        "user: remove it");
    }
    return {};
}

} // namespace queen::app
