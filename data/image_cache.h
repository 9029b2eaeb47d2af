#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/image.h"

namespace gle::data {

// Decoded pictures by item, up to a number of bytes. First come, first kept: an epoch visits all pictures equally
// often, so throwing one out for another gains nothing. Safe to use from several threads.
class ImageCache {
 public:
  explicit ImageCache(size_t limit) : limit_(limit) {}

  // Null if it is not there.
  std::shared_ptr<const Image> find(uint32_t item) const;
  // Whether a picture of this size would still be taken.
  bool has_room(int width, int height) const;
  // Keeps the picture if it still fits; it must be stored whole.
  void keep(uint32_t item, const Image& image);
  size_t bytes() const;
  size_t images() const;

 private:
  const size_t limit_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::unordered_map<uint32_t, std::shared_ptr<const Image>> images_;
};

}  // namespace gle::data
