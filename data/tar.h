#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/files.h"

namespace gle::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Fills all of `out` from the archive's byte `offset` on; false if there are not that many.
using ReadAt = std::function<bool(uint64_t offset, std::span<uint8_t> out)>;

// The regular files of a tar archive (ustar, GNU long names, pax paths and sizes) of `size` bytes, in order. Links,
// folders and devices are left out. Throws ErrorCode::data for a bad check sum, a member or its padding that reaches
// beyond the end, or a path that path_problem() objects to.
std::vector<TarMember> read_tar_index(const ReadAt& read, uint64_t size, const std::string& name);

// A tar file whose members are read in place; one that is gzipped is unpacked in memory. Safe to read from several
// threads.
class TarShard {
 public:
  static constexpr size_t kMostUnpackedBytes = size_t{4} << 30;

  TarShard(const Folder& folder, const std::string& relative);
  ~TarShard();
  TarShard(const TarShard&) = delete;
  TarShard& operator=(const TarShard&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<TarMember>& members() const { return members_; }
  // Whether it ends as tar ends archives, with an empty block: else members may have been cut off.
  bool is_closed() const;
  void read(const TarMember& member, size_t limit, Bytes& bytes) const;

 private:
  bool read_at(uint64_t offset, std::span<uint8_t> out) const;

  std::string name_;
  int file_ = -1;
  Bytes unpacked_;
  std::vector<TarMember> members_;
};

}  // namespace gle::data
