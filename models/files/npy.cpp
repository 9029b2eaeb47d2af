#include "models/files/npy.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "models/files/atomic_file.h"
#include "models/files/element_types.h"
#include "models/files/file.h"
#include "models/files/zip.h"

namespace gle {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 32;

struct NpyHeader {
  char kind = 0;
  size_t item_bytes = 0;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the Python dictionary literal that is the header of an .npy file: three keys, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const ByteReader& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_type = false;
    bool have_order = false;
    bool have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !have_type) {
        have_type = true;
        read_type(header);
      } else if (key == "fortran_order" && !have_order) {
        have_order = true;
        header.fortran_order = truth();
      } else if (key == "shape" && !have_shape) {
        have_shape = true;
        read_shape(header);
      } else {
        refuse();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size() || !have_type || !have_order || !have_shape) {
      refuse();
    }
    return header;
  }

 private:
  [[noreturn]] void refuse() const { file_.refuse("the .npy header cannot be read: ", text_.substr(0, 200)); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char c) {
    if (!accept(c)) {
      refuse();
    }
  }
  std::string_view quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      refuse();
    }
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }
  bool truth() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    refuse();
  }
  uint64_t number() {
    skip_blanks();
    const size_t begin = at_;
    uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      if (value > (static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - digit) / 10) {
        refuse();
      }
      value = value * 10 + digit;
    }
    if (at_ == begin) {
      refuse();
    }
    return value;
  }
  void read_type(NpyHeader& header) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      file_.refuse("arrays of records are not read");
    }
    const std::string_view type = quoted();
    bool known = type.size() >= 3 && type.size() <= 9 && (type[0] == '<' || type[0] == '|');
    for (size_t i = 2; known && i < type.size(); ++i) {
      known = type[i] >= '0' && type[i] <= '9';
      header.item_bytes = header.item_bytes * 10 + static_cast<size_t>(type[i] - '0');
    }
    header.kind = known ? type[1] : '\0';
    const size_t bytes = header.item_bytes;
    const bool whole = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    known = (header.kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8)) ||
            ((header.kind == 'i' || header.kind == 'u') && whole) || (header.kind == 'b' && bytes == 1) ||
            (header.kind == 'U' && bytes > 0);
    if (!known) {
      file_.refuse("arrays of type '", type, "' are not read: only little-endian floats of 2, 4 and 8 bytes, whole ",
                   "numbers, booleans and text; save array.astype(\"float32\") or .astype(\"int64\")");
    }
    header.item_bytes *= header.kind == 'U' ? 4 : 1;
  }
  void read_shape(NpyHeader& header) {
    expect('(');
    while (!accept(')')) {
      header.shape.push_back(static_cast<int64_t>(number()));
      if (header.shape.size() > kMostDimensions) {
        refuse();
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const ByteReader& file_;
  size_t at_ = 0;
};

std::vector<std::byte> in_c_order(Bytes data, const NpyHeader& header) {
  if (!header.fortran_order || header.shape.size() < 2) {
    return {data.begin(), data.end()};
  }
  std::vector<std::byte> result(data.size());
  std::vector<int64_t> index(header.shape.size(), 0);
  for (size_t to = 0; to < result.size(); to += header.item_bytes) {
    size_t from = 0;
    for (size_t i = index.size(); i-- > 0;) {
      from = from * static_cast<size_t>(header.shape[i]) + static_cast<size_t>(index[i]);
    }
    std::memcpy(&result[to], &data[from * header.item_bytes], header.item_bytes);
    for (size_t i = index.size(); i-- > 0 && ++index[i] == header.shape[i];) {
      index[i] = 0;
    }
  }
  return result;
}

template <class T>
T element(const NpyArray& array, size_t i) {
  T value;
  std::memcpy(&value, array.data.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class To, class From>
To convert(const NpyArray& array, From value) {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) {
      fail(ErrorCode::weights, array.name, ": ", value, " does not fit into a signed number of 64 bits");
    }
  }
  return static_cast<To>(value);
}

template <class To, class From>
std::vector<To> all(const NpyArray& array) {
  std::vector<To> result(array.elements());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = convert<To>(array, element<From>(array, i));
  }
  return result;
}

template <class To>
std::vector<To> all_halves(const NpyArray& array) {
  const std::vector<float> values = elements_as_floats(array.data, ElementType::f16, array.elements());
  return {values.begin(), values.end()};
}

[[noreturn]] void refuse_type(const NpyArray& array, const char* wanted) {
  fail(ErrorCode::weights, array.name, ": elements of type '", array.kind, array.item_bytes, "' are not ", wanted);
}

template <class To>
std::vector<To> numbers(const NpyArray& array, const char* wanted) {
  switch (array.kind) {
    case 'f':
      if constexpr (std::is_floating_point_v<To>) {
        return array.item_bytes == 2   ? all_halves<To>(array)
               : array.item_bytes == 4 ? all<To, float>(array)
                                       : all<To, double>(array);
      }
      break;
    case 'b':
      return all<To, uint8_t>(array);
    case 'i':
      return array.item_bytes == 1   ? all<To, int8_t>(array)
             : array.item_bytes == 2 ? all<To, int16_t>(array)
             : array.item_bytes == 4 ? all<To, int32_t>(array)
                                     : all<To, int64_t>(array);
    case 'u':
      return array.item_bytes == 1   ? all<To, uint8_t>(array)
             : array.item_bytes == 2 ? all<To, uint16_t>(array)
             : array.item_bytes == 4 ? all<To, uint32_t>(array)
                                     : all<To, uint64_t>(array);
    default:
      break;
  }
  refuse_type(array, wanted);
}

void append_utf8(std::string& text, uint32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[more] | (c >> (6 * more)));
  for (int i = more; i-- > 0;) {
    text += static_cast<char>(0x80U | ((c >> (6 * i)) & 0x3FU));
  }
}

