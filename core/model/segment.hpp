#pragma once
#include "base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace queen {

inline constexpr int kDefaultZstdLevel = 3;
inline constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 30; ///< decompressed

/// zstd over the frames of one segment; contexts are kept, one set per thread (FMT-1, FMT-2).
/// @thread any
std::string compress_segment(std::string_view frames, int level = kDefaultZstdLevel);
/// @errors corrupt
Result<std::string> decompress_segment(std::string_view blob);

} // namespace queen
