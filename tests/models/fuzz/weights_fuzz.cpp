#include "models/weights.h"

#include "tests/models/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::run(data, size, [](gle::Bytes bytes) { (void)gle::parse_weights(bytes, "x"); });
}
