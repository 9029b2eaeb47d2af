// The files of a folder, each begun by two bytes of length: meta.json, ids.csv, and the rest is embeddings.npy.
// Checksums of 0 in meta.json are made right first: else nothing would get past them.
#include "retrieval/embedding_folder.h"

#include <nlohmann/json.hpp>
#include <string>

#include "models/files/crc32c.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::span<const std::byte> take(std::span<const std::byte>& input) {
  if (input.size() < 2) {
    return {};
  }
  const size_t wanted = std::to_integer<size_t>(input[0]) + std::to_integer<size_t>(input[1]) * 256;
  input = input.subspan(2);
  const std::span<const std::byte> taken = input.first(std::min(wanted, input.size()));
  input = input.subspan(taken.size());
  return taken;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> input = gle::fuzz::bytes_of(data, size);
  const std::span<const std::byte> given = take(input);
  const std::span<const std::byte> ids = take(input);
  std::string meta(reinterpret_cast<const char*>(given.data()), given.size());
  nlohmann::json json = nlohmann::json::parse(meta, nullptr, false);
  if (json.is_object()) {
    for (const auto& [key, bytes] : {std::pair("embeddings", input), std::pair("ids", ids)}) {
      if (json.contains(key) && json[key] == 0) {
        json[key] = gle::crc32c(bytes);
      }
    }
    meta = json.dump();
  }
  return gle::fuzz::only(gle::ErrorCode::data, [&] {
    const gle::EmbeddingFolder folder =
        gle::EmbeddingFolder::parse({std::as_bytes(std::span(meta)), input, ids}, "folder");
    const gle::Embeddings rows = folder.view();
    gle::invariant(rows.rows == std::ssize(folder.items), "rows without items");
    gle::invariant(static_cast<size_t>(rows.rows * rows.dimensions) == folder.array.elements(), "rows out of bounds");
  });
}
