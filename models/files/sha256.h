#pragma once

#include <string>
#include <string_view>

#include "models/files/byte_reader.h"

namespace gle {

// The 32 bytes of FIPS 180-4.
std::string sha256(std::string_view bytes);
// The same as 64 lower-case digits.
std::string sha256_digits(Bytes bytes);

// Throws ErrorCode::weights unless the bytes have this SHA-256, or one that begins with it. `name` is the file's.
void require_sha256(Bytes bytes, const std::string& beginning, const std::string& name);

// The same for a file that tells, as published ones do: "resnet50-19c8e357.pth". Digits alone may be a date.
void require_sha256_of_name(Bytes bytes, const std::string& name);

}  // namespace gle
