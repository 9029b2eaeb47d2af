#pragma once

#include <cstddef>

#include "engine/buffer.h"
#include "engine/memory/caching_allocator.h"

namespace gle {

// Scratch memory for the kernel that runs now. There is one, and one lease of it at a time; what it holds is junk.
class Workspace {
 public:
  explicit Workspace(CachingAllocator& allocator) : allocator_(allocator) {}

  class Lease {
   public:
    explicit Lease(Workspace& owner) : owner_(owner) {}
    ~Lease() { owner_.leased_ = false; }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    float* floats() const { return reinterpret_cast<float*>(owner_.buffer_.data()); }
    std::byte* data() const { return owner_.buffer_.data(); }

   private:
    Workspace& owner_;
  };

  Lease lease(size_t bytes, const char* op);
  // Gives the memory back.
  void clear() { buffer_ = Buffer(); }

  // Fills every lease with NaN first (host memory only), so that tests see a kernel that trusts old contents.
  void set_poison(bool on) { poison_ = on; }
  size_t bytes() const { return buffer_.bytes(); }

 private:
  CachingAllocator& allocator_;
  Buffer buffer_;
  bool leased_ = false;
  bool poison_ = false;
};

}  // namespace gle
