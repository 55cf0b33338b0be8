// queen/plugin/entry.hpp - turns a C++ class into the C tables of abi.h. Included by one file of a
// plugin (plugin.cpp by custom) and compiled into it, so no C++ type, exception or allocation
// crosses the library's border: every trampoline catches whatever the class throws and answers
// non-zero, which the host counts and survives.
//
//     std::unique_ptr<CandidateSource> make(Host& host) {
//         return std::make_unique<Recent>(Options{host.size("capacity")}, host.clock());
//     }
//     QUEEN_PLUGIN("com.acme.recent", "1.0.0", kOptions, QUEEN_CANDIDATES, candidates<make>)
//
// A mesh is made from a MeshPluginHost& and becomes QUEEN_MESH, mesh<make>; a timer driver from a
// TimerPluginHost& and becomes QUEEN_TIMERS, timers<make>.
#pragma once
#include <queen/plugin/entry_candidates.hpp>
#include <queen/plugin/entry_common.hpp>
#include <queen/plugin/entry_mesh.hpp>
#include <queen/plugin/entry_timers.hpp>

#include <cstring>

/// Defines the two symbols a plugin exports: the stamp, in the section that the host reads from the
/// file, and the entry. ID: reverse-DNS for vendors. OPTIONS: an array of queen_option, or
/// kNoOptions. TABLE: the C table behind EXTENSION, e.g. `candidates<make>`.
#define QUEEN_PLUGIN(ID, VERSION, OPTIONS, EXTENSION, TABLE)                                       \
    extern "C" {                                                                                   \
    extern const queen_build_stamp queen_plugin_stamp                                              \
        __attribute__((visibility("default"), section(QUEEN_STAMP_SECTION)));                      \
    extern const queen_plugin_entry queen_plugin __attribute__((visibility("default")));           \
    constinit const queen_build_stamp queen_plugin_stamp =                                         \
        ::queen::plugin::make_stamp(ID, VERSION, "", ::queen::plugin::minor_of(EXTENSION));        \
    constinit const queen_plugin_entry queen_plugin = {                                            \
        sizeof(queen_plugin_entry), ::queen::plugin::detail::option_count(OPTIONS),                \
        ::queen::plugin::detail::option_rows(OPTIONS), [](const char* id) -> const void* {         \
            return std::strcmp(id, EXTENSION) == 0 ? static_cast<const void*>(&(TABLE)) : nullptr; \
        }};                                                                                        \
    }
