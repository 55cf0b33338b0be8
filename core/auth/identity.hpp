#pragma once
#include <cstdint>
#include <string>

namespace queen::auth {

/// What somebody may do, as bits; a token may name several roles.
enum class Role : std::uint8_t { read_only = 1, write_only = 2, read_write = 4, admin = 8 };

/// What a route asks for.
enum class Level : std::uint8_t {
    open,       ///< nobody is asked
    page,       ///< without a token as long as its path is among auth.skip_paths, else as read_only
    read_only,  ///< looks
    write_only, ///< pushes
    read_write, ///< takes, settles, configures
    admin,
};

class Roles {
public:
    constexpr Roles() = default;
    constexpr Roles& add(Role role) {
        bits_ = static_cast<std::uint8_t>(bits_ | static_cast<std::uint8_t>(role));
        return *this;
    }
    constexpr bool has(Role role) const { return (bits_ & static_cast<std::uint8_t>(role)) != 0; }
    constexpr bool none() const { return bits_ == 0; }

    /// admin may do what read-write may, read-write what read-only and write-only may; of these two
    /// neither may do what the other does.
    /// @source AUTH-2
    constexpr bool may(Level level) const {
        switch (level) {
        case Level::open:
            return true;
        case Level::page:
        case Level::read_only:
            return has(Role::read_only) || has(Role::read_write) || has(Role::admin);
        case Level::write_only:
            return has(Role::write_only) || has(Role::read_write) || has(Role::admin);
        case Level::read_write:
            return has(Role::read_write) || has(Role::admin);
        case Level::admin:
            return has(Role::admin);
        }
        return false;
    }
    friend constexpr bool operator==(Roles, Roles) = default;

private:
    std::uint8_t bits_ = 0;
};

/// Who sent a request, as the token says.
struct Identity {
    std::string subject; ///< "": the token names none
    Roles roles;
};

} // namespace queen::auth
