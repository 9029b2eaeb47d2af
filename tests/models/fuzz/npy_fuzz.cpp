#include "models/files/npy.h"

#include "tests/models/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::run(data, size, [](gle::Bytes bytes) {
    const gle::NpyArray array = gle::parse_npy(bytes, "x");
    (void)(array.kind == 'U' ? array.strings().size() : array.doubles().size());
  });
}
