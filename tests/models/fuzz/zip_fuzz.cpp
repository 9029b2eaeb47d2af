#include "models/files/zip.h"

#include "tests/models/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::run(data, size, [](gle::Bytes bytes) {
    gle::ZipArchive archive(bytes, "x");
    for (const gle::ZipEntry& entry : archive.entries()) {
      try {
        (void)archive.read(entry);
      } catch (const gle::Error&) {  // the next entry may be sound
      }
    }
  });
}
