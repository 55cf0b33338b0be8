#pragma once
#include "settings/settings.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace queen::settings::yaml {

/// One value of a YAML document with the place it was written at. Maps keep their members in order
/// and repeated keys too: the parser underneath does not report them, so the reader of the tree has
/// to.
struct Node {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text;        ///< of a scalar
    bool quoted = false;     ///< a scalar in quotes
    Place place;             ///< where the value begins
    std::vector<Node> items; ///< of a list

    /// Place of the key and the key's text; empty for items of a list.
    std::string key;
    Place key_place;
    std::vector<Node> members; ///< of a map, each with its key

    bool is(Kind other) const noexcept { return kind == other; }
};

/// Reads one document; empty text is a null node. Anchors, aliases, merge keys, tags, keys that are
/// not scalars and a second document are refused: a settings file has no use for them, and an alias
/// can make a small file huge.
/// @param file stands in the places
/// @param problems what is wrong, each as `file:line:column: text`; the node is usable when none
/// was added
/// @thread any
Node read(const std::string& file, const std::string& text, Problems& problems);

/// "a scalar", "a list" ... for messages.
std::string_view describe(const Node& node) noexcept;

} // namespace queen::settings::yaml

namespace queen::settings {
/// `file:line:column`, or the file's name alone for places that are not in a file.
std::string to_string(const Place& place);
} // namespace queen::settings
