#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "engine/device.h"

namespace gle {

class CachingAllocator;

// A counted reference to a piece of one device's memory. The last reference hands the piece back to its allocator,
// which must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) : block_(other.block_) { retain(); }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  explicit operator bool() const { return block_ != nullptr; }
  std::byte* data() const { return block_ ? block_->data : nullptr; }
  size_t bytes() const { return block_ ? block_->bytes : 0; }
  Device device() const { return block_ ? block_->device : Device{}; }

 private:
  friend class CachingAllocator;

  struct Block {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Device device;
    std::atomic<int> references = 0;
    CachingAllocator* owner = nullptr;
    // Neighbours in memory within one segment, and the chain of free (or spare) blocks.
    Block* before = nullptr;
    Block* after = nullptr;
    Block* next_free = nullptr;
    bool free = false;
  };

  explicit Buffer(Block* block) : block_(block) { retain(); }
  void retain() const {
    if (block_) {
      block_->references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void release() noexcept;

  Block* block_ = nullptr;
};

}  // namespace gle
