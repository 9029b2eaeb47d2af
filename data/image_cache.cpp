#include "data/image_cache.h"

#include <cstring>

namespace gle::data {

namespace {

size_t cost_of(int width, int height) {
  return static_cast<size_t>(width) * static_cast<size_t>(height) * 3 + Image::kSlack + sizeof(Image);
}

}  // namespace

std::shared_ptr<const Image> ImageCache::find(uint32_t item) const {
  if (limit_ == 0) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(item);
  return found == images_.end() ? nullptr : found->second;
}

bool ImageCache::has_room(int width, int height) const {
  if (limit_ == 0) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return bytes_ + cost_of(width, height) <= limit_;
}

void ImageCache::keep(uint32_t item, const Image& image) {
  const size_t cost = cost_of(image.width, image.height);
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + cost > limit_ || images_.contains(item)) {
      return;
    }
    bytes_ += cost;
    images_.emplace(item, nullptr);
  }
  auto copy = std::make_shared<Image>();
  copy->reshape(image.width, image.height, image.stored);
  std::memcpy(copy->pixels.data(), image.pixels.data(), image.bytes());
  const std::lock_guard lock(mutex_);
  images_[item] = std::move(copy);
}

size_t ImageCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ImageCache::images() const {
  const std::lock_guard lock(mutex_);
  return images_.size();
}

}  // namespace gle::data
