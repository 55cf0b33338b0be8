// What the scripted ports are made of: a hook per verb, which a test sets for the calls it expects.
#pragma once
#include "base/result.hpp"

#include <functional>
#include <tuple>
#include <utility>

namespace queen::test {

/// The last argument is the verb's Done.
template <class... Arguments>
using Hook = std::function<void(Arguments...)>;

/// What a call ends with that the test did not say anything about, so that it is seen.
inline tl::unexpected<Error> unexpected_call() {
    return fail(Errc::unsupported, "the test did not expect this call");
}

/// Calls the hook; where the test set none, it is an unexpected call.
template <class... Parameters, class... Arguments>
void call_hook(const Hook<Parameters...>& hook, Arguments... arguments) {
    if (hook) {
        hook(std::move(arguments)...);
        return;
    }
    const auto& done = std::get<sizeof...(Arguments) - 1>(std::tie(arguments...));
    done(unexpected_call());
}

} // namespace queen::test
