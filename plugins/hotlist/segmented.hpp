// plugins/hotlist/segmented.hpp - flat arrays that grow without moving what they hold.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace queen::hotlist {

/// Memory that is all zero, and from the kernel untouched when it is large: growing costs no copy
/// and no filling, so no call pays for a million elements at once.
template <class T>
class ZeroedBlock {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    ZeroedBlock() = default;
    explicit ZeroedBlock(std::size_t size)
        : memory_(static_cast<T*>(std::calloc(size, sizeof(T)))), size_(size) {
        if (memory_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    T& operator[](std::size_t at) noexcept { return memory_.get()[at]; }
    const T& operator[](std::size_t at) const noexcept { return memory_.get()[at]; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

private:
    struct Free {
        void operator()(T* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<T, Free> memory_;
    std::size_t size_ = 0;
};

/// An array by index in blocks of 8, 8, 16, 32, ...: a reference stays valid, all-zero elements
/// come into being by the block.
///
/// Invariant: T is meaningful when all its bytes are zero.
template <class T>
class Segmented {
public:
    T& operator[](std::size_t at) noexcept {
        return blocks_[block_of(at)][at - first_of(block_of(at))];
    }
    const T& operator[](std::size_t at) const noexcept {
        return blocks_[block_of(at)][at - first_of(block_of(at))];
    }
    /// Elements there are.
    std::size_t capacity() const noexcept { return first_of(blocks_.size()); }
    /// Makes sure that there is an element `at`. @errors throws std::bad_alloc and changes nothing
    void reach(std::size_t at) {
        while (at >= capacity()) {
            const std::size_t block = blocks_.size();
            blocks_.emplace_back(first_of(block + 1) - first_of(block));
        }
    }
    std::size_t bytes() const noexcept {
        return capacity() * sizeof(T) + blocks_.capacity() * sizeof(ZeroedBlock<T>);
    }

private:
    static constexpr std::size_t kFirst = 8;
    static std::size_t block_of(std::size_t at) noexcept {
        return static_cast<std::size_t>(std::bit_width(at / kFirst));
    }
    static std::size_t first_of(std::size_t block) noexcept {
        return block == 0 ? 0 : kFirst << (block - 1);
    }
    std::vector<ZeroedBlock<T>> blocks_;
};

} // namespace queen::hotlist
