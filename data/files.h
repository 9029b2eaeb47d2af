#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gle::data {

using Bytes = std::vector<uint8_t>;

// Whether a data set's lists and symbolic links may lead out of its folder.
enum class Outside { refuse, allow };

inline constexpr size_t kMostListBytes = size_t{256} << 20;
inline constexpr size_t kMostImageBytes = size_t{256} << 20;

// What is wrong with a path that a list gives: absolute, with `..`, too long, with bytes that no name has. Empty: none.
std::string path_problem(std::string_view path);

// Images that are counted, not opened, within a limit of names to look at: what lies in a folder may be a whole disk.
struct ImageCount {
  size_t images = 0;
  size_t names_left = 100'000;
  // "12", or "at least 12" if no names are left.
  std::string text() const;
};

// A folder whose files are read by relative paths. What is opened is a regular file inside of the folder (after all
// symbolic links); anything else throws ErrorCode::data, and opening never blocks, whatever the name leads to.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& path, Outside outside = Outside::refuse);

  const std::string& path() const { return path_; }
  Outside outside() const { return outside_; }
  // Replaces `bytes` with the file's. Throws ErrorCode::data if it is missing, unsafe, larger than `limit` or shrinks
  // meanwhile, ErrorCode::io if the system fails to read it.
  void read(const std::string& relative, size_t limit, Bytes& bytes) const;
  // An open descriptor, checked as above, and the file's size. The caller closes it.
  int open(const std::string& relative, uint64_t& size) const;
  bool has_file(const std::string& relative) const;
  bool has_folder(const std::string& relative) const;
  // Names in a subfolder ("" for this one), sorted; folders or regular files (links to them too). Folders that begin
  // with '.' are left out.
  struct Names {
    std::vector<std::string> folders;
    std::vector<std::string> files;
  };
  Names names(const std::string& relative) const;
  std::vector<std::string> folders(const std::string& relative) const { return names(relative).folders; }
  std::vector<std::string> files(const std::string& relative) const { return names(relative).files; }
  // Adds the images in a subfolder and, but for links, in all folders below it. What cannot be listed counts as empty.
  void count_images(const std::string& relative, ImageCount& count) const;

 private:
  std::string full(const std::string& relative) const;

  std::string path_;
  std::string real_;  // without symbolic links
  Outside outside_;
};

// Whether a name ends in an image's extension: .jpg .jpeg .png .bmp, in any case.
bool has_image_extension(std::string_view name);
// The other extensions that image folders hold: .ppm .pgm .tif .tiff .webp .gif.
bool has_unread_image_extension(std::string_view name);

// One line of a list, for messages that say where.
struct ListLine {
  int number = 0;
  std::string_view text;
};

// A list's lines that are not blank, without line ends and without a byte order mark. Throws ErrorCode::data if the
// text holds NUL bytes. The views refer to `text`.
std::vector<ListLine> lines_of(std::span<const uint8_t> text, const std::string& name);
// Fields between blanks.
std::vector<std::string_view> fields_of(std::string_view line);
// A whole number, or ErrorCode::data with "name:line".
int64_t whole_number(std::string_view text, const std::string& name, int line);

}  // namespace gle::data
