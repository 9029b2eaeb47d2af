#include "data/mat5.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::data, [&] { gle::data::read_mat5({data, size}, "fuzz.mat"); });
}
