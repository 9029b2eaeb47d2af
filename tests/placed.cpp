#include "tests/placed.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace gle::test {

namespace {

constexpr uint32_t kSentinel = 0x7fc5a5a5;
constexpr uint32_t kByteSentinel = 0xa5;

uint32_t sentinel(DType type) { return type == DType::u8 ? kByteSentinel : kSentinel; }

uint32_t word_of(double value, DType type) {
  if (type == DType::f32) {
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
  return static_cast<uint32_t>(static_cast<int32_t>(value));
}

double value_of(uint32_t word, DType type) {
  if (type == DType::f32) {
    return std::bit_cast<float>(word);
  }
  return static_cast<int32_t>(word);
}

}  // namespace

Placed::Placed(Backend& backend, const Shape& shape, Layout layout, DType type)
    : backend_(&backend), type_(type), first_channel_(layout == Layout::slice ? kBefore : 0) {
  const int64_t channels = shape.channels();
  const Shape wide = layout == Layout::slice ? shape.with_channels(kBefore + channels + kAfter) : shape;
  flat_ = backend.new_tensor("test", {1, wide.elements() + 2 * kGuard}, type);
  wide_ = flat_.slice(kGuard, kGuard + wide.elements()).reshaped(wide);
  tensor_ = layout == Layout::slice ? wide_.slice(kBefore, kBefore + channels) : wide_;
  upload(std::vector<uint32_t>(static_cast<size_t>(flat_.elements()), sentinel(type)));
}

// Calls visit(place in the flat memory) for the elements in their order.
template <class Visit>
void Placed::for_each_element(Visit visit) const {
  for (int64_t row = 0; row < tensor_.rows(); ++row) {
    for (int64_t c = 0; c < tensor_.channels(); ++c) {
      visit(static_cast<size_t>(kGuard + row * wide_.channels() + first_channel_ + c));
    }
  }
}

std::vector<uint32_t> Placed::download() const {
  std::vector<uint32_t> words(static_cast<size_t>(flat_.elements()));
  if (type_ == DType::u8) {
    std::vector<uint8_t> bytes(words.size());
    backend_->download(flat_, bytes.data());
    std::copy(bytes.begin(), bytes.end(), words.begin());
  } else {
    backend_->download(flat_, words.data());
  }
  return words;
}

void Placed::upload(const std::vector<uint32_t>& words) {
  if (type_ == DType::u8) {
    std::vector<uint8_t> bytes(words.size());
    std::transform(words.begin(), words.end(), bytes.begin(), [](uint32_t w) { return static_cast<uint8_t>(w); });
    backend_->upload(bytes.data(), flat_);
  } else {
    backend_->upload(words.data(), flat_);
  }
}

void Placed::write(const std::vector<double>& values) {
  std::vector<uint32_t> words = download();
  size_t i = 0;
  for_each_element([&](size_t place) { words[place] = word_of(values[i++], type_); });
  upload(words);
}

void Placed::fill_with_nan() {
  const double value = type_ == DType::f32 ? std::numeric_limits<double>::quiet_NaN() : 111;
  write(std::vector<double>(static_cast<size_t>(tensor_.elements()), value));
}

std::vector<uint32_t> Placed::bits() const {
  const std::vector<uint32_t> words = download();
  std::vector<uint32_t> result;
  for_each_element([&](size_t place) { result.push_back(words[place]); });
  return result;
}

std::vector<double> Placed::read() const {
  std::vector<double> result;
  for (const uint32_t word : bits()) {
    result.push_back(value_of(word, type_));
  }
  return result;
}

bool Placed::guards_intact() const {
  std::vector<uint32_t> words = download();
  for_each_element([&](size_t place) { words[place] = sentinel(type_); });
  return std::all_of(words.begin(), words.end(), [&](uint32_t word) { return word == sentinel(type_); });
}

}  // namespace gle::test
