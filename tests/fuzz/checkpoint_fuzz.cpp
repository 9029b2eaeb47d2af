// The checksums of the input are made right first, unless its last byte is odd: else nothing would get past them.
#include "models/files/checkpoint_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "models/files/crc32c.h"
#include "models/weights.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kHeader = 32;

template <class Number>
Number number_at(const std::vector<uint8_t>& file, size_t at) {
  Number number{};
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

void put_sum(std::vector<uint8_t>& file, size_t from, size_t bytes, size_t at) {
  const uint32_t sum = gle::crc32c(gle::fuzz::bytes_of(file.data() + from, bytes));
  std::memcpy(file.data() + at, &sum, sizeof sum);
}

void mend(std::vector<uint8_t>& file) {
  if (file.size() < kHeader) {
    return;
  }
  const size_t directory = std::min<uint64_t>(number_at<uint64_t>(file, 16), file.size() - kHeader);
  size_t content = kHeader + directory;
  for (size_t at = kHeader; at + 4 <= kHeader + directory;) {
    const size_t name = number_at<uint32_t>(file, at);
    if (name > directory || at + 4 + name + 12 > kHeader + directory) {
      break;
    }
    at += 4 + name;
    const size_t bytes = std::min<uint64_t>(number_at<uint64_t>(file, at), file.size() - content);
    put_sum(file, content, bytes, at + 8);
    content += bytes;
    at += 12;
  }
  put_sum(file, kHeader, directory, 24);
  put_sum(file, 0, 28, 28);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  if (size > 0 && data[size - 1] % 2 == 0) {
    mend(file);
  }
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    const auto bytes = gle::fuzz::bytes_of(file.data(), size);
    for (const gle::CheckpointSection& section : gle::parse_checkpoint(bytes, "x")) {
      gle::invariant(section.bytes.empty() || (section.bytes.data() >= bytes.data() &&
                                               section.bytes.data() + section.bytes.size() <= bytes.data() + size),
                     "a section out of bounds");
    }
    (void)gle::parse_weights(bytes, "x");
  });
}
