#pragma once
#include "base/result.hpp"

#include <string>
#include <string_view>

namespace queen::http {

inline constexpr std::size_t kMaxConfigureBodyBytes = std::size_t{1} << 20;

/// A checked configure request. `options_json` is what Admin::configure takes: `mode`, `namespace`,
/// `task` and the options given; with merge a null stands for "back to the default".
struct Configuration {
    std::string queue;
    std::string options_json;
};

/// Why a configuration is refused: `option` is the one at fault, "" when it is something else.
struct ConfigurationError {
    Error error;
    std::string option;
    bool unreadable = false; ///< the body is no JSON object at all
};

/// Unknown option names, wrong types and values out of bounds are refused by name (K37).
/// @param merges what a request without `mode` does
/// @param has_key whether the broker can encrypt; without a key nobody may ask for it (ENC-1)
/// @source CFG-1
tl::expected<Configuration, ConfigurationError>
read_configuration(std::string_view tenant, std::string_view body, bool merges, bool has_key);

} // namespace queen::http
