#include "models/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gle {

namespace {

class Descriptor {
 public:
  Descriptor(int fd, const std::string& path, const char* action) : fd_(fd) {
    if (fd_ < 0) {
      fail(ErrorCode::io, path, ": cannot ", action, ": ", std::strerror(errno));
    }
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  // Without O_NONBLOCK a pipe in a file's place would wait for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(ErrorCode::io, path, ": not a regular file");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      fail(ErrorCode::io, path, ": cannot read: ", count < 0 ? std::strerror(errno) : "the file shrank meanwhile");
    }
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace gle
