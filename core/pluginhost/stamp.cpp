#include "pluginhost/stamp.hpp"

#include <queen/plugin/entry.hpp>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace queen::pluginhost {
namespace {

// Bounds of what is read into memory. A shared library has a few dozen sections and a name table
// of a few hundred bytes; more is damage.
constexpr std::uint64_t kMostSections = 4096;
constexpr std::uint64_t kMostSegments = 512;
constexpr std::uint64_t kMostNameBytes = 1 << 20;

tl::unexpected<Error> refuse(std::string why) {
    return fail(Errc::unsupported, std::move(why));
}

/// Reads from one open file, never outside of it.
class FileReader {
public:
    FileReader(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}

    std::uint64_t size() const noexcept { return size_; }
    bool inside(std::uint64_t offset, std::uint64_t length) const noexcept {
        return offset <= size_ && length <= size_ - offset;
    }
    bool read(std::uint64_t offset, void* out, std::uint64_t length) const {
        if (!inside(offset, length)) {
            return false;
        }
        auto* to = static_cast<char*>(out);
        while (length > 0) {
            const ssize_t got = ::pread(descriptor_, to, length, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got <= 0) { // an I/O error, or the file has become shorter
                return false;
            }
            to += got;
            offset += static_cast<std::uint64_t>(got);
            length -= static_cast<std::uint64_t>(got);
        }
        return true;
    }
    template <class T>
    bool read_array(std::uint64_t offset, std::uint64_t count, std::vector<T>& out) const {
        if (count > size_ / sizeof(T) || !inside(offset, count * sizeof(T))) {
            return false;
        }
        out.resize(count);
        return read(offset, out.data(), count * sizeof(T));
    }

private:
    int descriptor_;
    std::uint64_t size_;
};

std::string machine_name(std::uint16_t machine) {
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_386:
        return "i386";
    case EM_AARCH64:
        return "AArch64";
    case EM_ARM:
        return "ARM";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "PowerPC 64";
    case EM_S390:
        return "S/390";
    }
    return "machine number " + std::to_string(machine);
}

Result<Elf64_Ehdr> read_header(const FileReader& file) {
    if (file.size() == 0) {
        return refuse("is an empty file, a plugin is a shared library");
    }
    unsigned char ident[EI_NIDENT] = {};
    if (!file.read(0, ident, sizeof ident) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return refuse("is not a shared library (it does not begin as an ELF file)");
    }
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
        return refuse(std::string("is built for a ") +
                      (ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit") +
                      (ident[EI_DATA] == ELFDATA2MSB ? " big-endian" : " little-endian") +
                      " machine, this broker runs on a 64-bit little-endian one");
    }
    Elf64_Ehdr header;
    if (!file.read(0, &header, sizeof header)) {
        return refuse("is cut short inside its ELF header");
    }
    if (header.e_machine != EM_X86_64) {
        return refuse("is built for " + machine_name(header.e_machine) + ", this broker for " +
                      machine_name(EM_X86_64));
    }
    if (header.e_type != ET_DYN) {
        return refuse("is an ELF file, but not a shared library");
    }
    return header;
}

/// Every byte that the loader will map must be in the file: a mapping beyond its end is a SIGBUS.
Result<void> check_segments(const FileReader& file, const Elf64_Ehdr& header) {
    std::vector<Elf64_Phdr> segments;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
        header.e_phnum > kMostSegments ||
        !file.read_array(header.e_phoff, header.e_phnum, segments)) {
        return refuse("is damaged: its program headers are not where its ELF header says");
    }
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_LOAD && !file.inside(segment.p_offset, segment.p_filesz)) {
            return refuse("is cut short: it has " + std::to_string(file.size()) +
                          " bytes, and a segment that ends beyond them");
        }
    }
    return {};
}

/// Where the stamp's section lies; nullopt when there is none of that name.
Result<std::optional<Elf64_Shdr>> find_section(const FileReader& file, const Elf64_Ehdr& header) {
    std::vector<Elf64_Shdr> sections;
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > kMostSections ||
        !file.read_array(header.e_shoff, header.e_shnum, sections)) {
        return refuse("is cut short or damaged: its section table is not inside the file");
    }
    if (header.e_shstrndx >= sections.size()) {
        return refuse("is damaged: it has no table of section names");
    }
    const Elf64_Shdr& name_table = sections[header.e_shstrndx];
    std::vector<char> names;
    if (name_table.sh_size > kMostNameBytes ||
        !file.read_array(name_table.sh_offset, name_table.sh_size, names)) {
        return refuse("is damaged: its table of section names is not inside the file");
    }
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_name >= names.size()) {
            continue;
        }
        const char* name = names.data() + section.sh_name;
        const std::size_t length = ::strnlen(name, names.size() - section.sh_name);
        if (std::string_view(name, length) == QUEEN_STAMP_SECTION) {
            return section;
        }
    }
    return std::nullopt;
}

