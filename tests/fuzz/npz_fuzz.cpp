#include "tests/fuzz/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::read_archive(data, size, {"weight.npy", "bias.npy", "steps.npy"});
}
