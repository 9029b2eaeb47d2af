// The check sums of headers are made right first: else nothing would get past them.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "data/tar.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> tar(data, data + size);
  for (size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar[at + 148] == '?') {
      unsigned sum = 0;
      for (size_t i = 0; i < 512; ++i) {
        sum += i >= 148 && i < 156 ? ' ' : tar[at + i];
      }
      char text[9];
      std::snprintf(text, sizeof text, "%06o", sum & 0777777);
      std::copy_n(text, 8, tar.begin() + static_cast<std::ptrdiff_t>(at) + 148);
    }
  }
  return gle::fuzz::only(gle::ErrorCode::data, [&] {
    const auto read = [&](uint64_t offset, std::span<uint8_t> out) {
      if (offset > tar.size() || out.size() > tar.size() - offset) {
        return false;
      }
      std::copy_n(tar.data() + offset, out.size(), out.data());
      return true;
    };
    for (const gle::data::TarMember& member : gle::data::read_tar_index(read, tar.size(), "fuzz.tar")) {
      gle::invariant(member.offset <= tar.size() && member.size <= tar.size() - member.offset,
                     "a member out of bounds");
      gle::invariant(gle::data::path_problem(member.name).empty(), "an unsafe path");
    }
  });
}
