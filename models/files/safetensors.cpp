// An 8-byte length, a JSON header {"name": {"dtype", "shape", "data_offsets"}, ...}, the data.
#include "models/files/safetensors.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "models/files/atomic_file.h"
#include "models/files/element_types.h"
#include "models/files/file.h"

namespace gle {

namespace {

constexpr uint64_t kMostHeader = uint64_t{16} << 20U;
constexpr size_t kMostTensors = 100'000;
constexpr size_t kMostDimensions = 8;

struct Entry {
  std::string name;
  std::string type;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;
  bool has_shape = false;
};

// Takes what the JSON parser meets: only the objects that the format knows, every key once.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a fraction"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    std::vector<uint64_t>* list = place_ != Place::array     ? nullptr
                                  : field_ == "shape"        ? &entries.back().shape
                                  : field_ == "data_offsets" ? &entries.back().offsets
                                                             : nullptr;
    if (!list || list->size() >= kMostDimensions) {
      return refuse("a number");
    }
    list->push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      metadata[field_] = value;
      return true;
    }
    if (place_ != Place::tensor || field_ != "dtype") {
      return refuse("a text");
    }
    entries.back().type = value;
    return true;
  }
  bool start_object(size_t) override {
    switch (place_) {
      case Place::outside:
        place_ = Place::root;
        return true;
      case Place::root:
        place_ = root_key_ == "__metadata__" ? Place::metadata : Place::tensor;
        fields_.clear();
        if (place_ == Place::tensor) {
          entries.push_back({.name = root_key_, .type = {}, .shape = {}, .offsets = {}});
        }
        return entries.size() <= kMostTensors || refuse("more than 100000 tensors");
      default:
        return refuse("an object");
    }
  }
  bool key(string_t& value) override {
    std::set<std::string>& keys = place_ == Place::root ? names_ : fields_;
    if (!keys.insert(value).second) {
      return refuse("the key '" + value + "' twice");
    }
    (place_ == Place::root ? root_key_ : field_) = value;
    return true;
  }
  bool end_object() override {
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::tensor || (field_ != "shape" && field_ != "data_offsets")) {
      return refuse("a list");
    }
    entries.back().has_shape |= field_ == "shape";
    place_ = Place::array;
    return true;
  }
  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    problem = "no JSON at byte " + std::to_string(position) + " of the header";
    return false;
  }

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;

 private:
  enum class Place { outside, root, metadata, tensor, array };
  bool refuse(const std::string& what) {
    problem = what + " in the header where none belongs" + (root_key_.empty() ? "" : ", at '" + root_key_ + "'");
    return false;
  }

  Place place_ = Place::outside;
  std::string root_key_;
  std::string field_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
};

void append_quoted(std::string& text, const std::string& value) {
  text += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

WeightFile parse_safetensors(Bytes bytes, const std::string& name) {
  ByteReader in(bytes, name);
  const uint64_t header_bytes = in.u64();
  if (header_bytes > kMostHeader) {
    in.refuse("a safetensors header of ", header_bytes, " bytes; at most ", kMostHeader, " are read");
  }
  const std::string_view header = in.text(header_bytes);
  if (!header.starts_with('{')) {
    in.refuse("not a safetensors file: the header does not start with '{'");
  }
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &handler)) {
    in.refuse("damaged safetensors header: ", handler.problem);
  }
  const Bytes data = in.take(in.left());

  std::vector<const Entry*> by_place;
  for (const Entry& entry : handler.entries) {
    if (entry.offsets.size() != 2 || entry.offsets[0] > entry.offsets[1] || !entry.has_shape) {
      in.refuse("tensor '", entry.name, "' lacks dtype, shape or data_offsets");
    }
    by_place.push_back(&entry);
  }
  std::sort(by_place.begin(), by_place.end(), [](const Entry* a, const Entry* b) { return a->offsets < b->offsets; });
  uint64_t end = 0;
  for (const Entry* entry : by_place) {
    if (entry->offsets[0] != end) {
      in.refuse("tensor '", entry->name, "' begins at ", entry->offsets[0], ", the one before ends at ", end);
    }
    end = entry->offsets[1];
  }
  if (end != data.size()) {
    in.refuse("the tensors end at ", end, ", the file's data at ", data.size());
  }

  WeightFile file{.name = name, .format = "safetensors", .tensors = {}, .left_out = {}, .metadata = handler.metadata};
  for (const Entry* entry : by_place) {
    const std::optional<ElementKind> kind = safetensors_kind(entry->type);
    if (!kind) {
      in.refuse("tensor '", entry->name, "' has the unknown type '", entry->type, "'");
    }
    uint64_t elements = 1;
    uint64_t wanted = 0;
    bool sane = true;
    for (const uint64_t size : entry->shape) {
      sane = sane && size <= INT64_MAX && checked_multiply(elements, size, elements);
    }
    sane = sane && checked_multiply(elements, kind->bytes, wanted);
    if (!sane || wanted != entry->offsets[1] - entry->offsets[0]) {
      in.refuse("tensor '", entry->name, "' has ", entry->offsets[1] - entry->offsets[0],
                " bytes, which its shape and type do not give");
    }
    if (kind->type == ElementType::other) {
      file.left_out.push_back(entry->name);
      continue;
    }
    const Bytes part = data.subspan(static_cast<size_t>(entry->offsets[0]), static_cast<size_t>(wanted));
    file.tensors.push_back({.name = entry->name,
                            .shape = {entry->shape.begin(), entry->shape.end()},
                            .values = elements_as_floats(part, kind->type, static_cast<size_t>(elements))});
  }
  return file;
}

std::vector<std::byte> format_safetensors(const std::vector<WeightTensor>& tensors,
                                          const std::map<std::string, std::string>& metadata) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"";
  for (const auto& [key, value] : metadata) {
    if (key == "format") {
      continue;  // of the file it was read from
    }
    header += ',';
    append_quoted(header, key);
    header += ':';
    append_quoted(header, value);
  }
  header += '}';
  size_t offset = 0;
  for (const WeightTensor& tensor : tensors) {
    header += ',';
    append_quoted(header, tensor.name);
    header += ":{\"dtype\":\"F32\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      header += i == 0 ? "" : ",";
      header += std::to_string(tensor.shape[i]);
    }
    const size_t end = offset + tensor.values.size() * sizeof(float);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');

  std::vector<std::byte> file;
  file.reserve(8 + header.size() + offset);
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<std::byte>(static_cast<uint64_t>(header.size()) >> (8 * i)));
  }
  const auto append = [&](Bytes bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  append(std::as_bytes(std::span(header)));
  for (const WeightTensor& tensor : tensors) {
    append(std::as_bytes(std::span(tensor.values)));
  }
  return file;
}

void write_safetensors(const std::string& path, const std::vector<WeightTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_atomically(path, {format_safetensors(tensors, metadata)});
}

}  // namespace gle
