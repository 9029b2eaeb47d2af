#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gle {

// Memory that is taken piece by piece and given back all at once. What it once took from the system it keeps.
class Arena {
 public:
  void* allocate(size_t bytes, size_t alignment) {
    used_ = (used_ + alignment - 1) / alignment * alignment;
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].bytes) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
      const size_t size = bytes > kChunk ? bytes : kChunk;
      chunks_.push_back({std::make_unique<std::byte[]>(size), size});
    }
    std::byte* result = chunks_[chunk_].data.get() + used_;
    used_ += bytes;
    return result;
  }
  void reset() { chunk_ = used_ = 0; }

 private:
  static constexpr size_t kChunk = size_t{64} << 10;
  struct Chunk {
    std::unique_ptr<std::byte[]> data;  // aligned as operator new aligns
    size_t bytes;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;
  size_t used_ = 0;
};

}  // namespace gle
