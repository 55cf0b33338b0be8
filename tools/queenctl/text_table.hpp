#pragma once
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace queen::ctl {

/// Text that is safe to show on a terminal: control characters as \xNN, broken UTF-8 as U+FFFD.
/// What others wrote into a message must not move the cursor or ring the bell.
std::string printable(std::string_view text);

/// Columns a terminal needs for UTF-8 text: wide East Asian characters and emoji take two, marks
/// that combine with what stands before take none.
std::size_t display_width(std::string_view utf8);

/// The text, cut to `columns` with an ellipsis at the end when it is wider.
std::string cut_to(std::string_view utf8, std::size_t columns);

/// Rows of text under titles, aligned by what the terminal shows.
class TextTable {
public:
    struct Column {
        std::string title;
        bool number = false; ///< aligned to the right
    };
    explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> cells); ///< made printable; missing cells are empty
    bool empty() const noexcept { return rows_.empty(); }
    void print(std::ostream& out) const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace queen::ctl
