#pragma once

#include <filesystem>

namespace gle {

// Makes the folder if it is not there. ErrorCode::io if that fails.
void make_folder(const std::filesystem::path& path);

// One process at a time may hold a folder: kept until it is destroyed, or the process ends in whatever way.
// ErrorCode::io if another has it, which says that `what` is in use.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder, const char* what = "the run");
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace gle
