#include "models/files/atomic_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "engine/error.h"

namespace gle {

namespace {

[[noreturn]] void fail_io(const char* doing, const std::filesystem::path& path) {
  const int reason = errno;
  fail(ErrorCode::io, path.string(), ": ", doing, " failed: ", std::strerror(reason));
}

template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) {
    result = call();
  }
  return result;
}

// A file that does not outlive a failure.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)),
        descriptor_(
            uninterrupted([&] { return open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644); })) {
    if (descriptor_ == -1) {
      fail_io("creating", path_);
    }
  }
  ~TemporaryFile() {
    if (descriptor_ != -1) {
      ::close(descriptor_);
    }
    if (!renamed_) {
      unlink(path_.c_str());
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void require_space(size_t bytes) const {
    struct statvfs disk {};
    if (fstatvfs(descriptor_, &disk) != 0) {
      return;  // what cannot be asked shows when writing
    }
    const size_t free_bytes = static_cast<size_t>(disk.f_bavail) * disk.f_frsize;
    if (free_bytes < bytes) {
      fail(ErrorCode::io, path_.string(), ": the disk has ", free_bytes, " bytes left, ", bytes,
           " are needed: ", bytes - free_bytes, " are missing");
    }
  }

  void write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = uninterrupted([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
      if (written < 0) {
        fail_io("writing", path_);
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void sync_and_rename(const std::filesystem::path& to) {
    if (uninterrupted([&] { return fsync(descriptor_); }) != 0) {
      fail_io("syncing", path_);
    }
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0 && errno != EINTR) {
      fail_io("closing", path_);
    }
    if (rename(path_.c_str(), to.c_str()) != 0) {
      fail_io("renaming", path_);
    }
    renamed_ = true;
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
  bool renamed_ = false;
};

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = uninterrupted([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor == -1) {
    fail_io("opening", folder);
  }
  const int result = uninterrupted([&] { return fsync(descriptor); });
  const int reason = errno;
  ::close(descriptor);
  if (result != 0) {
    errno = reason;
    fail_io("syncing", folder);
  }
}

}  // namespace

void write_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  TemporaryFile file(temporary);
  size_t total = 0;
  for (const auto& piece : pieces) {
    total += piece.size();
  }
  file.require_space(total);
  for (const auto& piece : pieces) {
    file.write(piece);
  }
  file.sync_and_rename(path);
  sync_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

}  // namespace gle
