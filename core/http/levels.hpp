#pragma once
#include "auth/identity.hpp"
#include "http/route_table.hpp"

namespace queen::http {

/// What a route asks of whoever calls it. A route that no line of the table names asks for
/// read_write. HEAD asks for what GET does.
/// @source AUTH-1
auth::Level level_of(const Route& route);

} // namespace queen::http
