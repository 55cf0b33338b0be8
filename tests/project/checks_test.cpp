// Each check sees a fault seeded into a small tree, and lets the sound version pass.
#include "project/checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace queen::project {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ProjectChecks, AnIncludeUpwardsIsFound) {
    EXPECT_THAT(include_arrows({{"core/base/a.cpp", "#include \"base/b.hpp\"\n#include <vector>\n"
                                                    "#include <queen/plugin/types.hpp>\n"}}),
                IsEmpty());
    EXPECT_THAT(include_arrows({{"core/base/a.cpp", "\n#include \"model/names.hpp\"\n"}}),
                ElementsAre(HasSubstr("core/base/a.cpp:2: core/base may not include model/")));
    EXPECT_THAT(include_arrows({{"core/broker/a.hpp", "#include <store/store.hpp>\n"}}),
                ElementsAre(HasSubstr("core/broker may not include store/store.hpp")));
    EXPECT_THAT(include_arrows({{"core/http/a.hpp", "#include \"broker/push.hpp\"\n"},
                                {"core/app/main.cpp", "#include \"store/store.hpp\"\n"}}),
                IsEmpty());
}

TEST(ProjectChecks, ACommentedIncludeIsNone) {
    EXPECT_THAT(include_arrows({{"core/base/a.cpp", "// #include \"model/names.hpp\"\n"}}),
                IsEmpty());
}

TEST(ProjectChecks, AFolderWithoutAPlaceInTheOrderIsFound) {
    EXPECT_THAT(include_arrows({{"core/novel/a.cpp", ""}}), ElementsAre(HasSubstr("core/novel")));
}

TEST(ProjectChecks, APublicHeaderThatNeedsTheCoreIsFound) {
    EXPECT_THAT(include_arrows({{"core/include/queen/plugin/a.h", "#include <stdint.h>\n"}}),
                IsEmpty());
    EXPECT_THAT(
        include_arrows({{"core/include/queen/plugin/a.hpp", "#include \"base/result.hpp\"\n"}}),
        ElementsAre(HasSubstr("may not include base/result.hpp")));
}

TEST(ProjectChecks, NotEvenTheProgramIncludesAPlugin) {
    EXPECT_THAT(include_arrows({{"core/app/main.cpp", "#include \"plugins/ring/ring.hpp\"\n"}}),
                ElementsAre(HasSubstr("may not include plugins/ring/ring.hpp")));
}

TEST(ProjectChecks, APluginThatReachesIntoTheCoreIsFound) {
    EXPECT_THAT(plugins_stand_alone({{"plugins/ring/ring.cpp",
                                      "#include \"ring.hpp\"\n#include <queen/plugin/types.hpp>\n"
                                      "#include <map>\n"},
                                     {"plugins/ring/ring.hpp", "#include \"ring/slot.hpp\"\n"},
                                     {"plugins/ring/slot.hpp", ""}}),
                IsEmpty());
    EXPECT_THAT(plugins_stand_alone({{"plugins/ring/a.cpp", "#include \"shared/a.hpp\"\n"},
                                     {"plugins/shared/a.hpp", "#include <map>\n"}}),
                IsEmpty());
    EXPECT_THAT(plugins_stand_alone({{"plugins/shared/a.hpp", "#include \"base/text.hpp\"\n"}}),
                ElementsAre(HasSubstr("may not include base/text.hpp")));
    EXPECT_THAT(plugins_stand_alone({{"plugins/ring/a.cpp", "#include \"base/text.hpp\"\n"}}),
                ElementsAre(HasSubstr("may not include base/text.hpp")));
    EXPECT_THAT(plugins_stand_alone({{"plugins/ring/a.cpp", "#include <base/text.hpp>\n"}}),
                ElementsAre(HasSubstr("may not include base/text.hpp")));
    EXPECT_THAT(plugins_stand_alone({{"plugins/ring/a.cpp", "#include \"../scan/scan.hpp\"\n"},
                                     {"plugins/scan/scan.hpp", ""}}),
                ElementsAre(HasSubstr("may not include ../scan/scan.hpp")));
}

