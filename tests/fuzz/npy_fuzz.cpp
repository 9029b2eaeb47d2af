#include "models/files/npy.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    const gle::NpyArray array = gle::parse_npy(gle::fuzz::bytes_of(data, size), "x");
    (void)(array.kind == 'U' ? array.strings().size() : array.doubles().size());
  });
}
