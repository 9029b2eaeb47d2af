#include "engine/bytes/inflate.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    (void)gle::inflate({{data, size}, size * 4, "x", gle::ErrorCode::weights});
  });
}
