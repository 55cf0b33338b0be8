// mesh/resolver.hpp - names to addresses, away from the mesh's thread: a name service may take
// long.
#pragma once
#include "sockets.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace queen::mesh {

class Resolver {
public:
    /// @thread any; comes once for each ask()
    using Done = std::function<void(std::uint64_t ticket, Resolved)>;
    virtual ~Resolver() = default;
    virtual void start(Done done) = 0;
    virtual void ask(std::uint64_t ticket, const Address& address) = 0; ///< returns at once
    virtual void stop() = 0; ///< when it has returned, `done` is not called any more
};

/// Asks the system, on one thread of its own; names wait for each other. A call of the name service
/// that does not return when stop() comes is left behind: it holds nothing of the mesh.
std::unique_ptr<Resolver> make_system_resolver();

} // namespace queen::mesh
