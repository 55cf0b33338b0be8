// mesh/context.hpp - what every connection of the mesh uses.
#pragma once
#include "budget.hpp"
#include "figures.hpp"
#include "identity.hpp"
#include "options.hpp"
#include "outbox.hpp"
#include "poller.hpp"
#include "roster.hpp"

#include <queen/plugin/mesh.hpp>
#include <queen/plugin/types.hpp>

#include <functional>
#include <string_view>

namespace queen::mesh {

using Log = std::function<void(plugin::LogLevel, std::string_view)>; ///< @thread any

/// Lines about what strangers do: at most one a second, the rest is only counted.
class Complaints {
public:
    explicit Complaints(const Log& log) : log_(log) {}
    /// @return whether it was written
    bool add(SteadyTime now, const std::string& line);

private:
    const Log& log_;
    SteadyTime next_ = SteadyTime::min();
    std::uint64_t withheld_ = 0;
};

struct Context {
    const Options& options;
    const Clock& clock;
    plugin::MeshHost& host;
    Figures& figures;
    Outbox& outbox;
    Roster& roster;
    Poller& poller;
    const Log& log;
    Complaints& complaints;
    Namesakes& namesakes;
    Budgets& budgets;
};

} // namespace queen::mesh
