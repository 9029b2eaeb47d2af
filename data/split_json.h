#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gle::data {

struct SplitEntry {
  enum class Role { train, query, gallery };
  Role role = Role::train;
  std::string path;
  int64_t id = 0;
  int64_t camera = 0;
};

// The first split of a file as torchreid writes it: [{"train": [[path, id, camera], ...], "query": ..., "gallery": ...,
// counts ...}, ...]. Throws ErrorCode::data with the byte for anything else, a key given twice, a list missing.
std::vector<SplitEntry> read_split_json(std::span<const uint8_t> text, const std::string& name);

}  // namespace gle::data
