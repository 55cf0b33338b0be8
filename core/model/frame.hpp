#pragma once
#include "base/result.hpp"

#include <queen/plugin/types.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace queen {

/// One message inside a segment. Views into whoever holds the bytes. Layout: FMT-5 (docs/rules.md).
struct Frame {
    Uuid message_id;
    Uuid trace_id; ///< unknown: none
    std::string_view transaction_id;
    std::string_view producer_sub; ///< empty: none
    std::string_view payload;      ///< JSON text, never re-serialised (FMT-10); empty reads as null
    bool encrypted = false;
};

/// @errors invalid_argument when the transaction id or subject is over 65,535 bytes (FMT-7)
Result<void> append_frame(std::string& out, const Frame& frame);

/// All frames of a decompressed segment; the whole segment is refused when one frame runs past the
/// end or bytes are left over (FMT-6).
/// @errors corrupt
Result<std::vector<Frame>> parse_frames(std::string_view bytes);

} // namespace queen
