#include "models/files/zip.h"

#include <algorithm>
#include <utility>

#include "engine/bytes/inflate.h"
#include "models/files/file.h"

namespace gle {

namespace {

std::span<const uint8_t> octets(Bytes bytes) { return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}; }

constexpr uint32_t kLocal = 0x04034b50;
constexpr uint32_t kCentral = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kZip64End = 0x06064b50;
constexpr uint32_t kZip64Locator = 0x07064b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kMostComment = 0xFFFF;
constexpr uint64_t kMostEntries = 100'000;
constexpr uint64_t kMostRatio = 1000;
constexpr uint16_t kEncrypted = 1U << 0;
constexpr uint16_t kSizesFollow = 1U << 3;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint32_t kSee64 = 0xFFFFFFFF;

// Replaces those numbers that say "too big for 32 bits" by the ones of the zip64 extra field, which has them in order.
void read_zip64_extra(Bytes extra, const std::string& name, std::initializer_list<uint64_t*> numbers) {
  ByteReader in(extra, name);
  while (in.left() >= 4) {
    const uint16_t kind = in.u16();
    ByteReader field(in.take(in.u16()), name);
    if (kind != 1) {
      continue;
    }
    for (uint64_t* number : numbers) {
      if (*number == kSee64) {
        *number = field.u64();
      }
    }
    return;
  }
}

}  // namespace

bool ZipArchive::looks_like_zip(Bytes bytes) { return bytes.size() >= 4 && ByteReader(bytes, "").u32() == kLocal; }

ZipArchive::ZipArchive(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  read_directory(find_directory());
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const ZipEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

ZipArchive::Directory ZipArchive::find_directory() const {
  ByteReader in(bytes_, name_);
  if (bytes_.size() < kEndBytes) {
    in.refuse("not a zip archive: only ", bytes_.size(), " bytes");
  }
  const size_t last = bytes_.size() - kEndBytes;
  const size_t first = last - std::min(last, kMostComment);
  for (size_t at = last + 1; at-- > first;) {
    in.seek(at);
    if (in.u32() != kEnd) {
      continue;
    }
    const uint16_t disk = in.u16();
    const uint16_t directory_disk = in.u16();
    const uint16_t here = in.u16();
    Directory directory{};
    directory.entries = in.u16();
    directory.bytes = in.u32();
    directory.offset = in.u32();
    if (at + kEndBytes + in.u16() != bytes_.size()) {
      continue;  // the four bytes stand inside a comment
    }
    if (directory.entries == 0xFFFF || directory.bytes == kSee64 || directory.offset == kSee64 ||
        (at >= kLocatorBytes && ByteReader(bytes_.subspan(at - kLocatorBytes), name_).u32() == kZip64Locator)) {
      return find_zip64_directory(at);
    }
    if (disk != 0 || directory_disk != 0 || here != directory.entries) {
      in.refuse("zip archives of several parts are not supported");
    }
    return directory;
  }
  in.refuse("no zip directory at the end: the file is cut short, or not a zip archive");
}

ZipArchive::Directory ZipArchive::find_zip64_directory(size_t end_record) const {
  ByteReader in(bytes_, name_);
  if (end_record < kLocatorBytes) {
    in.refuse("the zip64 directory is missing");
  }
  in.seek(end_record - kLocatorBytes);
  const uint32_t locator = in.u32();
  const uint32_t disk = in.u32();
  const uint64_t offset = in.u64();
  if (locator != kZip64Locator || disk != 0 || in.u32() > 1) {
    in.refuse("the zip64 directory is missing or in another part");
  }
  in.seek(offset);
  if (in.u32() != kZip64End) {
    in.refuse("the zip64 directory is not where it should be, at ", offset);
  }
  (void)in.u64();  // size of this record
  (void)in.u32();  // versions
  const bool one_part = in.u32() == 0 && in.u32() == 0;
  const uint64_t here = in.u64();
  Directory directory{};
  directory.entries = in.u64();
  directory.bytes = in.u64();
  directory.offset = in.u64();
  if (!one_part || here != directory.entries) {
    in.refuse("zip archives of several parts are not supported");
  }
  return directory;
}

void ZipArchive::read_directory(const Directory& directory) {
  ByteReader in(bytes_, name_);
  in.seek(directory.offset);
  ByteReader central(in.take(directory.bytes), name_);
  if (directory.entries > kMostEntries || directory.entries > directory.bytes / 46) {
    in.refuse("the zip directory of ", directory.bytes, " bytes claims ", directory.entries, " entries, at most ",
              kMostEntries, " are read");
  }
  entries_.reserve(static_cast<size_t>(directory.entries));
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    uint64_t begin = 0;
    uint64_t end = 0;
    entries_.push_back(read_local(central, begin, end));
    if (end > directory.offset) {
      in.refuse("entry '", entries_.back().name, "' reaches into the zip directory");
    }
    places.emplace_back(begin, end);
  }
  if (central.left() != 0) {
    in.refuse(central.left(), " bytes of the zip directory belong to no entry");
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second) {
      in.refuse("two entries overlap at ", places[i].first);
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].name == entries_[i - 1].name) {
      in.refuse("two entries have the name '", entries_[i].name, "'");
    }
  }
}

