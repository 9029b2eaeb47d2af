// What a model's file says of its network.
#include "models/model_file.h"

#include "tests/fuzz/fuzz.h"

namespace {

gle::WeightFile file_with(std::map<std::string, std::string> metadata) {
  return {.name = "x", .format = "safetensors", .tensors = {}, .left_out = {}, .metadata = std::move(metadata)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return gle::fuzz::only(gle::ErrorCode::weights, [&] {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto metadata = gle::metadata_of(gle::description_of(file_with({{"gle", text}})));
    gle::invariant(gle::metadata_of(gle::description_of(file_with(metadata))) == metadata, "it does not come back");
  });
}
