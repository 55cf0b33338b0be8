#pragma once
#include "auth/verifier.hpp"
#include "base/workers.hpp"
#include "settings/settings.hpp"

#include <functional>
#include <memory>
#include <string>

namespace queen::auth {

/// What authentication needs of the program around it.
struct Surroundings {
    Ticker& ticker; ///< kept for reading published keys, which blocks
    const Clock& clock;
    std::function<void(const std::string&)> warn;
};

/// Makes the verifier that the settings ask for. Reads published keys, so it may take as long as
/// that.
/// @errors what is wrong with a key, by the name of its option; never the key
/// @source AUTH-5
Result<std::shared_ptr<const Verifier>> make_verifier(const settings::AuthSettings& settings,
                                                      const Surroundings& around);

/// The token of an Authorization field: behind `Bearer`, in any case, or bare. "": none.
std::string_view token_of(std::string_view field);

} // namespace queen::auth
