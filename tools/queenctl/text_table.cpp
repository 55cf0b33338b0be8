#include "queenctl/text_table.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <ostream>

namespace queen::ctl {
namespace {

struct Range {
    char32_t first, last;
};

// Ranges of Unicode 15's East Asian Width W and F, joined where nothing narrow of note lies
// between.
constexpr std::array kWide{
    Range{0x1100, 0x115f},   Range{0x231a, 0x231b},   Range{0x2e80, 0x303e},
    Range{0x3041, 0x33ff},   Range{0x3400, 0x4dbf},   Range{0x4e00, 0xa4cf},
    Range{0xa960, 0xa97f},   Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},
    Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},
    Range{0x1f300, 0x1f64f}, Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff},
    Range{0x1fa70, 0x1faff}, Range{0x20000, 0x3fffd}};
constexpr std::array kNoWidth{Range{0x0300, 0x036f}, Range{0x0483, 0x0489},  Range{0x0591, 0x05bd},
                              Range{0x064b, 0x065f}, Range{0x1ab0, 0x1aff},  Range{0x1dc0, 0x1dff},
                              Range{0x200b, 0x200f}, Range{0x202a, 0x202e},  Range{0x2060, 0x2064},
                              Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f},  Range{0xfe20, 0xfe2f},
                              Range{0xfeff, 0xfeff}, Range{0xe0100, 0xe01ef}};

bool in(char32_t c, const auto& ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return c >= range.first && c <= range.last; });
}

std::size_t width_of(char32_t c) {
    return in(c, kNoWidth) ? 0 : in(c, kWide) ? 2 : 1;
}

std::size_t length_at(std::string_view text, std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return std::min(length, text.size() - at);
}

/// One character of valid UTF-8.
char32_t decode(std::string_view bytes) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    char32_t c = bytes.size() == 1 ? first : first & (0xffu >> (bytes.size() + 1));
    for (const char byte : bytes.substr(1)) {
        c = c << 6 | (static_cast<unsigned char>(byte) & 0x3f);
    }
    return c;
}

/// C1 controls (U+0080 to U+009F) and changes of writing direction act on terminals too.
bool acts_on_terminal(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

} // namespace

std::string printable(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t length = length_at(text, i);
        std::string_view bytes = text.substr(i, length);
        if (!valid_utf8(bytes)) {
            out += "\xef\xbf\xbd";
            length = 1;
        } else if (acts_on_terminal(decode(bytes))) {
            for (const char c : bytes) {
                const auto byte = static_cast<unsigned char>(c);
                out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
            }
        } else {
            out += bytes;
        }
        i += length;
    }
    return out;
}

std::size_t display_width(std::string_view utf8) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < utf8.size();) {
        const std::size_t length = length_at(utf8, i);
        width += width_of(decode(utf8.substr(i, length)));
        i += length;
    }
    return width;
}

std::string cut_to(std::string_view utf8, std::size_t columns) {
    if (columns == 0 || display_width(utf8) <= columns) {
        return std::string(utf8);
    }
    std::size_t width = 0, end = 0;
    while (end < utf8.size()) {
        const std::size_t length = length_at(utf8, end);
        const std::size_t more = width_of(decode(utf8.substr(end, length)));
        if (width + more > columns - 1) {
            break;
        }
        width += more;
        end += length;
    }
    return std::string(utf8.substr(0, end)) + "\xe2\x80\xa6";
}

void TextTable::add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    for (std::string& cell : cells) {
        cell = printable(cell);
    }
    rows_.push_back(std::move(cells));
}

void TextTable::print(std::ostream& out) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        std::size_t width = display_width(columns_[i].title);
        for (const auto& row : rows_) {
            width = std::max(width, display_width(row[i]));
        }
        widths.push_back(width);
    }
    const auto line = [&](const auto& cell) {
        std::string text;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string& content = cell(i);
            const std::string blanks(widths[i] - display_width(content), ' ');
            text += i == 0 ? "" : "  ";
            text += columns_[i].number ? blanks + content : content + blanks;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out << text << '\n';
    };
    line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
    for (const auto& row : rows_) {
        line([&](std::size_t i) -> const std::string& { return row[i]; });
    }
}

} // namespace queen::ctl
