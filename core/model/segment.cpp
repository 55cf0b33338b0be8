#include "model/segment.hpp"

#include "base/assert.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace queen {
namespace {

/// Up to here the size a blob states is believed and memory is taken for it at once; beyond, memory
/// grows with what really comes out, so that a damaged header costs 4 MiB at most.
constexpr std::size_t kTrustedBytes = std::size_t{4} << 20;

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A context is 0.1 to 1 MiB and costs more to make than a small segment to compress.
ZSTD_CCtx& compressor() {
    thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
    QUEEN_ASSERT(context != nullptr, "zstd got no memory for a compression context");
    return *context;
}

ZSTD_DCtx& decompressor() {
    thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    QUEEN_ASSERT(context != nullptr, "zstd got no memory for a decompression context");
    return *context;
}

tl::unexpected<Error> corrupt(std::string_view why) {
    return fail(Errc::corrupt, "segment is damaged: " + std::string(why));
}

tl::unexpected<Error> over(std::size_t limit) {
    return corrupt("it is over " + std::to_string(limit) + " bytes when decompressed");
}

Result<std::string> decompress_whole(std::string_view blob, std::size_t size) {
    std::string frames(size, '\0');
    const std::size_t written = ZSTD_decompressDCtx(&decompressor(), frames.data(), frames.size(),
                                                    blob.data(), blob.size());
    if (ZSTD_isError(written)) {
        return corrupt(ZSTD_getErrorName(written));
    }
    if (written != size) {
        return corrupt("it is shorter than it states");
    }
    return frames;
}

Result<std::string> decompress_growing(std::string_view blob, std::size_t limit) {
    ZSTD_DCtx& context = decompressor();
    ZSTD_DCtx_reset(&context, ZSTD_reset_session_only);
    ZSTD_inBuffer in{blob.data(), blob.size(), 0};
    std::string frames(std::min(kTrustedBytes, limit), '\0');
    std::size_t size = 0;
    while (true) {
        ZSTD_outBuffer out{frames.data(), frames.size(), size};
        const std::size_t left = ZSTD_decompressStream(&context, &out, &in);
        size = out.pos;
        if (ZSTD_isError(left)) {
            return corrupt(ZSTD_getErrorName(left));
        }
        if (left == 0) {
            frames.resize(size);
            return frames;
        }
        if (size <
            frames.size()) { // the caller saw a whole frame, so only a broken block gets here
            return corrupt("it ends early");
        }
        if (size == limit) {
            return over(limit);
        }
        frames.resize(std::min(2 * frames.size(), limit));
    }
}

} // namespace

std::string compress_segment(std::string_view frames, int level) {
    std::string blob(ZSTD_compressBound(frames.size()), '\0');
    const std::size_t written = ZSTD_compressCCtx(&compressor(), blob.data(), blob.size(),
                                                  frames.data(), frames.size(), level);
    QUEEN_ASSERT(!ZSTD_isError(written), "zstd compresses anything into its own bound");
    blob.resize(written);
    return blob;
}

Result<std::string> decompress_segment(std::string_view blob, std::size_t limit) {
    constexpr std::string_view kMagic = "\x28\xB5\x2F\xFD";
    if (!blob.starts_with(kMagic)) { // also keeps out zstd's skippable frames, which read as empty
        return corrupt("it is not a zstd frame");
    }
    const std::size_t frame = ZSTD_findFrameCompressedSize(blob.data(), blob.size());
    if (ZSTD_isError(frame)) {
        return corrupt(ZSTD_getErrorName(frame));
    }
    if (frame != blob.size()) {
        return corrupt("bytes follow its zstd frame");
    }
    const unsigned long long stated = ZSTD_getFrameContentSize(blob.data(), blob.size());
    if (stated == ZSTD_CONTENTSIZE_ERROR) {
        return corrupt("its zstd header does not parse");
    }
    if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated > limit) {
        return over(limit);
    }
    return stated <= kTrustedBytes ? decompress_whole(blob, static_cast<std::size_t>(stated))
                                   : decompress_growing(blob, limit);
}

} // namespace queen
