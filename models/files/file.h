#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// The whole of a regular file. ErrorCode::io if it cannot be read.
std::vector<std::byte> read_file(const std::string& path);

}  // namespace gle
