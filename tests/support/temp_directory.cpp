#include "support/temp_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace queen::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "queen-test-";

fs::path base_folder() {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

/// Removes the folders whose owner is dead: its lock is free then.
void sweep(const fs::path& base) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(base, error)) {
        if (!entry.path().filename().string().starts_with(kPrefix)) {
            continue;
        }
        // A folder without a lock file is being made this moment.
        const int lock = open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
            fs::remove_all(entry.path(), error);
        }
        if (lock >= 0) {
            close(lock);
        }
    }
}

} // namespace

TempDirectory::TempDirectory() : owner_(getpid()) {
    const fs::path base = base_folder();
    sweep(base);
    path_ = (base / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(path_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot make " + path_);
    }
    chmod(path_.c_str(), 0711);
    // Locked under another name first: a sweep sees it locked or not at all.
    const std::string fresh = path_ + "/lock.new";
    lock_ = open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0 ||
        rename(fresh.c_str(), (path_ + "/lock").c_str()) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot lock " + path_);
    }
}

TempDirectory::~TempDirectory() {
    if (getpid() == owner_) {
        std::error_code ignored; // a leftover is swept by the next test
        fs::remove_all(path_, ignored);
    }
    close(lock_);
}

} // namespace queen::test
