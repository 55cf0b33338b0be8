#include "pluginhost/library.hpp"

#include <boost/dll/shared_library.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace queen::pluginhost {
namespace {

/// Owns a descriptor until it is handed over.
class Descriptor {
public:
    explicit Descriptor(int value) noexcept : value_(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }
    int get() const noexcept { return value_; }
    void keep() noexcept { value_ = -1; }

private:
    int value_;
};

struct FileIdentity {
    std::uint64_t device = 0, inode = 0;
    friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

/// All that was ever mapped. Deliberately never destroyed: see the header.
struct Mapped {
    std::mutex mutex;
    std::map<FileIdentity, boost::dll::shared_library> libraries;
};
Mapped& mapped() {
    static auto* all = new Mapped;
    return *all;
}

tl::unexpected<Error> refuse(Errc code, const std::string& path, const std::string& why) {
    return fail(code, path + " " + why);
}

/// The loader's own words, without what Boost wraps around them and with the path instead of the
/// descriptor it knows.
std::string loader_text(std::string text, const std::string& by_descriptor,
                        const std::string& path) {
    constexpr std::string_view before = "dlerror system message: ";
    if (const std::size_t at = text.find(before); at != std::string::npos) {
        text.erase(0, at + before.size());
        text.resize(std::min(text.size(), text.rfind("): "))); // an errno that nobody set
    }
    for (std::size_t at = text.find(by_descriptor); at != std::string::npos;
         at = text.find(by_descriptor, at + path.size())) {
        text.replace(at, by_descriptor.size(), path);
    }
    return text;
}

/// Maps the file behind the descriptor, or finds it mapped, and looks the entry up.
Result<const void*> map_entry(const std::string& path, Descriptor& file,
                              const FileIdentity& identity) {
    Mapped& all = mapped();
    const std::lock_guard lock(all.mutex);
    auto found = all.libraries.find(identity);
    if (found == all.libraries.end()) {
        const std::string by_descriptor = "/proc/self/fd/" + std::to_string(file.get());
        try {
            boost::dll::shared_library library(boost::filesystem::path(by_descriptor),
                                               boost::dll::load_mode::rtld_now |
                                                   boost::dll::load_mode::rtld_local);
            found = all.libraries.emplace(identity, std::move(library)).first;
            file.keep();
        } catch (const std::exception& e) {
            return refuse(Errc::corrupt, path,
                          "cannot be loaded: " + loader_text(e.what(), by_descriptor, path));
        }
    }
    boost::dll::shared_library& library = found->second;
    if (!library.has(QUEEN_ENTRY_SYMBOL)) {
        return refuse(Errc::corrupt, path,
                      "has a build stamp, but does not export the symbol " QUEEN_ENTRY_SYMBOL);
    }
    return static_cast<const void*>(&library.get<const queen_plugin_entry>(QUEEN_ENTRY_SYMBOL));
}

/// True when a struct that grows at its end is long enough to have the field.
template <class Struct, class Field>
bool has_field(std::uint32_t size, Field Struct::*field) {
    const Struct probe{};
    const auto* end = reinterpret_cast<const char*>(&(probe.*field)) + sizeof(Field);
    return size >= static_cast<std::size_t>(end - reinterpret_cast<const char*>(&probe));
}

} // namespace

Result<std::string> find_library(const std::vector<std::string>& folders, const std::string& path) {
    if (path.empty()) {
        return fail(Errc::not_found, "has no path");
    }
    if (path.front() == '/') {
        return path;
    }
    std::string looked;
    for (const std::string& folder : folders) {
        std::string candidate = folder + "/" + path;
        struct stat status {};
        if (::stat(candidate.c_str(), &status) == 0) {
            return candidate;
        }
        looked += (looked.empty() ? "" : ", ") + folder;
    }
    return fail(Errc::not_found, path + " is in none of the plugin folders (" + looked + ")");
}

const std::vector<std::string>& known_kinds() {
    static const std::vector<std::string> kinds{QUEEN_CANDIDATES, QUEEN_MESH, QUEEN_TIMERS};
    return kinds;
}

Result<std::shared_ptr<const Library>> Library::open(const std::string& path,
                                                     const HostBuild& host) {
    // Not blocking: a path may be a pipe, and the boot must not hang on it.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        const int error = errno;
        return refuse(error == ENOENT ? Errc::not_found : Errc::unsupported, path,
                      std::string("cannot be opened: ") + std::strerror(error));
    }
    const auto stamp = read_stamp(file.get());
    if (!stamp) {
        return refuse(stamp.error().code, path, stamp.error().message);
    }
    if (const auto judged = judge(*stamp, host); !judged) {
        return refuse(judged.error().code, path, judged.error().message);
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) {
        return refuse(Errc::unsupported, path,
                      std::string("cannot be read: ") + std::strerror(errno));
    }
    const FileIdentity identity{status.st_dev, status.st_ino};
    const auto symbol = map_entry(path, file, identity);
    if (!symbol) {
        return fail(symbol.error());
    }
    std::shared_ptr<Library> library(new Library);
    library->path_ = path;
    library->stamp_ = *stamp;
    library->device_ = identity.device;
    library->inode_ = identity.inode;
    if (const auto read = library->read_entry(*symbol); !read) {
        return refuse(read.error().code, path, read.error().message);
    }
    return library;
}

