#include "data/tar.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "engine/bytes/inflate.h"
#include "engine/error.h"

namespace gle::data {

namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMostNameBytes = 1 << 16;
constexpr size_t kMostMembers = 50'000'000;

using Block = std::array<uint8_t, kBlock>;

std::string text_of(std::span<const uint8_t> field) {
  return {field.begin(), std::find(field.begin(), field.end(), 0)};
}

// Octal digits between blanks, or GNU's base 256 with the top bit set. False: neither.
bool number_of(std::span<const uint8_t> field, uint64_t& value) {
  value = 0;
  if ((field[0] & 0x80) != 0) {
    for (size_t i = 0; i < field.size(); ++i) {
      if (value >> 55 != 0) {
        return false;
      }
      value = value << 8 | (i == 0 ? field[i] & 0x7F : field[i]);
    }
    return true;
  }
  size_t i = 0;
  while (i < field.size() && field[i] == ' ') {
    ++i;
  }
  for (; i < field.size() && field[i] >= '0' && field[i] <= '7'; ++i) {
    value = value << 3 | static_cast<uint64_t>(field[i] - '0');
  }
  return i == field.size() || field[i] == ' ' || field[i] == 0;
}

bool is_empty(const Block& block) {
  return std::ranges::all_of(block, [](uint8_t b) { return b == 0; });
}

bool check_sum_holds(const Block& block) {
  uint64_t stored = 0;
  if (!number_of(std::span(block).subspan(148, 8), stored)) {
    return false;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : block[i];
  }
  return sum == stored;
}

// "27 path=some/long/name\n" records.
bool read_pax(std::string_view text, std::string& path, uint64_t& size, bool& has_size) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (problem != std::errc() || digits + 2 > length || length > text.size() || *end != ' ' ||
        text[length - 1] != '\n') {
      return false;
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    if (record.starts_with("path=")) {
      path = record.substr(5);
    } else if (record.starts_with("size=")) {
      const auto [stop, bad] = std::from_chars(record.data() + 5, record.data() + record.size(), size);
      if (bad != std::errc() || stop != record.data() + record.size()) {
        return false;
      }
      has_size = true;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string name_in(const Block& block) {
  const std::string name = text_of(std::span(block).first(100));
  const bool ustar = std::memcmp(block.data() + 257, "ustar\0", 6) == 0;
  const std::string prefix = ustar ? text_of(std::span(block).subspan(345, 155)) : "";
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

std::vector<TarMember> read_tar_index(const ReadAt& read, uint64_t size, const std::string& name) {
  std::vector<TarMember> members;
  std::string long_name;
  uint64_t long_size = 0;
  bool has_long_size = false;
  uint64_t at = 0;
  Block block;
  while (true) {
    if (at == size && at > 0) {
      return members;  // without the closing empty blocks, as some writers leave it
    }
    if (size - at < kBlock || !read(at, block)) {
      fail(ErrorCode::data, name, ": cut off at byte ", at, ", where a tar header was expected");
    }
    if (is_empty(block)) {
      return members;
    }
    uint64_t bytes = 0;
    if (!check_sum_holds(block) || !number_of(std::span(block).subspan(124, 12), bytes)) {
      fail(ErrorCode::data, name, ": no valid tar header at byte ", at);
    }
    const auto kind = static_cast<char>(block[156]);
    at += kBlock;
    const bool about_next = kind == 'x' || kind == 'L' || kind == 'g' || kind == 'K';
    if (has_long_size && !about_next) {
      bytes = long_size;
    }
    if (bytes > size - at) {
      fail(ErrorCode::data, name, ": member '", name_in(block), "' of ", bytes, " bytes reaches beyond the end");
    }
    if (kind == 'x' || kind == 'L') {
      if (bytes > kMostNameBytes) {
        fail(ErrorCode::data, name, ": an extended header of ", bytes, " bytes");
      }
      std::string text(bytes, '\0');
      if (!read(at, std::span(reinterpret_cast<uint8_t*>(text.data()), text.size()))) {
        fail(ErrorCode::data, name, ": cut off at byte ", at);
      }
      if (kind == 'L') {
        long_name = text.substr(0, text.find('\0'));
      } else if (!read_pax(text, long_name, long_size, has_long_size)) {
        fail(ErrorCode::data, name, ": a malformed extended header at byte ", at);
      }
    } else if (!about_next) {
      if (kind == '0' || kind == '\0' || kind == '7') {
        std::string path = long_name.empty() ? name_in(block) : long_name;
        path.erase(0, path.starts_with("./") ? 2 : 0);
        const std::string problem = path_problem(path);
        if (!problem.empty()) {
          fail(ErrorCode::data, name, ": member at byte ", at - kBlock, " has ", problem);
        }
        if (members.size() == kMostMembers) {
          fail(ErrorCode::data, name, ": more than ", kMostMembers, " members");
        }
        members.push_back({std::move(path), at, bytes});
      }
      long_name.clear();
      has_long_size = false;
    }
    const uint64_t padded = (bytes + kBlock - 1) / kBlock * kBlock;
    if (padded > size - at) {
      fail(ErrorCode::data, name, ": cut off at byte ", size, ", in the padding of member '", name_in(block),
           "'; copy or make the archive again");
    }
    at += padded;
  }
}

TarShard::TarShard(const Folder& folder, const std::string& relative) : name_(folder.path() + "/" + relative) {
  uint64_t size = 0;
  file_ = folder.open(relative, size);
  std::array<uint8_t, 2> magic{};
  if (size >= 2 && read_at(0, magic) && magic[0] == 0x1F && magic[1] == 0x8B) {
    ::close(std::exchange(file_, -1));
    Bytes packed;
    folder.read(relative, kMostUnpackedBytes, packed);
    unpacked_ = inflate_gzip({.bytes = packed, .most = kMostUnpackedBytes, .name = name_, .code = ErrorCode::data});
    size = unpacked_.size();
  }
  try {
    members_ =
        read_tar_index([this](uint64_t offset, std::span<uint8_t> out) { return read_at(offset, out); }, size, name_);
  } catch (...) {
    if (file_ >= 0) {
      ::close(file_);
    }
    throw;
  }
}

TarShard::~TarShard() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

bool TarShard::read_at(uint64_t offset, std::span<uint8_t> out) const {
  if (file_ < 0) {
    if (offset > unpacked_.size() || out.size() > unpacked_.size() - offset) {
      return false;
    }
    std::copy_n(unpacked_.data() + offset, out.size(), out.data());
    return true;
  }
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(file_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    done += static_cast<size_t>(got);
  }
  return true;
}

bool TarShard::is_closed() const {
  struct stat found {};
  const uint64_t size = file_ < 0                     ? unpacked_.size()
                        : ::fstat(file_, &found) == 0 ? static_cast<uint64_t>(found.st_size)
                                                      : 0;
  Block last;
  return size >= kBlock && read_at(size - kBlock, last) && is_empty(last);
}

void TarShard::read(const TarMember& member, size_t limit, Bytes& bytes) const {
  if (member.size > limit) {
    fail(ErrorCode::data, name_, ": member '", member.name, "' has ", member.size, " bytes; the limit is ", limit);
  }
  bytes.resize(member.size);
  if (!read_at(member.offset, bytes)) {
    fail(ErrorCode::data, name_, ": member '", member.name, "' cannot be read: the file became shorter");
  }
}

}  // namespace gle::data
