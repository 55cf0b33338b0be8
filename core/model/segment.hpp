#pragma once
#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace queen {

inline constexpr int kDefaultZstdLevel = 3;
inline constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 30; ///< decompressed

/// zstd over the frames of one segment; contexts are kept, one set per thread (FMT-1, FMT-2).
/// @thread any
std::string compress_segment(std::string_view frames, int level = kDefaultZstdLevel);
/// The blob must be exactly one zstd frame. What it states about its own size is not believed:
/// memory follows what really comes out, and ends at `limit` bytes.
/// @thread any
/// @errors corrupt
Result<std::string> decompress_segment(std::string_view blob, std::size_t limit = kMaxSegmentBytes);

} // namespace queen
