#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// The whole of a regular file. ErrorCode::io if it cannot be read.
std::vector<std::byte> read_file(const std::string& path);

// Writes the parts one after the other to a temporary file beside `path`, makes sure that they are on the disk, and
// renames it: there is the old file or the new one, never a half. ErrorCode::io if it cannot.
void write_file(const std::string& path, std::initializer_list<Bytes> parts);

// CRC-32 as in zip and PNG.
uint32_t crc32(Bytes bytes);

}  // namespace gle