// One entry of the directory and the header in front of its data, which must agree.
ZipEntry ZipArchive::read_local(ByteReader& central, uint64_t& begin, uint64_t& end) const {
  if (central.u32() != kCentral) {
    central.refuse("damaged zip directory at ", central.position() - 4);
  }
  (void)central.u32();  // versions
  const uint16_t flags = central.u16();
  const uint16_t method = central.u16();
  (void)central.u32();  // time
  ZipEntry entry;
  entry.crc = central.u32();
  uint64_t packed = central.u32();
  entry.size = central.u32();
  const uint16_t name_bytes = central.u16();
  const uint16_t extra_bytes = central.u16();
  const uint16_t comment_bytes = central.u16();
  (void)central.u64();  // part, attributes
  uint64_t offset = central.u32();
  entry.name = central.text(name_bytes);
  read_zip64_extra(central.take(extra_bytes), name_, {&entry.size, &packed, &offset});
  (void)central.take(comment_bytes);

  if ((flags & kEncrypted) != 0) {
    central.refuse("entry '", entry.name, "' is encrypted");
  }
  if (method != kStored && method != kDeflated) {
    central.refuse("entry '", entry.name, "' is packed by method ", method, "; only stored and deflated are read");
  }
  entry.deflated = method == kDeflated;
  if (entry.deflated ? entry.size / kMostRatio > packed : entry.size != packed) {
    central.refuse("entry '", entry.name, "' claims ", entry.size, " bytes in ", packed);
  }

  ByteReader local(bytes_, name_);
  local.seek(offset);
  begin = offset;
  if (local.u32() != kLocal) {
    local.refuse("entry '", entry.name, "' is not where the directory says, at ", offset);
  }
  (void)local.u16();  // version
  const uint16_t local_flags = local.u16();
  const uint16_t local_method = local.u16();
  (void)local.u32();  // time
  const uint32_t local_crc = local.u32();
  uint64_t local_packed = local.u32();
  uint64_t local_size = local.u32();
  const uint16_t local_name_bytes = local.u16();
  const uint16_t local_extra_bytes = local.u16();
  const std::string_view local_name = local.text(local_name_bytes);
  read_zip64_extra(local.take(local_extra_bytes), name_, {&local_size, &local_packed});
  const bool sizes_agree = local_size == entry.size && local_packed == packed && local_crc == entry.crc;
  if (local_name != entry.name || local_method != method || local_flags != flags ||
      (!sizes_agree && (flags & kSizesFollow) == 0)) {
    local.refuse("entry '", entry.name, "': the directory and the entry's own header disagree");
  }
  entry.packed = local.take(packed);
  end = local.position();
  return entry;
}

Bytes ZipArchive::read(const ZipEntry& entry) {
  Bytes contents = entry.packed;
  if (entry.deflated) {
    unpacked_.push_back(inflate({.bytes = octets(entry.packed),
                                 .most = static_cast<size_t>(entry.size),
                                 .name = name_ + "/" + entry.name,
                                 .code = ErrorCode::weights}));
    contents = std::as_bytes(std::span(unpacked_.back()));
  }
  if (contents.size() != entry.size || crc32(octets(contents)) != entry.crc) {
    fail(ErrorCode::weights, name_, ": entry '", entry.name, "' is damaged: its size or CRC-32 does not fit");
  }
  return contents;
}

}  // namespace gle
