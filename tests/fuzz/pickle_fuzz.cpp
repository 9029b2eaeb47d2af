#include "models/files/pickle.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    gle::ByteReader in(gle::fuzz::bytes_of(data, size), "x");
    (void)gle::Pickle(in, size % 2 == 0 ? gle::Pickle::Names::tensors : gle::Pickle::Names::torchscript);
  });
}