template <class T>
NpyArray make(std::span<const T> values, std::vector<int64_t> shape, char kind) {
  uint64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= static_cast<uint64_t>(size);
  }
  require(elements == values.size(), "npy_of", values.size(), " values do not fill the shape of ", elements);
  const Bytes bytes = std::as_bytes(values);
  return {.name = "array",
          .kind = kind,
          .item_bytes = sizeof(T),
          .shape = std::move(shape),
          .data = {bytes.begin(), bytes.end()}};
}

}  // namespace

std::vector<float> NpyArray::floats() const { return numbers<float>(*this, "numbers"); }
std::vector<double> NpyArray::doubles() const { return numbers<double>(*this, "numbers"); }
std::vector<int64_t> NpyArray::integers() const { return numbers<int64_t>(*this, "whole numbers"); }

std::vector<std::string> NpyArray::strings() const {
  if (kind != 'U') {
    refuse_type(*this, "text");
  }
  std::vector<std::string> result(elements());
  for (size_t i = 0; i < result.size(); ++i) {
    for (size_t k = 0; k < item_bytes / 4; ++k) {
      const auto c = element<uint32_t>(*this, i * (item_bytes / 4) + k);
      if (c > 0x10FFFF) {
        fail(ErrorCode::weights, name, ": ", c, " is not a character");
      }
      if (c != 0) {
        append_utf8(result[i], c);
      }
    }
  }
  return result;
}

double NpyArray::scalar() const {
  const std::vector<double> values = doubles();
  if (values.size() != 1) {
    fail(ErrorCode::weights, name, ": one number expected, got ", values.size());
  }
  return values[0];
}

std::string NpyArray::text() const {
  const std::vector<std::string> values = strings();
  if (values.size() != 1) {
    fail(ErrorCode::weights, name, ": one text expected, got ", values.size());
  }
  return values[0];
}

