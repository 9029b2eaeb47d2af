#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/decode.h"

namespace gle::data {

struct CheckOptions {
  DecodeOptions decode = {};
  int threads = 0;  // 0: as everywhere
  // Called now and then with the number of files done; from one thread at a time.
  std::function<void(size_t done, size_t all)> progress = {};
};

struct BrokenFile {
  uint32_t item = 0;
  std::string reason;
};

// Items whose files are the same, byte for byte.
struct Duplicates {
  std::vector<uint32_t> items;
  bool labels_differ = false;
  bool across_split = false;  // in training and in the test
};

struct CheckReport {
  std::vector<BrokenFile> broken;  // in the order of the items
  std::vector<Duplicates> duplicates;
  uint64_t bytes = 0;
  int least_width = 0, most_width = 0;
  int least_height = 0, most_height = 0;
  double mean_width = 0, mean_height = 0;
  size_t jpeg = 0, png = 0, bmp = 0;
  size_t misnamed = 0;  // with the extension of another format
};

// Reads and decodes every file.
CheckReport check_files(const Dataset& data, const CheckOptions& options);

}  // namespace gle::data
