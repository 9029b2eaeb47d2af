// Preloaded into a program: counts its system calls that change files below GLE_FAULT_FOLDER, and lets the one of
// number GLE_FAULT_AT fail with GLE_FAULT_ERRNO, come back short (GLE_FAULT_ERRNO=short), or kill the process there and
// then (GLE_FAULT_ERRNO=kill). How many there were goes to the file GLE_FAULT_COUNT.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls = 0;
std::array<std::atomic<bool>, 4096> watched{};

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool below(const char* path) {
  const char* folder = std::getenv("GLE_FAULT_FOLDER");
  return folder && path && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_watched(int descriptor) {
  return descriptor >= 0 && static_cast<size_t>(descriptor) < watched.size() &&
         watched[static_cast<size_t>(descriptor)];
}

enum class Fault { none, fails, is_short };

// Counts the call and says what becomes of it.
Fault fault() {
  const long number = ++calls;
  const char* at = std::getenv("GLE_FAULT_AT");
  if (!at || number != std::atol(at)) {
    return Fault::none;
  }
  const char* kind = std::getenv("GLE_FAULT_ERRNO");
  if (std::strcmp(kind, "kill") == 0) {
    ::kill(::getpid(), SIGKILL);
  }
  if (std::strcmp(kind, "short") == 0) {
    return Fault::is_short;
  }
  errno = std::atoi(kind);
  return Fault::fails;
}

struct Report {
  ~Report() {
    const char* path = std::getenv("GLE_FAULT_COUNT");
    if (std::FILE* file = path ? std::fopen(path, "w") : nullptr) {
      std::fprintf(file, "%ld\n", calls.load());
      std::fclose(file);
    }
  }
} report;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool changes = below(path) && (flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
  if (changes && fault() == Fault::fails) {
    return -1;
  }
  const int descriptor = next<int(const char*, int, ...)>("open")(path, flags, mode);
  if (below(path) && descriptor >= 0 && static_cast<size_t>(descriptor) < watched.size()) {
    watched[static_cast<size_t>(descriptor)] = true;
  }
  return descriptor;
}

__attribute__((visibility("default"))) ssize_t write(int descriptor, const void* data, size_t bytes) {
  if (is_watched(descriptor)) {
    const Fault what = fault();
    if (what == Fault::fails) {
      return -1;
    }
    bytes = what == Fault::is_short ? (bytes + 1) / 2 : bytes;
  }
  return next<ssize_t(int, const void*, size_t)>("write")(descriptor, data, bytes);
}

__attribute__((visibility("default"))) int fsync(int descriptor) {
  return is_watched(descriptor) && fault() == Fault::fails ? -1 : next<int(int)>("fsync")(descriptor);
}

__attribute__((visibility("default"))) int fdatasync(int descriptor) {
  return is_watched(descriptor) && fault() == Fault::fails ? -1 : next<int(int)>("fdatasync")(descriptor);
}

__attribute__((visibility("default"))) int close(int descriptor) {
  const bool counts = is_watched(descriptor);
  if (counts) {
    watched[static_cast<size_t>(descriptor)] = false;
  }
  const bool fails = counts && fault() == Fault::fails;
  const int reason = errno;
  const int result = next<int(int)>("close")(descriptor);
  if (fails) {
    errno = reason;
  }
  return fails ? -1 : result;
}

__attribute__((visibility("default"))) int rename(const char* from, const char* to) {
  return below(to) && fault() == Fault::fails ? -1 : next<int(const char*, const char*)>("rename")(from, to);
}

__attribute__((visibility("default"))) int link(const char* from, const char* to) {
  return below(to) && fault() == Fault::fails ? -1 : next<int(const char*, const char*)>("link")(from, to);
}

}  // extern "C"
