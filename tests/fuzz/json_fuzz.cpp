#include "data/split_json.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::data, [&] { gle::data::read_split_json({data, size}, "fuzz.json"); });
}
