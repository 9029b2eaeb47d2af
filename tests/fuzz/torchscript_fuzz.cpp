#include "tests/fuzz/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::read_archive(data, size, {"a/data.pkl", "a/constants.pkl", "a/data/0", "a/data/1", "a/byteorder"});
}
