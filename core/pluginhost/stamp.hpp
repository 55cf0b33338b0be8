// pluginhost/stamp.hpp - the build stamp of a plugin, read from the file before anything of it is
// mapped: a refused plugin never runs a line, not even a static constructor.
//
// The reader trusts nothing: each offset and size is checked against the file's length, nothing is
// mapped (a file cut short under a mapping would raise SIGBUS), and whatever does not add up is a
// refusal of one sentence that goes on from "FILE: ".
#pragma once
#include "base/result.hpp"

#include <queen/plugin/abi.h>

#include <cstdint>
#include <string>

namespace queen::pluginhost {

/// What a plugin says about how it was built.
struct Stamp {
    std::uint16_t abi_major = 0;
    std::uint16_t abi_minor = 0; ///< the lowest host minor it can live on
    std::uint32_t build = 0;     ///< QUEEN_BUILD_*
    std::string platform;
    std::string exact_host; ///< "" for any broker of this ABI
    std::string plugin_id;
    std::string plugin_version;
};

/// What this broker is, for the comparison.
struct HostBuild {
    std::uint16_t abi_major = QUEEN_ABI_MAJOR;
    std::uint16_t abi_minor = QUEEN_ABI_MINOR;
    std::uint32_t build = 0;
    std::string platform;
    std::string version;
};
const HostBuild& this_build();

/// Reads the stamp section of an ELF file through an open descriptor, whose position is not moved.
/// @thread any
/// @errors unsupported: not a file, not ELF64 for x86-64 in little-endian, damaged, or no stamp
/// @source PLG-1
Result<Stamp> read_stamp(int descriptor);

/// Whether this broker may load what bears the stamp.
/// @errors unsupported, with both sides' values in the sentence
/// @source PLG-2, K38
Result<void> judge(const Stamp& stamp, const HostBuild& host);

} // namespace queen::pluginhost
