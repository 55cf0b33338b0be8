// http/router.hpp - from a whole request to the handler that answers it.
//
// handle() runs on the network thread: it decodes the path, finds the route in one table and posts
// the rest. Whatever parses a body, calls a plugin or asks the store runs on a worker (RT-2,
// POP-10). A handler answers now or later; a pop that waits holds only its Call.
#pragma once
#include "http/call.hpp"
#include "http/route_table.hpp"

namespace queen::http {

/// With authentication on, even that a path does not exist is told to those alone who have a token.
/// Locks: none of its own.
class Routes : public Handler {
public:
    explicit Routes(Services services);
    /// @thread the front's
    void handle(Request request, std::shared_ptr<Exchange> exchange) override;

private:
    Services services_;
    Access access_;
    RouteTable table_;
};

} // namespace queen::http