TEST(ProjectChecks, ACoreThatNamesAPluginIsFound) {
    const Tree sound{{"plugins/ring/ring.cpp", ""},
                     {"core/http/a.cpp", "// the ring\nauto x = 1;"}};
    EXPECT_THAT(core_names_no_plugin(sound), IsEmpty());
    EXPECT_THAT(core_names_no_plugin({{"plugins/ring/ring.cpp", ""},
                                      {"core/http/a.cpp", "auto x = load(\"ring.so\");"}}),
                ElementsAre(HasSubstr("core/http/a.cpp:1: core may not name a plugin")));
    EXPECT_THAT(core_names_no_plugin(
                    {{"plugins/ring/ring.cpp", ""}, {"core/http/a.cpp", "if (id == \"ring\")"}}),
                ElementsAre(HasSubstr("may not name")));
}

TEST(ProjectChecks, AFolderWithoutAReadmeIsFound) {
    EXPECT_THAT(readmes({{"core/base/a.cpp", ""}, {"core/base/README.md", "# base\n"}}), IsEmpty());
    EXPECT_THAT(readmes({{"core/base/a.cpp", ""}, {"plugins/ring/a.cpp", ""}}),
                ElementsAre(HasSubstr("core/base/README.md"), HasSubstr("plugins/ring/README.md")));
    EXPECT_THAT(readmes({{"core/base/a.cpp", ""}, {"core/base/README.md", " \n"}}),
                ElementsAre(HasSubstr("is missing")));
    EXPECT_THAT(
        readmes({{"core/base/a.cpp", ""}, {"core/base/README.md", std::string(90, '\n') + "text"}}),
        ElementsAre(HasSubstr("longer than a page")));
}

TEST(ProjectChecks, AFileThatGrewTooLongIsFoundUnlessItsReadmeExplains) {
    const std::string longest(600, '\n');
    EXPECT_THAT(file_sizes({{"core/base/a.cpp", longest}}), IsEmpty());
    EXPECT_THAT(file_sizes({{"core/base/a.cpp", longest + "\n"}, {"sql/1.sql", longest + "\n"}}),
                ElementsAre(HasSubstr("core/base/a.cpp:601"), HasSubstr("sql/1.sql:601")));
    EXPECT_THAT(file_sizes({{"core/base/a.cpp", longest + "\n"},
                            {"core/base/README.md", "`a.cpp` is over 600 lines: one table."}}),
                IsEmpty());
}

TEST(ProjectChecks, AClockOrASleepIsFoundButNotInACommentOrAString) {
    EXPECT_THAT(
        clocks({{"core/base/clock.cpp", "return std::chrono::steady_clock::now();"},
                {"core/http/a.cpp", "// sleep_for(1s)\nauto t = \"steady_clock::now()\";"},
                {"core/http/b.cpp", "wait_for(lock, 5s); poll(&fd, 1, 20); asleep(3); x.sleeps();"},
                {"core/http/c.cpp", "const auto n = 1'000; /* usleep(3) */ auto c = '\"';"}}),
        IsEmpty());
    for (const char* fault :
         {"auto t = std::chrono::steady_clock::now();", "system_clock :: now()",
          "std::this_thread::sleep_for(1s);", "usleep(3);", "nanosleep(&t, nullptr);", "sleep(1);",
          "clock_gettime(CLOCK_MONOTONIC, &t);", "poll(nullptr, 0, 10);", "std::time(nullptr)"}) {
        EXPECT_THAT(clocks({{"core/http/a.cpp", std::string("\n") + fault}}),
                    ElementsAre(HasSubstr("core/http/a.cpp:2: ")))
            << fault;
        EXPECT_EQ(clocks({{"tests/core/a_test.cpp", fault}}).size(), 1U) << fault;
    }
    EXPECT_THAT(clocks({{"tests/http/a_test.cpp", "steady_clock::now(); sleep(1);"}}),
                ElementsAre(HasSubstr("sleeps")));
    EXPECT_THAT(clocks({{"sql/001.sql", "PERFORM pg_sleep(1);"}}),
                ElementsAre(HasSubstr("sleeps inside the database")));
}

