#include "data/csv.h"
#include "tests/data/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::data::fuzz::expect_data_error([&] { gle::data::read_csv({data, size}, "fuzz.csv"); });
}