Result<void> Library::read_entry(const void* symbol) {
    std::uint32_t size = 0;
    std::memcpy(&size, symbol, sizeof size); // the first field; the rest may not be there
    if (!has_field(size, &queen_plugin_entry::get_factory)) {
        return fail(Errc::corrupt, "has an entry of " + std::to_string(size) +
                                       " bytes, this broker needs " +
                                       std::to_string(sizeof(queen_plugin_entry)));
    }
    const auto& entry = *static_cast<const queen_plugin_entry*>(symbol);
    if (entry.get_factory == nullptr) {
        return fail(Errc::corrupt, "has an entry without get_factory");
    }
    auto table = read_option_table(entry.options, entry.option_count);
    if (!table) {
        return fail(table.error());
    }
    options_ = std::move(*table);
    get_factory_ = entry.get_factory;
    std::string known;
    for (const std::string& kind : known_kinds()) {
        known += (known.empty() ? "" : ", ") + kind;
        if (factory(kind) == nullptr) {
            continue;
        }
        if (!kind_.empty()) {
            return fail(Errc::unsupported, "offers " + kind_ + " and " + kind +
                                               ", this broker takes one kind from a library");
        }
        kind_ = kind;
    }
    if (kind_.empty()) {
        return fail(Errc::unsupported, "offers no kind that this broker knows (" + known + ")");
    }
    return {};
}

const void* Library::factory(const std::string& kind) const {
    return get_factory_(kind.c_str());
}

bool Library::same_file(const Library& other) const noexcept {
    return device_ == other.device_ && inode_ == other.inode_;
}

namespace {

template <class Table>
struct TableRule {
    const char* kind;
    const char* last;  ///< required function that stands last
    std::size_t bytes; ///< up to the end of it
    std::vector<std::pair<const char*, bool (*)(const Table&)>> required;
};

/// The table, filled up with nullptr when it is of an older minor and cut when of a newer one.
template <class Table>
Result<Table> read_table(const void* factory, const TableRule<Table>& rule) {
    std::uint32_t size = 0;
    std::memcpy(&size, factory, sizeof size);
    if (size < rule.bytes) {
        return fail(Errc::corrupt, std::string("has a ") + rule.kind + " table of " +
                                       std::to_string(size) + " bytes, which ends before " +
                                       rule.last);
    }
    Table table{};
    // Whole pointers only: a size in the middle of a field does not bring half of it.
    const std::size_t known = std::min<std::size_t>(size, sizeof table);
    std::memcpy(&table, factory, known - known % sizeof(void*));
    for (const auto& [name, present] : rule.required) {
        if (!present(table)) {
            return fail(Errc::corrupt,
                        std::string("has a ") + rule.kind + " table without " + name);
        }
    }
    return table;
}

} // namespace

#define QUEEN_REQUIRED(TABLE, NAME)                                                                \
    {                                                                                              \
#NAME, [](const TABLE& table) { return table.NAME != nullptr; }                            \
    }
#define QUEEN_UP_TO(TABLE, NAME) #NAME, offsetof(TABLE, NAME) + sizeof(TABLE::NAME)

Result<queen_candidates> read_candidates_table(const void* factory) {
    static const TableRule<queen_candidates> rule{
        QUEEN_CANDIDATES,
        QUEEN_UP_TO(queen_candidates, settle),
        {QUEEN_REQUIRED(queen_candidates, create), QUEEN_REQUIRED(queen_candidates, destroy),
         QUEEN_REQUIRED(queen_candidates, peek), QUEEN_REQUIRED(queen_candidates, take),
         QUEEN_REQUIRED(queen_candidates, settle)}};
    return read_table(factory, rule);
}

Result<queen_mesh> read_mesh_table(const void* factory) {
    static const TableRule<queen_mesh> rule{
        QUEEN_MESH,
        QUEEN_UP_TO(queen_mesh, publish),
        {QUEEN_REQUIRED(queen_mesh, create), QUEEN_REQUIRED(queen_mesh, destroy),
         QUEEN_REQUIRED(queen_mesh, start), QUEEN_REQUIRED(queen_mesh, stop),
         QUEEN_REQUIRED(queen_mesh, listened), QUEEN_REQUIRED(queen_mesh, publish)}};
    return read_table(factory, rule);
}

Result<queen_timers> read_timers_table(const void* factory) {
    static const TableRule<queen_timers> rule{
        QUEEN_TIMERS,
        QUEEN_UP_TO(queen_timers, tick),
        {QUEEN_REQUIRED(queen_timers, create), QUEEN_REQUIRED(queen_timers, destroy),
         QUEEN_REQUIRED(queen_timers, stop), QUEEN_REQUIRED(queen_timers, scheduled),
         QUEEN_REQUIRED(queen_timers, answered), QUEEN_REQUIRED(queen_timers, tick)}};
    return read_table(factory, rule);
}

#undef QUEEN_REQUIRED
#undef QUEEN_UP_TO

namespace {

/// Whether the table of the library's kind can be used.
Result<void> check_table(const Library& library) {
    const void* factory = library.factory(library.kind());
    const auto verdict = [](const auto& table) -> Result<void> {
        if (!table) {
            return fail(table.error());
        }
        return {};
    };
    if (library.kind() == QUEEN_MESH) {
        return verdict(read_mesh_table(factory));
    }
    if (library.kind() == QUEEN_TIMERS) {
        return verdict(read_timers_table(factory));
    }
    return verdict(read_candidates_table(factory));
}

} // namespace

Inspection inspect(const std::string& path, const HostBuild& host) {
    Inspection found;
    found.path = path;
    {
        const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (file.get() >= 0) {
            if (auto stamp = read_stamp(file.get())) {
                found.stamp = std::move(*stamp);
            }
        }
    }
    const auto library = Library::open(path, host);
    if (!library) {
        found.verdict = library.error().message;
        return found;
    }
    found.kinds = {(*library)->kind()};
    found.options = (*library)->options();
    if (const auto table = check_table(**library); !table) {
        found.verdict = path + " " + table.error().message;
        return found;
    }
    found.fits = true;
    found.verdict = path + " fits this broker";
    return found;
}

} // namespace queen::pluginhost
