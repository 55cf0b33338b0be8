#pragma once
#include <map>
#include <string>
#include <vector>

namespace queen::project {

/// The text of every file that the checks look at, by path from the root. A plain map, so that a
/// test can seed a fault without a file.
using Tree = std::map<std::string, std::string>;

/// Reads the tree below `root`: sources, SQL, scripts, CMake files and pages, without build/ and
/// .git.
Tree read_tree(const std::string& root);

/// C++ text with comments and what stands in string and character literals turned into blanks;
/// places and line breaks stay.
std::string code_only(const std::string& text);

/// C++ text with comments turned into blanks, literals kept.
std::string without_comments(const std::string& text);

/// Paths of the tree below `folder` ("" is all) that end in one of `endings`.
std::vector<std::string> files(const Tree& tree, const std::string& folder,
                               const std::vector<std::string>& endings);

/// Line number of a place in a text, from 1.
std::size_t line_of(const std::string& text, std::size_t place);

} // namespace queen::project
