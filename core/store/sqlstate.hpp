#pragma once
#include "base/errc.hpp"

#include <string_view>

namespace queen::store {

/// The one map from what the server says to what the core knows. An empty SQLSTATE means that no
/// answer came: the link broke, and whether the statement took effect is not known.
/// @source ERR-2 (docs/rules.md)
Errc errc_of_sqlstate(std::string_view sqlstate) noexcept;

/// True when the server that said this is going away or was never the right one, so that the link
/// must be opened anew before it is used again.
bool ends_the_link(std::string_view sqlstate) noexcept;

} // namespace queen::store
