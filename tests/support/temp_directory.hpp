#pragma once
#include <string>

namespace queen::test {

/// A folder under $TMPDIR (or /tmp) that goes with the object, and that the database's user may
/// pass through. What a killed test left behind is removed by the next one.
class TempDirectory {
public:
    TempDirectory(); ///< throws std::runtime_error
    ~TempDirectory();
    TempDirectory(const TempDirectory&) = delete;
    TempDirectory& operator=(const TempDirectory&) = delete;
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    int lock_ = -1; ///< held while the folder is in use, so that a sweep leaves it alone
    int owner_;     ///< process that made it: a fork does not remove it
};

} // namespace queen::test
