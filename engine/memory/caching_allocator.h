#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/buffer.h"
#include "engine/device.h"

namespace gle {

// Where segments of memory come from: malloc's kind for the host, cudaMalloc's for a GPU. allocate() returns null when
// there is no more.
struct MemorySource {
  Device device;
  void* (*allocate)(void* state, size_t bytes) = nullptr;
  void (*release)(void* state, void* data, size_t bytes) = nullptr;
  void* state = nullptr;
};

MemorySource host_memory();

struct MemoryStatistics {
  size_t live = 0;             // in buffers that somebody holds
  size_t cached = 0;           // reserved from the source but not live
  size_t peak_live = 0;        // since reset_peaks()
  size_t peak_reserved = 0;    // live + cached, since reset_peaks()
  int64_t segments_taken = 0;  // calls of the source so far: constant in the steady state
};

// Hands out pieces of large segments, best fit first, and joins them again when they come back. What it holds never
// exceeds `limit` bytes: unused segments are given back first, then allocate() throws ErrorCode::memory. Safe to use
// from several threads.
class CachingAllocator {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kNoLimit = SIZE_MAX;

  explicit CachingAllocator(MemorySource source, size_t limit = kNoLimit);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // `purpose` names the op or the thing in the error message.
  Buffer allocate(size_t bytes, const char* purpose);

  void set_limit(size_t bytes);
  size_t limit() const;
  MemoryStatistics statistics() const;
  void reset_peaks();
  // Gives every segment without live buffers back to the source.
  void trim();

 private:
  friend class Buffer;
  using Block = Buffer::Block;

  struct Segment {
    void* data;
    size_t bytes;
    Block* first;
  };

  Block* best_fit(size_t bytes) const;
  Block* take_segment(size_t bytes);
  void release_unused_segments();
  void provide_spare();
  Block* new_block();
  void retire(Block* block);
  void split(Block* block, size_t bytes);
  void join_with_next(Block* block);
  void push_free(Block* block);
  void remove_free(Block* block);
  void give_back(Block* block) noexcept;

  MemorySource source_;
  size_t limit_;
  mutable std::mutex mutex_;
  std::vector<Segment> segments_;
  std::vector<std::unique_ptr<Block>> all_blocks_;
  Block* spare_ = nullptr;  // block records without memory
  Block* free_ = nullptr;   // free blocks, smallest first
  size_t reserved_ = 0;
  MemoryStatistics statistics_;
};

}  // namespace gle