TEST(ProjectChecks, ASilentCatchIsFoundEvenWithACommentInIt) {
    EXPECT_THAT(
        silent_catches({{"core/a/a.cpp", "catch (...) { log(); } catch (const X& x) { y; }"}}),
        IsEmpty());
    EXPECT_THAT(silent_catches({{"core/a/a.cpp", "try { x(); } catch (...) {}"}}),
                ElementsAre(HasSubstr("core/a/a.cpp:1: ")));
    EXPECT_THAT(silent_catches({{"core/a/a.cpp", "catch (...) {\n  // never mind\n}"}}),
                ElementsAre(HasSubstr("caught and forgotten")));
    EXPECT_THAT(silent_catches({{"core/a/a.cpp", "catch (const E&) {\n}"}}),
                ElementsAre(HasSubstr("caught and forgotten")));
    EXPECT_THAT(silent_catches({{"core/a/a.cpp", "catch (const E&) { // the peer may close\n}"}}),
                IsEmpty());
}

TEST(ProjectChecks, ARuleThatStandsNowhereIsFound) {
    const std::string page = "| CL-12 | skipped rows | \n| F-36 | x |\n| K25 | y |\n";
    EXPECT_THAT(rule_citations({{"core/a/a.cpp", "/// @source XY-9\n"}}), IsEmpty())
        << "there is no page yet";
    EXPECT_THAT(rule_citations({{"docs/rules.md", page},
                                {"core/a/a.cpp", "/// @source CL-12\n// K25, UTF-8, SHA-256\n"}}),
                IsEmpty());
    EXPECT_THAT(rule_citations({{"docs/rules.md", page}, {"core/a/a.cpp", "\n// keeps CL-13\n"}}),
                ElementsAre("core/a/a.cpp:2: CL-13 does not stand in docs/rules.md"));
    EXPECT_THAT(rule_citations({{"docs/rules.md", page}, {"core/a/a.cpp", "/// @source XY-9\n"}}),
                ElementsAre(HasSubstr("XY-9")));
    EXPECT_THAT(rule_citations({{"docs/rules.md", page}, {"tests/a/b_test.cpp", "TEST(F, K26)\n"}}),
                ElementsAre(HasSubstr("K26")));
}

TEST(ProjectChecks, AProofThatIsNoTestIsFound) {
    const std::string page = "| a | `Push.Stores` |\n| b | `Push.*`, `Push.Sto*` |\n";
    const Tree tree{{"docs/semantics.md", page},
                    {"tests/a_test.cpp", "TEST_F(Push,\n  Stores) {}"}};
    EXPECT_THAT(proofs(tree), IsEmpty());
    EXPECT_THAT(proofs({{"docs/semantics.md", page}, {"tests/a_test.cpp", "TEST(Pop, Stores) {}"}}),
                SizeIs(3));
    EXPECT_THAT(proofs({{"docs/semantics.md", "`Push.Stores`\n"},
                        {"tests/a_test.cpp", "TEST(Push, StoresMore) {}"}}),
                ElementsAre("docs/semantics.md:1: `Push.Stores` is no test of this tree"));
}

TEST(ProjectChecks, LiteralsAndCommentsAreToldFromCode) {
    EXPECT_EQ(code_only("a \"x//y\" b // c\nd"), "a \"    \" b     \nd");
    EXPECT_EQ(code_only("R\"(a \" b)\" c"), "R\"       \" c");
    EXPECT_EQ(code_only("'\"' + 1'000 /* x\ny */ z"), "' ' + 1'000     \n     z");
    EXPECT_EQ(without_comments("\"// kept\" // gone"), "\"// kept\"        ");
}

} // namespace
} // namespace queen::project
