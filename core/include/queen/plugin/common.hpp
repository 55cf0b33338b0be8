// queen/plugin/common.hpp - what the classes of every kind of plugin use.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace queen::plugin {

/// Thrown by a constructor when an option is legal by its table but not by its meaning; the host
/// turns `option` into file:line:column.
class ConfigError : public std::runtime_error {
public:
    ConfigError(std::string option, const std::string& why)
        : std::runtime_error(why), option_(std::move(option)) {}
    const std::string& option() const noexcept { return option_; }

private:
    std::string option_;
};

/// Of a line for the broker's log. The numbers are those of abi.h.
enum class LogLevel { error = 1, warning, info, debug };

/// Where a plugin's figures go. A name that ends in _total is a counter, any other a gauge.
class Stats {
public:
    virtual ~Stats() = default;
    virtual void add(std::string_view name, double value) = 0;
};

} // namespace queen::plugin
