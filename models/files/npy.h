#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// A NumPy array: little-endian elements in C order. `kind` and `item_bytes` are NumPy's own: f2, f4, f8, i1 ... i8,
// u1 ... u8, b1, and U for text of item_bytes / 4 characters.
struct NpyArray {
  std::string name;  // for messages
  char kind = 'f';
  size_t item_bytes = 4;
  std::vector<int64_t> shape;  // empty for a scalar
  std::vector<std::byte> data;

  size_t elements() const { return item_bytes == 0 ? 0 : data.size() / item_bytes; }

  // The elements as another type. Floats give floats and doubles; whole numbers and booleans give integers, floats
  // and doubles, as long as they fit; text gives strings in UTF-8. Anything else throws ErrorCode::weights.
  std::vector<float> floats() const;
  std::vector<double> doubles() const;
  std::vector<int64_t> integers() const;
  std::vector<std::string> strings() const;
  // The single element of a scalar or of an array of one.
  double scalar() const;
  std::string text() const;
};

NpyArray npy_of(std::span<const float> values, std::vector<int64_t> shape);
NpyArray npy_of(std::span<const double> values, std::vector<int64_t> shape);
NpyArray npy_of(std::span<const int32_t> values, std::vector<int64_t> shape);
NpyArray npy_of(std::span<const int64_t> values, std::vector<int64_t> shape);

NpyArray parse_npy(Bytes bytes, const std::string& name);
NpyArray read_npy(const std::string& path);
std::vector<std::byte> format_npy(const NpyArray& array);
void write_npy(const std::string& path, const NpyArray& array);

// All arrays of an .npz archive by name, without ".npy".
class Npz {
 public:
  static Npz parse(Bytes bytes, const std::string& name);
  static Npz read(const std::string& path);

  bool has(std::string_view name) const { return arrays_.find(name) != arrays_.end(); }
  // Throws ErrorCode::weights if there is none, and names those there are.
  const NpyArray& at(std::string_view name) const;
  const std::map<std::string, NpyArray, std::less<>>& arrays() const { return arrays_; }

 private:
  std::string name_;
  std::map<std::string, NpyArray, std::less<>> arrays_;
};

}  // namespace gle
