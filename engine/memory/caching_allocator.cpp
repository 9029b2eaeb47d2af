#include "engine/memory/caching_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/error.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace gle {

namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kSmallestSegment = size_t{32} << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

MemorySource host_memory() {
  MemorySource source;
  // The rest of a limit need not be whole pages, and is not made more than it is.
  source.allocate = [](void*, size_t bytes) -> void* {
    if (bytes % kPage != 0) {
      return std::aligned_alloc(CachingAllocator::kAlignment, round_up(bytes, CachingAllocator::kAlignment));
    }
    void* data = std::aligned_alloc(kPage, bytes);
#ifdef __linux__
    if (data) {
      (void)madvise(data, bytes, MADV_HUGEPAGE);
    }
#endif
    return data;
  };
  source.release = [](void*, void* data, size_t) { std::free(data); };
  return source;
}

CachingAllocator::CachingAllocator(MemorySource source, size_t limit) : source_(source), limit_(limit) {}

CachingAllocator::~CachingAllocator() {
  invariant(statistics_.live == 0, "a buffer outlives its allocator");
  for (const Segment& segment : segments_) {
    source_.release(source_.state, segment.data, segment.bytes);
  }
}

Buffer CachingAllocator::allocate(size_t bytes, const char* purpose) {
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), kAlignment);
  const std::lock_guard lock(mutex_);
  Block* block = rounded < bytes ? nullptr : best_fit(rounded);
  if (!block && rounded >= bytes) {
    block = take_segment(rounded);
  }
  if (!block) {
    const size_t free_bytes =
        limit_ == kNoLimit ? reserved_ - statistics_.live : limit_ - std::min(limit_, statistics_.live);
    fail(
        ErrorCode::memory, purpose, ": out of memory on ", source_.device, ": ", bytes, " bytes asked, ", free_bytes,
        " free of ", limit_ == kNoLimit ? reserved_ : limit_, ", largest free piece ",
        [&] {
          size_t largest = 0;
          for (const Block* b = free_; b; b = b->next_free) {
            largest = b->bytes;
          }
          return largest;
        }(),
        ". Use a smaller batch or input, or raise the limit.");
  }
  provide_spare();
  remove_free(block);
  split(block, rounded);
  statistics_.live += block->bytes;
  statistics_.peak_live = std::max(statistics_.peak_live, statistics_.live);
  return Buffer(block);
}

CachingAllocator::Block* CachingAllocator::best_fit(size_t bytes) const {
  Block* block = free_;
  while (block && block->bytes < bytes) {
    block = block->next_free;
  }
  return block;
}

CachingAllocator::Block* CachingAllocator::take_segment(size_t bytes) {
  for (const bool last_try : {false, true}) {
    if (last_try) {
      release_unused_segments();
    }
    const size_t room = limit_ == kNoLimit ? SIZE_MAX : limit_ - std::min(limit_, reserved_);
    // All that is left, if that is less, and not a segment for each of many small tensors.
    const size_t segment_bytes = std::min(round_up(std::max(bytes, kSmallestSegment), kPage), room);
    if (segment_bytes < bytes) {
      continue;
    }
    provide_spare();
    segments_.reserve(segments_.size() + 1);
    void* data = source_.allocate(source_.state, segment_bytes);
    if (!data) {
      continue;
    }
    Block* block = new_block();
    block->data = static_cast<std::byte*>(data);
    block->bytes = segment_bytes;
    segments_.push_back({data, segment_bytes, block});
    reserved_ += segment_bytes;
    ++statistics_.segments_taken;
    statistics_.peak_reserved = std::max(statistics_.peak_reserved, reserved_);
    push_free(block);
    return block;
  }
  return nullptr;
}

void CachingAllocator::release_unused_segments() {
  std::erase_if(segments_, [&](const Segment& segment) {
    if (!segment.first->free || segment.first->after) {
      return false;
    }
    remove_free(segment.first);
    retire(segment.first);
    source_.release(source_.state, segment.data, segment.bytes);
    reserved_ -= segment.bytes;
    return true;
  });
}

// May throw, so that new_block() does not.
void CachingAllocator::provide_spare() {
  if (!spare_) {
    all_blocks_.push_back(std::make_unique<Block>());
    spare_ = all_blocks_.back().get();
  }
}

CachingAllocator::Block* CachingAllocator::new_block() {
  invariant(spare_ != nullptr, "a block is asked for after its record has been provided");
  Block* block = spare_;
  spare_ = block->next_free;
  block->owner = this;
  block->device = source_.device;
  block->before = block->after = block->next_free = nullptr;
  block->free = false;
  return block;
}

void CachingAllocator::retire(Block* block) {
  block->next_free = spare_;
  spare_ = block;
}

void CachingAllocator::split(Block* block, size_t bytes) {
  if (block->bytes == bytes) {
    return;
  }
  Block* rest = new_block();
  rest->data = block->data + bytes;
  rest->bytes = block->bytes - bytes;
  rest->before = block;
  rest->after = block->after;
  if (rest->after) {
    rest->after->before = rest;
  }
  block->after = rest;
  block->bytes = bytes;
  push_free(rest);
}

void CachingAllocator::join_with_next(Block* block) {
  Block* next = block->after;
  block->bytes += next->bytes;
  block->after = next->after;
  if (block->after) {
    block->after->before = block;
  }
  retire(next);
}

void CachingAllocator::push_free(Block* block) {
  block->free = true;
  Block** link = &free_;
  while (*link && (*link)->bytes < block->bytes) {
    link = &(*link)->next_free;
  }
  block->next_free = *link;
  *link = block;
}

void CachingAllocator::remove_free(Block* block) {
  Block** link = &free_;
  while (*link != block) {
    link = &(*link)->next_free;
  }
  *link = block->next_free;
  block->next_free = nullptr;
  block->free = false;
}

void CachingAllocator::give_back(Block* block) noexcept {
  const std::lock_guard lock(mutex_);
  statistics_.live -= block->bytes;
  if (block->after && block->after->free) {
    remove_free(block->after);
    join_with_next(block);
  }
  if (block->before && block->before->free) {
    block = block->before;
    remove_free(block);
    join_with_next(block);
  }
  push_free(block);
}

void CachingAllocator::set_limit(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (reserved_ > bytes) {
    release_unused_segments();
  }
  if (reserved_ > bytes) {
    fail(ErrorCode::memory, "memory limit: ", bytes, " bytes are below the ", reserved_, " in use on ", source_.device);
  }
  limit_ = bytes;
}

size_t CachingAllocator::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

MemoryStatistics CachingAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  MemoryStatistics result = statistics_;
  result.cached = reserved_ - statistics_.live;
  return result;
}

void CachingAllocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_live = statistics_.live;
  statistics_.peak_reserved = reserved_;
}

void CachingAllocator::trim() {
  const std::lock_guard lock(mutex_);
  release_unused_segments();
}

void Buffer::release() noexcept {
  if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    block_->owner->give_back(block_);
  }
}

}  // namespace gle
