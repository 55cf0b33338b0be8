// pluginhost/library.hpp - a shared library that passed the gate. The order is fixed: open the
// file, judge its stamp, and only then let the loader map it, through the same descriptor, so that
// what runs is what was judged even if the path is replaced in between.
//
// Nothing is ever unmapped: code of a plugin may still be on some thread's stack, and a plugin's
// thread-local destructors run when threads end. A new build of a plugin needs a new start of the
// broker. The descriptor stays open as long, because the loader knows the library by its name
// /proc/self/fd/N and must not meet that name again for another file.
#pragma once
#include "base/result.hpp"
#include "pluginhost/options.hpp"
#include "pluginhost/stamp.hpp"

#include <queen/plugin/abi.h>

#include <memory>
#include <string>
#include <vector>

namespace queen::pluginhost {

/// The file that a path in YAML means: an absolute one as it is, else the first folder's that has
/// it.
/// @errors not_found: none has; the message begins with the path
Result<std::string> find_library(const std::vector<std::string>& folders, const std::string& path);

/// The extensions of abi.h that this broker can use.
const std::vector<std::string>& known_kinds();

/// @thread main for open(); any for the rest
class Library {
public:
    /// @errors unsupported: the stamp does not fit; not_found: no such file; corrupt: the loader
    /// refuses it, or its entry is missing or broken; unsupported as well: it is of no kind that
    /// this broker knows, or of several. The message begins with the path.
    /// @source PLG-1, PLG-2, PLG-3, PLG-13
    static Result<std::shared_ptr<const Library>> open(const std::string& path,
                                                       const HostBuild& host);

    const std::string& path() const noexcept { return path_; }
    const Stamp& stamp() const noexcept { return stamp_; }
    const std::vector<OptionSpec>& options() const noexcept { return options_; }
    /// The one of known_kinds() that the plugin is of.
    const std::string& kind() const noexcept { return kind_; }
    /// The table behind an extension id, nullptr when the plugin is not of that kind.
    const void* factory(const std::string& kind) const;
    /// Whether both are one file on disk, under whatever paths.
    bool same_file(const Library& other) const noexcept;

private:
    Library() = default;
    Result<void> read_entry(const void* symbol);

    std::string path_;
    Stamp stamp_;
    std::vector<OptionSpec> options_;
    std::string kind_;
    const void* (*get_factory_)(const char*) = nullptr;
    std::uint64_t device_ = 0, inode_ = 0;
};

/// The candidates table, cut or filled up to the size this broker knows: what the plugin does not
/// have is nullptr.
/// @errors corrupt: too short for the required functions, or one of them is missing
/// @source PLG-3
Result<queen_candidates> read_candidates_table(const void* factory);
Result<queen_mesh> read_mesh_table(const void* factory);     ///< likewise
Result<queen_timers> read_timers_table(const void* factory); ///< likewise

/// What `queenctl plugin inspect` prints of a file. Loads it when its stamp fits.
struct Inspection {
    std::string path;
    std::optional<Stamp> stamp; ///< nullopt when the file has none that can be read
    std::vector<std::string> kinds;
    std::vector<OptionSpec> options;
    bool fits = false;
    std::string verdict; ///< "fits this broker", or the sentence of the refusal
};
Inspection inspect(const std::string& path, const HostBuild& host = this_build());

} // namespace queen::pluginhost
