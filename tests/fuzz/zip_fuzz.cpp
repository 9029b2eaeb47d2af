#include "models/files/zip.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    gle::ZipArchive archive(gle::fuzz::bytes_of(data, size), "x");
    for (const gle::ZipEntry& entry : archive.entries()) {
      try {
        (void)archive.read(entry);
      } catch (const gle::Error&) {  // the next entry may be sound
      }
    }
  });
}
