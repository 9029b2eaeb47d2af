#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "data/image_cache.h"
#include "data/loader.h"

namespace gle::data {

// From an item of a data set to its pixels in a batch; what the threads of a loader share for it.
class ItemLoader {
 public:
  ItemLoader(const Dataset& data, const LoaderOptions& options);

  // What a thread needs for itself.
  struct Tools {
    Bytes file;
    Image image;
    Transformer transformer;
  };
  Tools new_tools() const { return {.file = {}, .image = {}, .transformer = {options_.transform, kernels_}}; }

  // Writes the pixels to their place in the batch. Returns nothing, or what is wrong with the file. Safe to use from
  // several threads.
  std::string load(uint32_t index, uint64_t epoch, uint64_t position, Tools& tools, const Batch& batch, size_t place);

  int64_t bytes_read() const { return bytes_read_; }
  int64_t cache_hits() const { return cache_hits_; }
  size_t cached_bytes() const { return cache_.bytes(); }

 private:
  void put(const Image& image, const TransformPlan& transform, Tools& tools, const Batch& batch, size_t place) const;
  TransformPlan plan_for(const Item& item, int width, int height, Random& random) const;

  const Dataset& data_;
  const LoaderOptions& options_;
  const PixelKernels& kernels_;
  ImageCache cache_;
  std::atomic<int64_t> bytes_read_ = 0;
  std::atomic<int64_t> cache_hits_ = 0;
};

}  // namespace gle::data
