#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/decode.h"

namespace gle::tools {

// A picture of pictures: a row for each query, which is framed, and its neighbours from left to right.
class ContactSheet {
 public:
  ContactSheet(int rows, int columns);

  void place(int row, int column, const data::Dataset& data, const data::Item& item,
             const data::DecodeOptions& options);
  std::vector<std::byte> png() const;

 private:
  int width_;
  int height_;
  std::vector<uint8_t> pixels_;
};

}  // namespace gle::tools
