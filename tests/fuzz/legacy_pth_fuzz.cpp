#include "models/files/pth.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights,
                         [&] { (void)gle::parse_legacy_pth(gle::fuzz::bytes_of(data, size), "x"); });
}
