#include "data/mat5.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/bytes/inflate.h"
#include "engine/error.h"

namespace gle::data {

namespace {

enum Type : uint32_t {
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kSingle = 7,
  kDouble = 9,
  kInt64 = 12,
  kUint64 = 13,
  kMatrix = 14,
  kCompressed = 15,
  kUtf8 = 16,
  kUtf16 = 17,
};

constexpr size_t kHeaderBytes = 128;
constexpr size_t kMostUnpackedBytes = size_t{256} << 20;
constexpr size_t kMostArrays = 4'000'000;
constexpr int kMostDepth = 16;

struct Element {
  uint32_t type = 0;
  std::span<const uint8_t> body;
};

template <class T>
void widen(std::span<const uint8_t> body, std::vector<double>& out) {
  out.resize(body.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, body.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  void variables(std::span<const uint8_t> bytes, std::vector<MatArray>& out) {
    while (!bytes.empty()) {
      const Element element = next(bytes);
      if (element.type == kCompressed) {
        const std::vector<uint8_t> unpacked = inflate_zlib(
            {.bytes = element.body, .most = kMostUnpackedBytes - unpacked_, .name = name_, .code = ErrorCode::data});
        unpacked_ += unpacked.size();
        std::span<const uint8_t> rest = unpacked;
        add(next(rest), out);
      } else {
        add(element, out);
      }
    }
  }

 private:
  [[noreturn]] void damaged(const char* what) const { fail(ErrorCode::data, name_, ": damaged MATLAB file: ", what); }

  static uint32_t word(std::span<const uint8_t> bytes, size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }

  void add(const Element& element, std::vector<MatArray>& out) {
    if (element.type == kMatrix) {
      out.push_back(matrix(element.body, 0));
    }
  }

  // Takes one element, with its padding, off the front.
  Element next(std::span<const uint8_t>& bytes) const {
    if (bytes.size() < 8) {
      damaged("cut off in an element's tag");
    }
    const uint32_t tag = word(bytes, 0);
    if (tag >> 16 != 0) {
      const size_t length = tag >> 16;
      if (length > 4) {
        damaged("a small element of more than four bytes");
      }
      const Element element{tag & 0xFFFF, bytes.subspan(4, length)};
      bytes = bytes.subspan(8);
      return element;
    }
    const size_t length = word(bytes, 4);
    if (length > bytes.size() - 8) {
      damaged("an element reaches beyond the end");
    }
    const Element element{tag, bytes.subspan(8, length)};
    const size_t padded = tag == kCompressed ? length : (length + 7) / 8 * 8;
    bytes = bytes.subspan(std::min(8 + padded, bytes.size()));
    return element;
  }

  void numbers(const Element& element, std::vector<double>& out) const {
    switch (element.type) {
      case kInt8:
        return widen<int8_t>(element.body, out);
      case kUint8:
      case kUtf8:
        return widen<uint8_t>(element.body, out);
      case kInt16:
        return widen<int16_t>(element.body, out);
      case kUint16:
      case kUtf16:
        return widen<uint16_t>(element.body, out);
      case kInt32:
        return widen<int32_t>(element.body, out);
      case kUint32:
        return widen<uint32_t>(element.body, out);
      case kSingle:
        return widen<float>(element.body, out);
      case kDouble:
        return widen<double>(element.body, out);
      case kInt64:
        return widen<int64_t>(element.body, out);
      case kUint64:
        return widen<uint64_t>(element.body, out);
      default:
        damaged("numbers of an unknown type");
    }
  }

  MatArray matrix(std::span<const uint8_t> bytes, int depth) {
    MatArray array;
    if (++arrays_ > kMostArrays || depth > kMostDepth) {
      damaged("too many or too deeply nested arrays");
    }
    if (bytes.empty()) {
      array.kind = MatArray::Kind::numbers;
      array.dims = {0, 0};
      return array;
    }
    const Element flags = next(bytes);
    if (flags.type != kUint32 || flags.body.size() != 8) {
      damaged("an array without its flags");
    }
    const uint32_t kind = word(flags.body, 0) & 0xFF;
    dimensions(next(bytes), array);
    const Element name = next(bytes);
    array.name.assign(name.body.begin(), name.body.end());
    constexpr uint32_t kCell = 1;
    constexpr uint32_t kStruct = 2;
    constexpr uint32_t kChar = 4;
    if (kind == kCell) {
      array.kind = MatArray::Kind::cells;
      children(bytes, array.elements(), depth, array);
    } else if (kind == kStruct) {
      array.kind = MatArray::Kind::structure;
      field_names(bytes, array);
      children(bytes, array.elements() * static_cast<int64_t>(array.fields.size()), depth, array);
    } else if (kind == kChar) {
      array.kind = MatArray::Kind::text;
      std::vector<double> codes;
      numbers(next(bytes), codes);
      for (const double code : codes) {
        array.text += code >= 0 && code < 256 ? static_cast<char>(static_cast<uint8_t>(code)) : '?';
      }
    } else if (kind >= 6 && kind <= 15) {
      array.kind = MatArray::Kind::numbers;
      numbers(next(bytes), array.numbers);
      if (static_cast<int64_t>(array.numbers.size()) != array.elements()) {
        damaged("an array whose size is not what its dimensions say");
      }
    }
    return array;
  }

  void dimensions(const Element& element, MatArray& array) const {
    if (element.type != kInt32 || element.body.size() < 8 || element.body.size() > 64) {
      damaged("an array without its dimensions");
    }
    int64_t product = 1;
    for (size_t i = 0; i + 4 <= element.body.size(); i += 4) {
      const auto size = std::bit_cast<int32_t>(word(element.body, i));
      if (size < 0 || (size > 0 && product > (int64_t{1} << 32) / size)) {
        damaged("impossible dimensions");
      }
      product *= size;
      array.dims.push_back(size);
    }
  }

  void field_names(std::span<const uint8_t>& bytes, MatArray& array) const {
    const Element length = next(bytes);
    if (length.type != kInt32 || length.body.size() != 4) {
      damaged("a structure without the length of its field names");
    }
    const size_t step = word(length.body, 0);
    const Element names = next(bytes);
    if (step == 0 || names.body.size() % step != 0) {
      damaged("a structure with malformed field names");
    }
    for (size_t at = 0; at < names.body.size(); at += step) {
      const auto name = names.body.subspan(at, step);
      array.fields.emplace_back(name.begin(), std::find(name.begin(), name.end(), 0));
    }
  }

  void children(std::span<const uint8_t>& bytes, int64_t count, int depth, MatArray& array) {
    // Each takes at least its tag.
    if (count > static_cast<int64_t>(bytes.size() / 8)) {
      damaged("more elements than there is data for");
    }
    array.cells.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const Element element = next(bytes);
      if (element.type != kMatrix) {
        damaged("an element that is no array");
      }
      array.cells.push_back(matrix(element.body, depth + 1));
    }
  }

  const std::string& name_;
  size_t unpacked_ = 0;
  size_t arrays_ = 0;
};

}  // namespace

int64_t MatArray::elements() const {
  int64_t product = 1;
  for (const int64_t size : dims) {
    product *= size;
  }
  return product;
}

const MatArray* MatArray::at(int64_t element, std::string_view field) const {
  const auto found = std::find(fields.begin(), fields.end(), field);
  if (kind != Kind::structure || found == fields.end()) {
    return nullptr;
  }
  return &cells[static_cast<size_t>(element) * fields.size() + static_cast<size_t>(found - fields.begin())];
}

std::vector<MatArray> read_mat5(std::span<const uint8_t> file, const std::string& name) {
  constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1A\n";
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("MATLAB 7.3") || text.starts_with(kHdf5) || text.substr(0, 1024).find(kHdf5) != text.npos) {
    fail(ErrorCode::data, name,
         ": a MATLAB 7.3 (HDF5) file, which is not read; save it with -v7, or give the "
         "extracted images and a split list");
  }
  if (file.size() < kHeaderBytes || text.substr(126, 2) != "IM") {
    fail(ErrorCode::data, name, ": not a MATLAB v5 file of the little-endian kind");
  }
  std::vector<MatArray> variables;
  Reader(name).variables(file.subspan(kHeaderBytes), variables);
  return variables;
}

}  // namespace gle::data
