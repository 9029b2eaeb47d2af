#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gle {

// An event file of TensorBoard: records with masked CRC-32C of length and content, of which the last may be torn.
class EventFile {
 public:
  // events.out.tfevents.<time>.<host>.<pid>.0 in `folder`. `begin`: TensorBoard forgets what earlier files of a resumed
  // run say of steps from there on.
  EventFile(const std::filesystem::path& folder, int64_t begin);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  void flush();

 private:
  void write(int64_t step, const std::string& what);

  std::FILE* file_;
};

}  // namespace gle
