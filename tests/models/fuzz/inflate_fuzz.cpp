#include "engine/bytes/inflate.h"

#include "tests/models/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::run(data, size, [](gle::Bytes bytes) {
    const std::span<const uint8_t> octets(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    (void)gle::inflate({octets, bytes.size() * 4, "x", gle::ErrorCode::weights});
  });
}
