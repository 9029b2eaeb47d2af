#include "models/files/pth.h"

#include <functional>
#include <map>
#include <utility>

#include "models/files/element_types.h"
#include "models/files/pickle.h"
#include "models/files/zip.h"

namespace gle {

namespace {

using Kind = PickleNode::Kind;
// Finds the bytes of a storage by its key.
using Storages = std::function<Bytes(const std::string& key)>;

constexpr int kDeepest = 64;
constexpr size_t kMostTensors = 100'000;
constexpr std::string_view kLegacyMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kLegacyProtocol = 1001;

// Walks the dictionaries of a pickle and gathers the tensors, named by the keys that lead to them.
class Collector {
 public:
  Collector(const Pickle& pickle, const ByteReader& in, Storages storages, size_t file_bytes, WeightFile& file)
      : pickle_(pickle), in_(in), storages_(std::move(storages)), file_(file) {
    // Halves grow to floats; sharing one storage among many tensors must not multiply it.
    elements_left_ = 2 * file_bytes + (size_t{1} << 20U);
  }

  void collect(int node, const std::string& path, int depth) {
    const PickleNode& here = pickle_[node];
    if (depth > kDeepest || ++visited_ > 4 * kMostTensors) {
      in_.refuse("the pickle nests too deep or names too much");
    }
    if (here.kind == Kind::tensor) {
      add(here, path);
    }
    if (here.kind != Kind::dictionary) {
      return;
    }
    for (size_t i = 0; i + 1 < here.items.size(); i += 2) {
      const PickleNode& key = pickle_[here.items[i]];
      if (key.kind != Kind::text && key.kind != Kind::integer) {
        continue;
      }
      const std::string part = key.kind == Kind::text ? key.text : std::to_string(key.integer);
      collect(here.items[i + 1], path.empty() ? part : path + "." + part, depth + 1);
    }
  }

 private:
  int64_t integer(int node, const char* what) const {
    const PickleNode& found = pickle_[node];
    if (found.kind != Kind::integer || found.integer < 0) {
      in_.refuse("damaged pickle: ", what, " of a tensor is not a whole number from 0");
    }
    return found.integer;
  }
  std::vector<int64_t> integers(int node, const char* what) const {
    const PickleNode& found = pickle_[node];
    if (found.kind != Kind::list || found.items.size() > 8) {
      in_.refuse("damaged pickle: ", what, " of a tensor is not a list of at most 8 numbers");
    }
    std::vector<int64_t> result;
    for (const int item : found.items) {
      result.push_back(integer(item, what));
    }
    return result;
  }

  void add(const PickleNode& node, const std::string& path) {
    const PickleNode& storage = pickle_[node.items[0]];
    if (storage.kind != Kind::storage) {
      in_.refuse("tensor '", path, "' has no storage");
    }
    const PickleNode& type = pickle_[storage.items[0]];
    const std::optional<ElementKind> kind = type.kind == Kind::name && type.text.starts_with("torch ")
                                                ? torch_storage_kind(type.text.substr(6))
                                                : std::nullopt;
    if (!kind) {
      in_.refuse("tensor '", path, "' is of the unknown type '", type.text, "'");
    }
    if (kind->type == ElementType::other) {
      file_.left_out.push_back(path);
      return;
    }
    const Bytes data = storages_(pickle_[storage.items[1]].text);
    const auto stored = static_cast<uint64_t>(integer(storage.items[3], "number of elements"));
    uint64_t bytes = 0;
    if (!checked_multiply(stored, kind->bytes, bytes) || bytes != data.size()) {
      in_.refuse("the storage of tensor '", path, "' has ", data.size(), " bytes for ", stored, " elements");
    }
    copy(path, data, kind->type, static_cast<uint64_t>(integer(node.items[1], "offset")), stored,
         integers(node.items[2], "shape"), integers(node.items[3], "strides"));
  }

  void copy(const std::string& path, Bytes data, ElementType type, uint64_t offset, uint64_t stored,
            std::vector<int64_t> shape, const std::vector<int64_t>& strides) {
    uint64_t elements = 1;
    uint64_t last = offset;
    bool sane = shape.size() == strides.size();
    for (size_t i = 0; sane && i < shape.size(); ++i) {
      uint64_t reach = 0;
      sane = checked_multiply(elements, static_cast<uint64_t>(shape[i]), elements) &&
             checked_multiply(static_cast<uint64_t>(std::max<int64_t>(shape[i], 1) - 1),
                              static_cast<uint64_t>(strides[i]), reach) &&
             !__builtin_add_overflow(last, reach, &last);
    }
    if (!sane || elements > stored || (elements > 0 && last >= stored)) {
      in_.refuse("tensor '", path, "' reaches beyond its storage of ", stored, " elements");
    }
    if (file_.tensors.size() == kMostTensors || elements > elements_left_) {
      in_.refuse("the tensors are more than the file can hold: many share a storage");
    }
    elements_left_ -= static_cast<size_t>(elements);
    WeightTensor tensor{.name = path, .shape = std::move(shape), .values = {}};
    tensor.values.resize(static_cast<size_t>(elements));
    std::vector<int64_t> index(tensor.shape.size(), 0);
    for (float& value : tensor.values) {
      uint64_t from = offset;
      for (size_t i = 0; i < index.size(); ++i) {
        from += static_cast<uint64_t>(index[i] * strides[i]);
      }
      value = element_as_float(data, type, static_cast<size_t>(from));
      for (size_t i = index.size(); i-- > 0 && ++index[i] == tensor.shape[i];) {
        index[i] = 0;
      }
    }
    file_.tensors.push_back(std::move(tensor));
  }

