// Rules of CONTRIBUTING.md that a program can hold up. Each gives its findings, ready to print as
// `path:line: what is wrong`, and none when the tree keeps the rule.
#pragma once
#include "project/tree.hpp"

#include <string>
#include <vector>

namespace queen::project {

using Findings = std::vector<std::string>;

/// Folders of core include only those below them; nothing includes a plugin; public headers include
/// public headers alone.
Findings include_arrows(const Tree& tree);
/// A plugin's own sources include <queen/plugin/...>, their own files and libraries, nothing else.
Findings plugins_stand_alone(const Tree& tree);
/// No source of core but the settings' defaults names a plugin's file, or the name of one when that
/// means nothing else.
Findings core_names_no_plugin(const Tree& tree);
/// Each folder of core and each plugin that has sources has a README.md of at most a page.
Findings readmes(const Tree& tree);
/// No source, script or SQL file is longer than 600 lines, unless the README of its folder names it
/// and says why.
Findings file_sizes(const Tree& tree);
/// The machine's clocks are read in core/base/clock.cpp alone (and by suites against real
/// processes, for deadlines); nothing sleeps, tests included.
Findings clocks(const Tree& tree);
/// Nothing is caught and forgotten: `catch (...)` does something, a known type says at least why
/// not.
Findings silent_catches(const Tree& tree);
/// Each rule that code or tests cite stands in docs/rules.md. None while that page does not exist.
Findings rule_citations(const Tree& tree);
/// Each test that docs/semantics.md names, as `Suite.Name` or `Suite.*` or `Suite.Begin*`, exists.
Findings proofs(const Tree& tree);

} // namespace queen::project
