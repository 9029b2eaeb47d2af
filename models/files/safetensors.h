#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/weights.h"

namespace gle {

// The format's own rules are all checked: a header of at most 16 MiB, no name twice, data in order without holes or
// overlaps to the end of the file, sizes that fit the shapes.
WeightFile parse_safetensors(Bytes bytes, const std::string& name);

// All tensors as F32, in their order. `metadata` goes into the header's __metadata__.
void write_safetensors(const std::string& path, const std::vector<WeightTensor>& tensors,
                       const std::map<std::string, std::string>& metadata);
// The file as write_safetensors() writes it.
std::vector<std::byte> format_safetensors(const std::vector<WeightTensor>& tensors,
                                          const std::map<std::string, std::string>& metadata);

}  // namespace gle
