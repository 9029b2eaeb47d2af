#include "models/files/pickle.h"

#include "tests/models/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::run(data, size, [](gle::Bytes bytes) {
    gle::ByteReader in(bytes, "x");
    (void)gle::Pickle(in, bytes.size() % 2 == 0 ? gle::Pickle::Names::tensors : gle::Pickle::Names::torchscript);
  });
}
