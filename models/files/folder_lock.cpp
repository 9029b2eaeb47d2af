#include "models/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "engine/error.h"

namespace gle {

namespace {

namespace fs = std::filesystem;

// Takes the lock, or says who has it.
int lock_of(const fs::path& path, const char* what) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (descriptor == -1) {
    fail(ErrorCode::io, path.string(), ": creating failed: ", std::strerror(errno));
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::ifstream(path) >> holder;
    ::close(descriptor);
    fail(ErrorCode::io, path.parent_path().string(), ": ", what, " is in use by process ", holder,
         "; wait for it, or stop it");
  }
  const std::string process = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0 || ::write(descriptor, process.data(), process.size()) < 0) {
    const int reason = errno;
    ::close(descriptor);
    fail(ErrorCode::io, path.string(), ": writing failed: ", std::strerror(reason));
  }
  return descriptor;
}

}  // namespace

void make_folder(const fs::path& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem || !fs::is_directory(path)) {
    fail(ErrorCode::io, path.string(),
         ": making the folder failed: ", problem ? problem.message() : "there is a file of that name");
  }
}

FolderLock::FolderLock(const fs::path& folder, const char* what) : descriptor_(-1) {
  make_folder(folder);
  descriptor_ = lock_of(folder / ".lock", what);
}

// The file stays: to remove it would let two others lock two files of one name.
FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace gle
