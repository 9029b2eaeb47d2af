#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gle::data {

// A value of a MATLAB file. Numbers of all types are doubles; an imaginary part is left out.
struct MatArray {
  enum class Kind { numbers, text, cells, structure, other };
  Kind kind = Kind::other;
  std::string name;
  std::vector<int64_t> dims;
  std::vector<double> numbers;
  std::string text;                 // of a character array, in column order
  std::vector<std::string> fields;  // of a structure
  std::vector<MatArray> cells;      // of a cell array; of a structure: element by element, all fields of each

  int64_t elements() const;
  // Field `field` of a structure's element; null if there is no such field.
  const MatArray* at(int64_t element, std::string_view field) const;
};

// The variables of a MATLAB v5 to v7 file (the little-endian kind, compressed or not). Throws ErrorCode::data for a
// damaged file and for v7.3, which is HDF5. Sparse matrices, objects and functions come out as `other`.
std::vector<MatArray> read_mat5(std::span<const uint8_t> file, const std::string& name);

}  // namespace gle::data