NpyArray npy_of(std::span<const float> values, std::vector<int64_t> shape) {
  return make(values, std::move(shape), 'f');
}
NpyArray npy_of(std::span<const double> values, std::vector<int64_t> shape) {
  return make(values, std::move(shape), 'f');
}
NpyArray npy_of(std::span<const int32_t> values, std::vector<int64_t> shape) {
  return make(values, std::move(shape), 'i');
}
NpyArray npy_of(std::span<const int64_t> values, std::vector<int64_t> shape) {
  return make(values, std::move(shape), 'i');
}

NpyArray parse_npy(Bytes bytes, const std::string& name) {
  ByteReader in(bytes, name);
  if (in.left() < kMagic.size() || in.text(kMagic.size()) != kMagic) {
    in.refuse("not an .npy file");
  }
  const uint8_t major = in.u8();
  (void)in.u8();
  if (major < 1 || major > 3) {
    in.refuse("version ", static_cast<int>(major), " of the .npy format is not known");
  }
  const uint32_t header_bytes = major == 1 ? in.u16() : in.u32();
  const NpyHeader header = HeaderParser(in.text(header_bytes), in).parse();
  uint64_t wanted = header.item_bytes;
  for (const int64_t size : header.shape) {
    if (!checked_multiply(wanted, static_cast<uint64_t>(size), wanted)) {
      in.refuse("the shape of the array is absurd");
    }
  }
  if (wanted != in.left()) {
    in.refuse("the shape needs ", wanted, " bytes of data, the file has ", in.left());
  }
  return {.name = name,
          .kind = header.kind,
          .item_bytes = header.item_bytes,
          .shape = header.shape,
          .data = in_c_order(in.take(wanted), header)};
}

NpyArray read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::vector<std::byte> format_npy(const NpyArray& array) {
  const bool text = array.kind == 'U';
  std::string header = std::string("{'descr': '") + (array.item_bytes == 1 ? '|' : '<') + array.kind +
                       std::to_string(text ? array.item_bytes / 4 : array.item_bytes) +
                       "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < array.shape.size(); ++i) {
    header += i == 0 ? "" : ", ";
    header += std::to_string(array.shape[i]);
  }
  header += array.shape.size() == 1 ? ",), }" : "), }";
  constexpr size_t kFront = 10;
  constexpr size_t kAlignment = 64;
  header.resize((kFront + header.size() + kAlignment) / kAlignment * kAlignment - kFront - 1, ' ');
  header += '\n';
  std::string front(kMagic);
  front += '\1';
  front += '\0';
  front += static_cast<char>(header.size() & 0xFFU);
  front += static_cast<char>(header.size() >> 8U);
  front += header;
  const Bytes bytes = std::as_bytes(std::span(front));
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  result.insert(result.end(), array.data.begin(), array.data.end());
  return result;
}

void write_npy(const std::string& path, const NpyArray& array) { write_atomically(path, {format_npy(array)}); }

Npz Npz::parse(Bytes bytes, const std::string& name) {
  Npz result;
  result.name_ = name;
  ZipArchive archive(bytes, name);
  for (const ZipEntry& entry : archive.entries()) {
    std::string_view key = entry.name;
    if (!key.ends_with(".npy")) {
      fail(ErrorCode::weights, name, ": entry '", entry.name, "' is not an .npy file");
    }
    key.remove_suffix(4);
    result.arrays_.emplace(key, parse_npy(archive.read(entry), name + "/" + entry.name));
  }
  return result;
}

Npz Npz::read(const std::string& path) { return parse(read_file(path), path); }

const NpyArray& Npz::at(std::string_view name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) {
    std::string names;
    for (const auto& entry : arrays_) {
      names += (names.empty() ? "" : ", ") + entry.first;
    }
    fail(ErrorCode::weights, name_, ": no array '", name, "'; there are: ", names);
  }
  return found->second;
}

}  // namespace gle
