// mesh/wire.hpp - frames: u32 length in network order, u8 type, JSON. The length counts the type.
#pragma once
#include <queen/plugin/mesh.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace queen::mesh {

/// @source ME-5
enum class FrameType : std::uint8_t {
    message_available = 1,
    message_available_batch = 2,
    heartbeat = 3,
    hello = 4,
    dirty_batch = 5,
    config_set = 10,
    config_deleted = 11,
    maintenance = 40,
    pop_maintenance = 41,
    // Ours: readers of the old protocol skip them.
    group_moved = 64,
    challenge = 65,
    answer = 66,
    switched = 67,
    missed = 68 ///< some that should have come before it were dropped
};

inline constexpr std::size_t kMaxFrame = std::size_t{16} << 20; ///< length field (ME-4)
inline constexpr std::size_t kMaxUnproven = 4096; ///< of who has not shown yet that it is a peer
inline constexpr std::size_t kFrameTarget = std::size_t{4} << 20; ///< we begin another one beyond

std::string make_frame(FrameType type, std::string_view json);
std::string heartbeat_frame(std::string_view server_id);

/// A frame that several peers' queues share.
using SharedFrame = std::shared_ptr<const std::string>;
struct OutFrame {
    SharedFrame bytes;
    std::size_t hints = 0;
};

/// The frames that go out at once for these hints: availability as batches, the rest one by one.
/// Hints that no frame can carry are left out.
std::vector<OutFrame> frames_of(std::span<const plugin::Hint> hints);

/// Collects items into one frame, up to a count and about kFrameTarget bytes.
class BatchFrame {
public:
    BatchFrame(FrameType type, std::size_t most);
    void add(const plugin::Hint& hint);
    bool full() const noexcept { return items_ >= most_ || bytes_.size() >= kFrameTarget; }
    bool empty() const noexcept { return items_ == 0; }
    OutFrame finish(); ///< and begins another one

private:
    void begin();
    FrameType type_;
    std::size_t most_;
    std::size_t items_ = 0;
    std::string bytes_;
};

/// Cuts a stream of bytes into frames. Memory follows what was received, never what a length
/// announces.
class FrameReader {
public:
    enum class State { more, frame, empty_frame, too_long };
    struct Frame {
        std::uint8_t type = 0;
        std::string_view json; ///< until the next call of room() or next()
    };

    explicit FrameReader(std::size_t limit) : limit_(limit) {}
    void set_limit(std::size_t limit) noexcept { limit_ = limit; }

    /// Where to put received bytes, at least one; then take() what came.
    std::span<char> room();
    void take(std::size_t size) noexcept { end_ += size; }
    /// The next whole frame. Anything but `more` and `frame` is the end of the stream.
    State next(Frame& out);
    std::size_t memory() const noexcept { return buffer_.size(); }

private:
    std::vector<char> buffer_;
    std::size_t begin_ = 0, end_ = 0; ///< received and not yet cut
    std::size_t limit_;
};

} // namespace queen::mesh
