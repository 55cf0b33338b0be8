// What does not fit is refused in one sentence that names both sides, before a line of it runs
// (K38).
#include "abi/host_fixture.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace queen::pluginhost {
namespace {

const std::string kSanitizers = [] {
    const std::uint32_t build = this_build().build;
    return build == QUEEN_BUILD_ASAN   ? "AddressSanitizer"
           : build == QUEEN_BUILD_TSAN ? "ThreadSanitizer"
                                       : "no sanitizer";
}();
const std::string kFlippedSanitizers = [] {
    const std::uint32_t build = this_build().build;
    return build == QUEEN_BUILD_ASAN   ? "no sanitizer"
           : build == QUEEN_BUILD_TSAN ? "AddressSanitizer and ThreadSanitizer"
                                       : "AddressSanitizer";
}();

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A file that is gone with the test.
class TempFile {
public:
    explicit TempFile(const std::string& bytes) {
        char path[] = "/tmp/queen-plugin-XXXXXX";
        const int descriptor = ::mkstemp(path);
        EXPECT_GE(descriptor, 0);
        EXPECT_EQ(::write(descriptor, bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
        ::close(descriptor);
        path_ = path;
    }
    ~TempFile() { ::unlink(path_.c_str()); }
    TempFile(const TempFile&) = delete;
    TempFile& operator=(const TempFile&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

class Refusal : public HostTest {
protected:
    void SetUp() override { ::unsetenv("QUEEN_FIXTURE_RAN"); }
    static bool ran() { return ::getenv("QUEEN_FIXTURE_RAN") != nullptr; }

    /// The one problem of loading the file, without its place and path.
    std::string refusal(const std::string& path) {
        const auto problems = host().load({named("acme", path)});
        EXPECT_EQ(problems.size(), 1u);
        if (problems.empty()) {
            return "";
        }
        const std::string prefix = "queen.yaml:3:5: plugin 'acme': " + path + " ";
        EXPECT_EQ(problems[0].substr(0, prefix.size()), prefix);
        EXPECT_EQ(host().source("acme"), nullptr);
        return problems[0].substr(std::min(prefix.size(), problems[0].size()));
    }
    std::string refusal_of(const std::string& fixture) { return refusal(fixture_path(fixture)); }
    /// Of a copy of good.so with the bytes at `offset` replaced.
    std::string refusal_of_patched(std::size_t offset, const std::string& bytes) {
        std::string copy = slurp(fixture_path("good"));
        copy.replace(offset, bytes.size(), bytes);
        return refusal(TempFile(copy).path());
    }
};

TEST_F(Refusal, AGoodPluginLoadsAndItsConstructorRuns) {
    EXPECT_NE(load("good"), nullptr);
    EXPECT_TRUE(ran()) << "the witness that the tests below look for";
}

TEST_F(Refusal, AnotherMagicNumber) {
    EXPECT_EQ(refusal_of("bad_magic"),
              "is no plugin of this broker (its build stamp has another magic number)");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, AStampShorterThanItsLayout) {
    EXPECT_EQ(refusal_of("bad_stamp_size"),
              "is damaged: its build stamp says it has 16 bytes, this broker reads 144");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, ANewerMajor) {
    EXPECT_EQ(refusal_of("bad_major"), "is built for plugin ABI 2.0, this broker has 1.1");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, AnOlderMajor) {
    EXPECT_EQ(refusal_of("bad_older_major"), "is built for plugin ABI 0.0, this broker has 1.1");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, ANewerMinor) {
    EXPECT_EQ(refusal_of("bad_minor"), "needs plugin ABI 1.10 or newer, this broker has 1.1");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, AnotherPlatform) {
    EXPECT_EQ(refusal_of("bad_platform"),
              "is built for platform 'linux-riscv64', this broker for 'linux-x86_64'");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, OtherSanitizers) {
    EXPECT_EQ(refusal_of("bad_sanitizer"),
              "is built with " + kFlippedSanitizers + ", this broker with " + kSanitizers);
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, AnotherExactHost) {
    EXPECT_EQ(refusal_of("bad_exact_host"),
              "is built for broker 0.0.7 only, this broker is " + this_build().version);
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, TheExactHostItWasBuiltForLoadsIt) {
    config_.build.version = "0.0.7";
    EXPECT_NE(load("bad_exact_host"), nullptr);
}

TEST_F(Refusal, NoPluginId) {
    EXPECT_EQ(refusal_of("bad_no_id"), "is damaged: its build stamp names no plugin");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, ALibraryWithoutAStamp) {
    const std::string library = std::filesystem::canonical("/lib/x86_64-linux-gnu/libz.so.1");
    EXPECT_EQ(refusal(library), "is no plugin of this broker (it has no .queen.stamp section)");
}

TEST_F(Refusal, AnEmptyFile) {
    EXPECT_EQ(refusal(TempFile("").path()), "is an empty file, a plugin is a shared library");
}

TEST_F(Refusal, ATextFile) {
    EXPECT_EQ(refusal(TempFile("#!/bin/sh\necho I am not a plugin\n").path()),
              "is not a shared library (it does not begin as an ELF file)");
}

TEST_F(Refusal, ADirectory) {
    EXPECT_EQ(refusal("/tmp"), "is a directory, a plugin is a shared library");
}

TEST_F(Refusal, APipe) {
    const TempFile file("");
    ::unlink(file.path().c_str());
    ASSERT_EQ(::mkfifo(file.path().c_str(), 0600), 0);
    EXPECT_EQ(refusal(file.path()), "is not a regular file");
}

TEST_F(Refusal, AMissingFile) {
    EXPECT_EQ(refusal("/nowhere/acme.so"), "cannot be opened: No such file or directory");
}

TEST_F(Refusal, ANameThatIsInNoPluginFolder) {
    config_.folders = {"/nowhere", "/tmp"};
    const auto problems = host().load({named("acme", "acme.so")});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:3:5: plugin 'acme': acme.so is in none of the plugin "
                           "folders (/nowhere, /tmp)");
}

TEST_F(Refusal, AnotherArchitecture) {
    const Elf64_Half machine = EM_AARCH64;
    EXPECT_EQ(refusal_of_patched(offsetof(Elf64_Ehdr, e_machine),
                                 {reinterpret_cast<const char*>(&machine), sizeof machine}),
              "is built for AArch64, this broker for x86-64");
    EXPECT_FALSE(ran());
}

TEST_F(Refusal, A32BitMachine) {
    EXPECT_EQ(refusal_of_patched(EI_CLASS, std::string(1, ELFCLASS32)),
              "is built for a 32-bit little-endian machine, this broker runs on a 64-bit "
              "little-endian one");
}

TEST_F(Refusal, ABigEndianMachine) {
    EXPECT_EQ(refusal_of_patched(EI_DATA, std::string(1, ELFDATA2MSB)),
              "is built for a 64-bit big-endian machine, this broker runs on a 64-bit "
              "little-endian one");
}

/// Mapping it would be a SIGBUS at the first touch of the missing part.
TEST_F(Refusal, ASegmentThatEndsBeyondTheFile) {
    const std::string whole = slurp(fixture_path("good"));
    Elf64_Ehdr header;
    std::memcpy(&header, whole.data(), sizeof header);
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
        const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
        Elf64_Phdr segment;
        std::memcpy(&segment, whole.data() + at, sizeof segment);
        if (segment.p_type == PT_LOAD) {
            segment.p_filesz = segment.p_memsz = whole.size() + 4096;
            EXPECT_EQ(
                refusal_of_patched(at, {reinterpret_cast<const char*>(&segment), sizeof segment}),
                "is cut short: it has " + std::to_string(whole.size()) +
                    " bytes, and a segment that ends beyond them");
            EXPECT_FALSE(ran());
            return;
        }
    }
    FAIL() << "no loadable segment";
}

TEST_F(Refusal, AProgramInsteadOfALibrary) {
    const Elf64_Half type = ET_EXEC;
    EXPECT_EQ(refusal_of_patched(offsetof(Elf64_Ehdr, e_type),
                                 {reinterpret_cast<const char*>(&type), sizeof type}),
              "is an ELF file, but not a shared library");
}

TEST_F(Refusal, AMissingEntrySymbol) {
    EXPECT_EQ(refusal_of("bad_symbol"),
              "has a build stamp, but does not export the symbol queen_plugin");
}

TEST_F(Refusal, AnEntryThatEndsEarly) {
    EXPECT_EQ(refusal_of("bad_entry_size"), "has an entry of 8 bytes, this broker needs 24");
}

TEST_F(Refusal, AnEntryWithoutAFactory) {
    EXPECT_EQ(refusal_of("bad_factory"), "has an entry without get_factory");
}

TEST_F(Refusal, AKindNobodyKnows) {
    EXPECT_EQ(refusal_of("bad_kind"), "offers no kind that this broker knows (queen.candidates/1, "
                                      "queen.mesh/1, queen.timers/1)");
}

TEST_F(Refusal, ATableThatEndsEarly) {
    EXPECT_EQ(refusal_of("bad_table_size"),
              "has a queen.candidates/1 table of 40 bytes, which ends before settle");
}

TEST_F(Refusal, ATableWithoutTake) {
    EXPECT_EQ(refusal_of("bad_null_take"), "has a queen.candidates/1 table without take");
}

TEST_F(Refusal, ATableWithoutSettle) {
    EXPECT_EQ(refusal_of("bad_null_settle"), "has a queen.candidates/1 table without settle");
}

TEST_F(Refusal, AnOptionTableThatRefusesItsOwnDefault) {
    EXPECT_EQ(refusal_of("bad_options"),
              "has a broken option table: row 1 (depth) refuses its own default: \"99\" is too "
              "large, allowed is 1 to 10 levels");
}

TEST_F(Refusal, AMissingDependency) {
    const std::string path = fixture_path("bad_dependency");
    const auto problems = host().load({named("acme", path)});
    ASSERT_EQ(problems.size(), 1u);
    const std::string& text = problems[0];
    EXPECT_EQ(text, "queen.yaml:3:5: plugin 'acme': " + path +
                        " cannot be loaded: libqueen_absent.so: cannot open shared object file: No "
                        "such file or directory");
}

TEST_F(Refusal, ACreationThatFailsNamesTheOption) {
    settings::PluginSettings plugin = named("acme", fixture_path("bad_create"));
    plugin.options.push_back({"depth", {"9", true, {"queen.yaml", 8, 14}, {"queen.yaml", 8, 7}}});
    const auto problems = host().load({plugin});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:8:14: plugin 'acme': depth: must be even");
}

TEST_F(Refusal, ACreationThatFailsWithoutAReason) {
    const auto problems = host().load({named("acme", fixture_path("bad_create_silent"))});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:3:5: plugin 'acme': made no instance and gave no reason");
}

TEST_F(Refusal, AConstructorThatThrows) {
    const auto problems = host().load({named("acme", fixture_path("bad_create_throws"))});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:3:5: plugin 'acme': the moon is in the wrong house");
}

TEST_F(Refusal, TwoFilesWithOnePluginId) {
    ASSERT_NE(load("good"), nullptr);
    EXPECT_EQ(refusal_of("bad_duplicate_id"),
              "has the plugin id 'test.fixture' (version 2.0.0), which " + fixture_path("good") +
                  " (version 1.0.0) has already");
    EXPECT_NE(host().source("good"), nullptr);
}

TEST_F(Refusal, TwoPluginsWithOneName) {
    ASSERT_TRUE(host().load({named("acme", fixture_path("good"), 3)}).empty());
    const auto problems = host().load({named("acme", fixture_path("plain_c"), 9)});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0], "queen.yaml:9:5: plugin 'acme': the name is taken, by queen.yaml:3:5");
}

TEST_F(Refusal, OneFileUnderTwoNamesIsTwoInstances) {
    ASSERT_TRUE(
        host()
            .load({named("one", fixture_path("plain_c")), named("two", fixture_path("plain_c"))})
            .empty());
    const plugin::Mark mark{"p1", {}, 1};
    host().source("one")->mark(kOrders, "", plugin::Origin::push, {&mark, 1});
    EXPECT_EQ(figures(*host().source("one"))["partitions"], 1.0);
    EXPECT_EQ(figures(*host().source("two"))["partitions"], 0.0);
}

TEST_F(Refusal, TheRestIsLoadedAndTheStateIsVisible) {
    const auto problems =
        host().load({named("newer", fixture_path("bad_major"), 3),
                     named("good", fixture_path("good"), 4), named("gone", "/nowhere/gone.so", 5)});
    EXPECT_EQ(problems.size(), 2u);
    const auto status = host().status();
    ASSERT_EQ(status.size(), 3u);
    EXPECT_FALSE(status[0].loaded);
    EXPECT_EQ(status[0].path, fixture_path("bad_major"));
    EXPECT_NE(status[0].verdict.find("is built for plugin ABI 2.0, this broker has 1.1"),
              std::string::npos);
    EXPECT_TRUE(status[1].loaded);
    EXPECT_EQ(status[1].id, "test.fixture");
    EXPECT_EQ(status[1].version, "1.0.0");
    EXPECT_EQ(status[1].verdict, "loaded");
    EXPECT_EQ(status[1].kinds, std::vector<std::string>{"queen.candidates/1"});
    EXPECT_FALSE(status[2].loaded);
    ASSERT_EQ(host().sources().size(), 1u);
    EXPECT_EQ(host().sources()[0].name, "good");
}

TEST_F(Refusal, ASecondTryReplacesTheVerdictOfTheFirst) {
    EXPECT_EQ(host().load({named("acme", fixture_path("bad_major"))}).size(), 1u);
    EXPECT_EQ(host().load({named("acme", fixture_path("bad_minor"))}).size(), 1u);
    ASSERT_EQ(host().status().size(), 1u);
    EXPECT_EQ(host().load({named("acme", fixture_path("good"))}), settings::Problems{});
    ASSERT_EQ(host().status().size(), 1u);
    EXPECT_TRUE(host().status()[0].loaded);
}

TEST_F(Refusal, TablesOfOlderAndNewerMinorsLoad) {
    const auto shorter = load("good_short_table");
    ASSERT_NE(shorter, nullptr);
    const plugin::Mark mark{"p1", {}, 1};
    shorter->mark(kOrders, "", plugin::Origin::push, {&mark, 1}); // its table has no mark()
    EXPECT_EQ(shorter->peek(kScope).state, plugin::ReadyState::ready);
    EXPECT_EQ(faults("good_short_table").total(), 0u);
    EXPECT_NE(load("good_larger_table"), nullptr);
}

TEST_F(Refusal, ARelativePathIsFoundInTheFirstFolderThatHasIt) {
    config_.folders = {"/nowhere", QUEEN_TEST_FIXTURE_DIR, QUEEN_PLUGIN_DIR};
    EXPECT_TRUE(host().load({named("one", "good.so"), named("two", "sqlscan.so")}).empty());
    EXPECT_EQ(host().status()[0].path, fixture_path("good"));
    EXPECT_EQ(host().status()[1].path, std::string(QUEEN_PLUGIN_DIR) + "/sqlscan.so");
}

TEST_F(Refusal, TwoFilesAreNotTakenForOneAnother) {
    // The loader knows each by the number of its descriptor, which must not be used twice.
    ASSERT_NE(load("good"), nullptr);
    ASSERT_NE(load("plain_c"), nullptr);
    EXPECT_EQ(figures(*host().source("good")).count("settled"), 1u);
    EXPECT_EQ(figures(*host().source("plain_c")).count("partitions"), 1u);
}

// ---- damage ------------------------------------------------------------------------------------

TEST_F(Refusal, CutShortAtAnyLength) {
    const std::string whole = slurp(fixture_path("plain_c"));
    ASSERT_GT(whole.size(), 4096u);
    std::vector<std::size_t> lengths;
    for (std::size_t n = 1; n < 600; n += 7) {
        lengths.push_back(n);
    }
    for (std::size_t part = 1; part < 64; ++part) {
        lengths.push_back(whole.size() * part / 64);
    }
    for (std::size_t n = 1; n < 80; n += 3) {
        lengths.push_back(whole.size() - n);
    }
    for (const std::size_t length : lengths) {
        const TempFile file(whole.substr(0, length));
        const auto library = Library::open(file.path(), this_build());
        ASSERT_FALSE(library.has_value()) << length << " of " << whole.size() << " bytes";
        EXPECT_GT(library.error().message.size(), file.path().size());
    }
}

/// Damages headers and stamp, where the reader looks; bytes of code are the loader's.
TEST_F(Refusal, FourHundredDamagedCopiesAreReadWithoutHarm) {
    const std::string whole = slurp(fixture_path("plain_c"));
    Elf64_Ehdr header;
    std::memcpy(&header, whole.data(), sizeof header);
    std::mt19937 random(20260101);
    const auto below = [&](std::size_t n) { return random() % n; };
    int refused = 0;
    for (int copy = 0; copy < 400; ++copy) {
        std::string bytes = whole;
        const std::size_t at[] = {0, header.e_phoff, header.e_shoff};
        const std::size_t length[] = {sizeof header, header.e_phnum * sizeof(Elf64_Phdr),
                                      header.e_shnum * sizeof(Elf64_Shdr)};
        const std::size_t where = below(3);
        for (std::size_t hit = 0; hit <= below(8); ++hit) {
            const std::size_t place = at[where] + below(length[where]);
            static constexpr unsigned char kNasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
            bytes[place] = below(2) == 0 ? static_cast<char>(kNasty[below(sizeof kNasty)])
                                         : static_cast<char>(random());
        }
        if (below(4) == 0) {
            bytes.resize(bytes.size() - below(bytes.size() / 2));
        }
        const TempFile file(bytes);
        const int descriptor = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
        ASSERT_GE(descriptor, 0);
        const auto stamp = read_stamp(descriptor);
        ::close(descriptor);
        if (stamp) {
            EXPECT_EQ(stamp->plugin_id, "test.plain_c"); // the damage was not in its way
        } else {
            ++refused;
            EXPECT_FALSE(stamp.error().message.empty());
        }
    }
    EXPECT_GT(refused, 100) << "the damage did nothing: this test looks at nothing";
    EXPECT_LT(refused, 400);
}

TEST_F(Refusal, AStampWhoseTextHasNoEndOrIsNotText) {
    const std::string whole = slurp(fixture_path("good"));
    const std::size_t platform = whole.find(std::string("linux-x86_64\0\0\0\0", 16));
    ASSERT_NE(platform, std::string::npos);
    EXPECT_EQ(refusal_of_patched(platform, std::string(32, 'x')),
              "is damaged: the platform in its build stamp has no end");
    EXPECT_EQ(refusal_of_patched(platform, "linux\x1b[31m"),
              "is damaged: the platform in its build stamp is not printable ASCII");
}

// ---- inspection and the built files ------------------------------------------------------------

TEST_F(Refusal, InspectTellsWhatAFileIs) {
    const Inspection good = inspect(fixture_path("good_options"));
    EXPECT_TRUE(good.fits) << good.verdict;
    ASSERT_TRUE(good.stamp.has_value());
    EXPECT_EQ(good.stamp->plugin_id, "test.options");
    EXPECT_EQ(good.stamp->plugin_version, "1.2.3");
    EXPECT_EQ(good.stamp->build, this_build().build);
    EXPECT_EQ(good.kinds, std::vector<std::string>{"queen.candidates/1"});
    ASSERT_EQ(good.options.size(), 5u);
    EXPECT_EQ(good.options[0].name, "shards");
    EXPECT_EQ(allowed(good.options[0]), "1 to 64 shards");
    EXPECT_EQ(good.options[0].env, "TEST_SHARDS");
    EXPECT_EQ(allowed(good.options[1]), "1s to 1h");

    const Inspection newer = inspect(fixture_path("bad_major"));
    EXPECT_FALSE(newer.fits);
    ASSERT_TRUE(newer.stamp.has_value()) << "its stamp is readable, though it does not fit";
    EXPECT_EQ(newer.stamp->abi_major, QUEEN_ABI_MAJOR + 1);
    EXPECT_EQ(newer.verdict,
              fixture_path("bad_major") + " is built for plugin ABI 2.0, this broker has 1.1");

    const Inspection none = inspect("/nowhere/acme.so");
    EXPECT_FALSE(none.fits);
    EXPECT_FALSE(none.stamp.has_value());
    EXPECT_EQ(none.verdict, "/nowhere/acme.so cannot be opened: No such file or directory");

    EXPECT_FALSE(inspect(fixture_path("bad_null_take")).fits);
}

std::string exported_symbols(const std::string& path) {
    std::string out;
    std::FILE* pipe = ::popen(("nm -D --defined-only --format=posix " + path).c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    char line[512];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
        out += std::string(line, std::strcspn(line, " ")) + " ";
    }
    EXPECT_EQ(::pclose(pipe), 0);
    return out;
}

TEST_F(Refusal, APluginExportsTheEntryAndTheStampAlone) {
    EXPECT_EQ(exported_symbols(std::string(QUEEN_PLUGIN_DIR) + "/sqlscan.so"),
              "queen_plugin queen_plugin_stamp ");
    EXPECT_EQ(exported_symbols(fixture_path("plain_c")), "queen_plugin queen_plugin_stamp ");
    EXPECT_EQ(exported_symbols(fixture_path("bad_throws")), "queen_plugin queen_plugin_stamp ");
}

TEST_F(Refusal, StripKeepsTheStamp) {
    const TempFile copy(slurp(std::string(QUEEN_PLUGIN_DIR) + "/sqlscan.so"));
    ASSERT_EQ(std::system(("strip " + copy.path()).c_str()), 0);
    const auto library = Library::open(copy.path(), this_build());
    ASSERT_TRUE(library.has_value()) << library.error().message;
    EXPECT_EQ((*library)->stamp().plugin_id, "queen.sqlscan");
}

} // namespace
} // namespace queen::pluginhost
