#include "settings/yaml.hpp"

#include "base/text.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>

namespace queen::settings {

std::string to_string(const Place& place) {
    if (place.line <= 0) {
        return place.file;
    }
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

namespace yaml {
namespace {

/// Thrown by the builder to leave the parser at the first thing that is refused; caught in read().
struct Refused {
    Place place;
    std::string why;
};

/// Builds the tree from the parser's events. A map's children arrive as key, value, key, value.
class Builder final : public YAML::EventHandler {
public:
    Builder(const std::string& file, const std::string& text) : file_(file) {
        std::string_view rest = text;
        if (rest.starts_with("\xef\xbb\xbf")) { // a byte order mark takes no column
            rest.remove_prefix(3);
        }
        for (std::size_t end = rest.find('\n'); end != std::string_view::npos;
             end = rest.find('\n')) {
            lines_.push_back(rest.substr(0, end));
            rest.remove_prefix(end + 1);
        }
        lines_.push_back(rest);
    }

    Node take() { return std::move(root_); }
    /// yaml-cpp counts from 0, and columns in bytes; people and editors count characters from 1.
    Place place(const YAML::Mark& mark) const {
        if (mark.is_null()) {
            return {file_, 0, 0};
        }
        int column = mark.column;
        const auto line = static_cast<std::size_t>(mark.line);
        if (line < lines_.size()) {
            const auto before = lines_[line].substr(0, static_cast<std::size_t>(column));
            column -= static_cast<int>(std::count_if(before.begin(), before.end(),
                                                     [](char c) { return (c & 0xc0) == 0x80; }));
        }
        return {file_, mark.line + 1, column + 1};
    }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) {
            throw Refused{place(mark), "a second document begins here, one is allowed"};
        }
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        refuse_anchor(mark, anchor);
        if (expects_key()) {
            throw Refused{place(mark), "a key is empty, keys are names"};
        }
        add(Node::Kind::null, mark);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        throw Refused{place(mark), "aliases (*name) are not allowed"};
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        refuse_anchor(mark, anchor);
        const bool quoted = tag == "!";
        if (!quoted && tag != "?" && !tag.empty()) {
            throw Refused{place(mark), "tags (!name) are not allowed"};
        }
        if (expects_key()) {
            key_ = value;
            key_place_ = place(mark);
            open_.back().key_read = true;
            return;
        }
        // yaml-cpp reports only an absent value and `~` as null on every path; the written word is
        // YAML's own name for it.
        const bool null = !quoted && (value.empty() || value == "~" || value == "null");
        Node& node = add(null ? Node::Kind::null : Node::Kind::scalar, mark);
        node.text = null ? std::string() : value;
        node.quoted = quoted;
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        begin(Node::Kind::list, mark, tag, anchor);
    }
    void OnSequenceEnd() override { open_.pop_back(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        begin(Node::Kind::map, mark, tag, anchor);
    }
    void OnMapEnd() override { open_.pop_back(); }

private:
    /// An open list or map, as the path of child positions below the root: a pointer would not
    /// survive its parent's vector growing.
    struct Open {
        bool map;
        bool key_read = false;
        std::size_t child = 0; ///< position in the parent
    };

    bool expects_key() const {
        return !open_.empty() && open_.back().map && !open_.back().key_read;
    }

    void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
        if (anchor != YAML::NullAnchor) {
            throw Refused{place(mark), "anchors (&name) are not allowed"};
        }
    }

    Node& current() {
        Node* node = &root_;
        for (std::size_t i = 1; i < open_.size(); ++i) {
            auto& children = open_[i - 1].map ? node->members : node->items;
            node = &children[open_[i].child];
        }
        return *node;
    }

    Node& add(Node::Kind kind, const YAML::Mark& mark) {
        Node* node = &root_;
        if (!open_.empty()) {
            Node& parent = current();
            auto& children = open_.back().map ? parent.members : parent.items;
            node = &children.emplace_back();
            if (open_.back().map) {
                node->key = std::move(key_);
                node->key_place = key_place_;
                open_.back().key_read = false;
            }
        }
        node->kind = kind;
        // The mark of an absent value is that of the next token, maybe lines below.
        node->place =
            kind == Node::Kind::null && !node->key.empty() ? node->key_place : place(mark);
        return *node;
    }

    void begin(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
               YAML::anchor_t anchor) {
        refuse_anchor(mark, anchor);
        if (tag != "?" && !tag.empty()) {
            throw Refused{place(mark), "tags (!name) are not allowed"};
        }
        if (expects_key()) {
            throw Refused{place(mark),
                          "a key is a list or a map, or a bracket is not closed; keys are names"};
        }
        std::size_t child = 0;
        if (!open_.empty()) {
            const Node& parent = current();
            child = (open_.back().map ? parent.members : parent.items).size();
        }
        add(kind, mark);
        open_.push_back({kind == Node::Kind::map, false, child});
    }

    const std::string& file_;
    std::vector<std::string_view> lines_; ///< of the text, which outlives this
    Node root_;
    std::vector<Open> open_;
    std::string key_;
    Place key_place_;
    int documents_ = 0;
};

} // namespace

Node read(const std::string& file, const std::string& text, Problems& problems) {
    // yaml-cpp replaces what is not UTF-8 by U+FFFD without a word.
    if (!valid_utf8(text)) {
        problems.push_back(file + ": is not UTF-8");
        return {};
    }
    Builder builder(file, text);
    try {
        std::istringstream in(text);
        YAML::Parser parser(in);
        while (parser.HandleNextDocument(builder)) {
        }
        return builder.take();
    } catch (const Refused& refused) {
        problems.push_back(to_string(refused.place) + ": " + refused.why);
    } catch (const YAML::Exception& e) {
        problems.push_back(to_string(builder.place(e.mark)) + ": not YAML: " + e.msg);
    } catch (const std::exception& e) {
        problems.push_back(file + ": not YAML: " + e.what());
    }
    return {};
}

std::string_view describe(const Node& node) noexcept {
    switch (node.kind) {
    case Node::Kind::null:
        return "no value";
    case Node::Kind::scalar:
        return "a single value";
    case Node::Kind::list:
        return "a list";
    case Node::Kind::map:
        return "a map";
    }
    return "?";
}

} // namespace yaml
} // namespace queen::settings
