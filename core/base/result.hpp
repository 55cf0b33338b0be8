#pragma once
#include "base/errc.hpp"

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace queen {

/// An expected failure as a value: one sentence for a person, a code for the program.
struct Error {
    Errc code = Errc::internal;
    std::string message;
    std::string sqlstate; ///< of the store, when it said one
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Errc code, std::string message, std::string sqlstate = {}) {
    return tl::unexpected<Error>(Error{code, std::move(message), std::move(sqlstate)});
}
inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}

} // namespace queen