template <std::size_t N>
Result<std::string> field_text(const char (&field)[N], const char* what) {
    const std::string text(field, ::strnlen(field, N));
    if (text.size() == N) {
        return refuse(std::string("is damaged: ") + what + " in its build stamp has no end");
    }
    for (const char c : text) {
        if (c < 0x20 || c > 0x7e) {
            return refuse(std::string("is damaged: ") + what +
                          " in its build stamp is not printable ASCII");
        }
    }
    return text;
}

std::string version_text(std::uint16_t major, std::uint16_t minor) {
    return std::to_string(major) + "." + std::to_string(minor);
}

std::string sanitizer_text(std::uint32_t build) {
    std::string text;
    if ((build & QUEEN_BUILD_ASAN) != 0) {
        text += "AddressSanitizer";
    }
    if ((build & QUEEN_BUILD_TSAN) != 0) {
        text += text.empty() ? "ThreadSanitizer" : " and ThreadSanitizer";
    }
    if (const std::uint32_t rest = build & ~(QUEEN_BUILD_ASAN | QUEEN_BUILD_TSAN); rest != 0) {
        text += (text.empty() ? "build flags " : " and build flags ") + std::to_string(rest);
    }
    return text.empty() ? "no sanitizer" : text;
}

} // namespace

const HostBuild& this_build() {
    static const HostBuild build{QUEEN_ABI_MAJOR, QUEEN_ABI_MINOR, plugin::build_flags(),
                                 "linux-x86_64", QUEEN_VERSION};
    return build;
}

Result<Stamp> read_stamp(int descriptor) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
        return refuse(std::string("cannot be read: ") + std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse(S_ISDIR(status.st_mode) ? "is a directory, a plugin is a shared library"
                                              : "is not a regular file");
    }
    const FileReader file(descriptor, static_cast<std::uint64_t>(status.st_size));
    const auto header = read_header(file);
    if (!header) {
        return fail(header.error());
    }
    if (const auto checked = check_segments(file, *header); !checked) {
        return fail(checked.error());
    }
    const auto section = find_section(file, *header);
    if (!section) {
        return fail(section.error());
    }
    if (!section->has_value()) {
        return refuse("is no plugin of this broker (it has no " QUEEN_STAMP_SECTION " section)");
    }
    queen_build_stamp raw;
    if ((*section)->sh_type != SHT_PROGBITS || (*section)->sh_size < sizeof raw ||
        !file.read((*section)->sh_offset, &raw, sizeof raw)) {
        return refuse("is damaged: its build stamp is cut short");
    }
    if (raw.magic != QUEEN_ABI_MAGIC) {
        return refuse("is no plugin of this broker (its build stamp has another magic number)");
    }
    if (raw.size < sizeof raw) {
        return refuse("is damaged: its build stamp says it has " + std::to_string(raw.size) +
                      " bytes, this broker reads " + std::to_string(sizeof raw));
    }
    Stamp stamp;
    stamp.abi_major = raw.abi_major;
    stamp.abi_minor = raw.abi_minor;
    stamp.build = raw.build;
    const auto take = [](Result<std::string> text, std::string& to) -> Result<void> {
        if (!text) {
            return fail(text.error());
        }
        to = std::move(*text);
        return {};
    };
    for (const auto& taken :
         {take(field_text(raw.platform, "the platform"), stamp.platform),
          take(field_text(raw.exact_host, "the exact host"), stamp.exact_host),
          take(field_text(raw.plugin_id, "the plugin id"), stamp.plugin_id),
          take(field_text(raw.plugin_version, "the plugin version"), stamp.plugin_version)}) {
        if (!taken) {
            return fail(taken.error());
        }
    }
    if (stamp.plugin_id.empty()) {
        return refuse("is damaged: its build stamp names no plugin");
    }
    return stamp;
}

Result<void> judge(const Stamp& stamp, const HostBuild& host) {
    if (stamp.abi_major != host.abi_major) {
        return refuse("is built for plugin ABI " + version_text(stamp.abi_major, stamp.abi_minor) +
                      ", this broker has " + version_text(host.abi_major, host.abi_minor));
    }
    if (stamp.abi_minor > host.abi_minor) {
        return refuse("needs plugin ABI " + version_text(stamp.abi_major, stamp.abi_minor) +
                      " or newer, this broker has " + version_text(host.abi_major, host.abi_minor));
    }
    if (stamp.platform != host.platform) {
        return refuse("is built for platform '" + stamp.platform + "', this broker for '" +
                      host.platform + "'");
    }
    if (stamp.build != host.build) {
        return refuse("is built with " + sanitizer_text(stamp.build) + ", this broker with " +
                      sanitizer_text(host.build));
    }
    if (!stamp.exact_host.empty() && stamp.exact_host != host.version) {
        return refuse("is built for broker " + stamp.exact_host + " only, this broker is " +
                      host.version);
    }
    return {};
}

} // namespace queen::pluginhost
