#pragma once
#include <cstdint>
#include <string>

namespace queen::app {

/// The most telling line of what a failed server program printed, without its prefix: the last
/// fatal one, but a full disk before whatever followed from it, and for bad settings with the line
/// that names them. Empty when it said nothing of the kind.
std::string telling_line(const std::string& text);

/// The server's log file, which the server writes through a descriptor the broker gave it.
class PostgresLog {
public:
    explicit PostgresLog(std::string path) : path_(std::move(path)) {}
    const std::string& path() const noexcept { return path_; }
    std::uintmax_t size() const; ///< bytes; 0 when there is none
    /// telling_line() of what was written from byte `from` on.
    std::string reason(std::uintmax_t from) const;
    /// Beyond 32 MiB: moves what is there to a second file with the suffix .1.
    void trim() const;

private:
    std::string path_;
};

} // namespace queen::app
