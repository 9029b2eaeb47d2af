#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/error.h"

namespace gle::data {

namespace {

namespace fs = std::filesystem;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
};

std::string reason() { return std::generic_category().message(errno); }

// The path of what is open, which no later change of links can turn into another file.
std::string real_path_of(int fd) {
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : std::string();
}

bool inside(const std::string& path, const std::string& folder) {
  return folder == "/" || (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

template <size_t n>
bool ends_in(std::string_view name, const std::array<std::string_view, n>& extensions) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return false;
  }
  std::string extension(name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

}  // namespace

std::string path_problem(std::string_view path) {
  if (path.empty()) {
    return "an empty path";
  }
  if (path.size() >= PATH_MAX) {
    return "a path of " + std::to_string(path.size()) + " bytes";
  }
  if (path.front() == '/') {
    return "an absolute path; paths must be relative to the data set's folder";
  }
  if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; })) {
    return "a path with control characters";
  }
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    if (path.substr(at, slash - at) == "..") {
      return "a path that climbs out by '..'";
    }
    at = slash + 1;
  }
  return "";
}

Folder::Folder(const fs::path& path, Outside outside) : path_(path.string()), outside_(outside) {
  std::error_code problem;
  const fs::path real = fs::canonical(path, problem);
  if (problem) {
    fail(ErrorCode::data, path_, ": ", problem.message(), "; expected the data set's folder");
  }
  if (!fs::is_directory(real)) {
    fail(ErrorCode::data, path_, ": not a folder");
  }
  real_ = real.string();
}

std::string Folder::full(const std::string& relative) const {
  return relative.empty()          ? path_
         : relative.front() == '/' ? relative
                                   : path_ + (path_.ends_with('/') ? "" : "/") + relative;
}

int Folder::open(const std::string& relative, uint64_t& size) const {
  const std::string name = full(relative);
  if (outside_ == Outside::refuse) {
    const std::string problem = path_problem(relative);
    if (!problem.empty()) {
      fail(ErrorCode::data, name, ": ", problem);
    }
  }
  // Without blocking: a pipe would wait for its writer.
  Descriptor file{::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (file.fd < 0) {
    fail(ErrorCode::data, name, ": cannot be opened: ", reason());
  }
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) {
    fail(ErrorCode::io, name, ": ", reason());
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::data, name, ": not a regular file");
  }
  if (outside_ == Outside::refuse) {
    const std::string real = real_path_of(file.fd);
    if (!inside(real, real_)) {
      fail(ErrorCode::data, name, ": leads out of the data set's folder, to ", real);
    }
  }
  size = static_cast<uint64_t>(status.st_size);
  return std::exchange(file.fd, -1);
}

void Folder::read(const std::string& relative, size_t limit, Bytes& bytes) const {
  uint64_t size = 0;
  const Descriptor file{open(relative, size)};
  if (size > limit) {
    fail(ErrorCode::data, full(relative), ": ", size, " bytes; the limit is ", limit);
  }
  bytes.resize(size);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail(ErrorCode::io, full(relative), ": ", reason());
    }
    if (got == 0) {
      fail(ErrorCode::data, full(relative), ": became shorter while it was read");
    }
    done += static_cast<size_t>(got);
  }
}

bool Folder::has_file(const std::string& relative) const {
  std::error_code ignored;
  return fs::is_regular_file(full(relative), ignored);
}

bool Folder::has_folder(const std::string& relative) const {
  std::error_code ignored;
  return fs::is_directory(full(relative), ignored);
}

Folder::Names Folder::names(const std::string& relative) const {
  Names names;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(full(relative), problem)) {
    std::error_code ignored;
    std::string name = entry.path().filename().string();
    if (!entry.is_directory(ignored)) {
      names.files.push_back(std::move(name));
    } else if (!name.starts_with('.')) {
      names.folders.push_back(std::move(name));
    }
  }
  if (problem) {
    fail(ErrorCode::data, full(relative), ": ", problem.message());
  }
  std::sort(names.folders.begin(), names.folders.end());
  std::sort(names.files.begin(), names.files.end());
  return names;
}

void Folder::count_images(const std::string& relative, ImageCount& count) const {
  std::error_code problem;
  fs::recursive_directory_iterator at(full(relative), fs::directory_options::skip_permission_denied, problem);
  for (; !problem && at != fs::end(at) && count.names_left > 0; at.increment(problem)) {
    --count.names_left;
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (!at->is_directory(ignored)) {
      count.images += has_image_extension(name) ? 1 : 0;
    } else if (name.starts_with('.')) {
      at.disable_recursion_pending();
    }
  }
}

std::string ImageCount::text() const { return (names_left == 0 ? "at least " : "") + std::to_string(images); }

bool has_image_extension(std::string_view name) {
  return ends_in(name, std::to_array<std::string_view>({"jpg", "jpeg", "png", "bmp"}));
}

bool has_unread_image_extension(std::string_view name) {
  return ends_in(name, std::to_array<std::string_view>({"ppm", "pgm", "tif", "tiff", "webp", "gif"}));
}

std::vector<ListLine> lines_of(std::span<const uint8_t> text, const std::string& name) {
  std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
  if (rest.find('\0') != std::string_view::npos) {
    fail(ErrorCode::data, name, ": holds NUL bytes; expected a text file");
  }
  if (rest.starts_with("\xEF\xBB\xBF")) {
    rest.remove_prefix(3);
  }
  std::vector<ListLine> lines;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.find_first_not_of(" \t") != std::string_view::npos) {
      lines.push_back({number, line});
    }
  }
  return lines;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = line.find_first_not_of(" \t"); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t", end);
  }
  return fields;
}

int64_t whole_number(std::string_view text, const std::string& name, int line) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    fail(ErrorCode::data, name, ":", line, ": expected a whole number, found '", text, "'");
  }
  return value;
}

}  // namespace gle::data