  const Pickle& pickle_;
  const ByteReader& in_;
  Storages storages_;
  WeightFile& file_;
  size_t elements_left_ = 0;
  size_t visited_ = 0;
};

// Checkpoints wrap the weights beside an optimiser's state, an epoch and the like.
int state_dict_of(const Pickle& pickle) {
  int node = pickle.root();
  for (int depth = 0; depth < 4; ++depth) {
    int inner = -1;
    for (const char* wrapper : {"state_dict", "model_state_dict", "model", "net"}) {
      const int found = pickle.find(node, wrapper);
      if (inner < 0 && found >= 0 && pickle[found].kind == Kind::dictionary) {
        inner = found;
      }
    }
    if (inner < 0) {
      break;
    }
    node = inner;
  }
  return node;
}

}  // namespace

WeightFile parse_pth_zip(ZipArchive& archive, size_t file_bytes, const std::string& name) {
  constexpr std::string_view kData = "/data.pkl";
  const ZipEntry* data = nullptr;
  bool script = false;
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.ends_with(kData) && entry.name.find('/') == entry.name.size() - kData.size()) {
      data = &entry;
    }
    script = script || entry.name.ends_with("/constants.pkl");
  }
  if (!data) {
    fail(ErrorCode::weights, name, ": a zip archive without data.pkl is no file of PyTorch's");
  }
  const std::string folder = data->name.substr(0, data->name.size() - kData.size());
  if (const ZipEntry* order = archive.find(folder + "/byteorder")) {
    const Bytes text = archive.read(*order);
    if (ByteReader(text, name).text(text.size()) != "little") {
      fail(ErrorCode::weights, name, ": written on a big-endian machine, which is not supported");
    }
  }
  ByteReader in(archive.read(*data), name + "/" + data->name);
  const Pickle pickle(in, script ? Pickle::Names::torchscript : Pickle::Names::tensors);
  WeightFile file{.name = name, .format = script ? "torchscript" : "pth (zip)", .tensors = {}, .left_out = {}};
  std::map<std::string, Bytes> read;  // each storage is checked once
  const auto storages = [&](const std::string& key) {
    const auto known = read.find(key);
    if (known != read.end()) {
      return known->second;
    }
    const ZipEntry* entry = archive.find(folder + "/data/" + key);
    if (!entry) {
      in.refuse("the storage '", key, "' is missing");
    }
    return read[key] = archive.read(*entry);
  };
  Collector(pickle, in, storages, file_bytes, file).collect(state_dict_of(pickle), "", 0);
  return file;
}

bool looks_like_legacy_pth(Bytes bytes) {
  return bytes.size() > 14 && bytes[0] == std::byte{0x80} && ByteReader(bytes.subspan(4), "").text(10) == kLegacyMagic;
}

WeightFile parse_legacy_pth(Bytes bytes, const std::string& name) {
  ByteReader in(bytes, name);
  const Pickle magic(in, Pickle::Names::tensors);
  const Pickle protocol(in, Pickle::Names::tensors);
  const Pickle system(in, Pickle::Names::tensors);
  if (magic[magic.root()].text != kLegacyMagic || protocol[protocol.root()].integer != kLegacyProtocol) {
    in.refuse("not a file of PyTorch's, or of an unknown version");
  }
  const int order = system.find(system.root(), "little_endian");
  if (order >= 0 && system[order].integer != 1) {
    in.refuse("written on a big-endian machine, which is not supported");
  }
  const Pickle object(in, Pickle::Names::tensors);
  const Pickle keys(in, Pickle::Names::tensors);

  // Which type a storage has stands where it is used.
  std::map<std::string, size_t> element_bytes;
  for (int i = 0; i < object.size(); ++i) {
    if (object[i].kind == Kind::storage) {
      const std::string& type = object[object[i].items[0]].text;
      const std::optional<ElementKind> kind =
          type.starts_with("torch ") ? torch_storage_kind(type.substr(6)) : std::nullopt;
      element_bytes[object[object[i].items[1]].text] = kind ? kind->bytes : 0;
    }
  }
  std::map<std::string, Bytes> storages;
  for (const int item : keys[keys.root()].items) {
    const std::string& key = keys[item].text;
    const auto used = element_bytes.find(key);
    uint64_t size = 0;
    if (used == element_bytes.end() || used->second == 0 || !checked_multiply(in.u64(), used->second, size)) {
      in.refuse("the storage '", key, "' is of unknown type or size");
    }
    storages[key] = in.take(size);
  }
  if (in.left() != 0) {
    in.refuse(in.left(), " bytes behind the last storage");
  }
  WeightFile file{.name = name, .format = "pth (legacy)", .tensors = {}, .left_out = {}};
  const auto find = [&](const std::string& key) {
    const auto found = storages.find(key);
    if (found == storages.end()) {
      in.refuse("the storage '", key, "' is missing");
    }
    return found->second;
  };
  Collector(object, in, find, bytes.size(), file).collect(state_dict_of(object), "", 0);
  return file;
}

}  // namespace gle
