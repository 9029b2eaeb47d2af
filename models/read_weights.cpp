#include "models/files/checkpoint_file.h"
#include "models/files/file.h"
#include "models/files/npy.h"
#include "models/files/pth.h"
#include "models/files/safetensors.h"
#include "models/files/sha256.h"
#include "models/files/zip.h"
#include "models/weights.h"

namespace gle {

namespace {

WeightFile from_npz(const Npz& npz, const std::string& name) {
  WeightFile file{.name = name, .format = "npz", .tensors = {}, .left_out = {}};
  for (const auto& [key, array] : npz.arrays()) {
    if (array.kind == 'f') {
      file.tensors.push_back({key, array.shape, array.floats()});
    } else {
      file.left_out.push_back(key);
    }
  }
  return file;
}

}  // namespace

WeightFile parse_weights(Bytes bytes, const std::string& name) {
  require_sha256_of_name(bytes, name);
  if (looks_like_checkpoint(bytes)) {
    WeightFile file = parse_safetensors(section(parse_checkpoint(bytes, name), kWeightsSection, name), name);
    file.format = "checkpoint";
    return file;
  }
  if (looks_like_legacy_pth(bytes)) {
    return parse_legacy_pth(bytes, name);
  }
  // The length of a safetensors header may begin with the byte of a pickle.
  const bool safetensors = bytes.size() > 8 && bytes[8] == std::byte{'{'};
  if (!safetensors && !bytes.empty() && bytes[0] == std::byte{0x80}) {
    fail(ErrorCode::weights, name,
         ": a bare pickle, not a file of torch.save: it may hold code and is not read. If you trust it, load it with "
         "PyTorch and save its state_dict");
  }
  if (safetensors) {
    return parse_safetensors(bytes, name);
  }
  if (!ZipArchive::looks_like_zip(bytes)) {
    fail(ErrorCode::weights, name,
         ": is not a file of weights; read are .gle, .safetensors, .pth and TorchScript of PyTorch, and .npz, told "
         "apart by what is in them");
  }
  ZipArchive archive(bytes, name);
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.ends_with(".npy")) {
      return from_npz(Npz::parse(bytes, name), name);
    }
  }
  return parse_pth_zip(archive, bytes.size(), name);
}

WeightFile read_weights(const std::string& path) { return parse_weights(read_file(path), path); }

}  // namespace gle
