#pragma once

#include <string>

#include "models/weights.h"

namespace gle {

class ZipArchive;

// A .pth of PyTorch 1.6 or later, or a TorchScript archive: pickles and storages in a zip.
WeightFile parse_pth_zip(ZipArchive& archive, size_t file_bytes, const std::string& name);

// A .pth from before 1.6: five pickles in a row, then the storages.
bool looks_like_legacy_pth(Bytes bytes);
WeightFile parse_legacy_pth(Bytes bytes, const std::string& name);

}  // namespace gle
