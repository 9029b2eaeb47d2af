#include "data/images.h"

#include <algorithm>

#include "data/sets/builder.h"
#include "engine/error.h"

namespace gle::data {

namespace {

namespace fs = std::filesystem;

Dataset unlabelled(std::shared_ptr<const Folder> folder, std::span<const std::string> paths) {
  Dataset data;
  data.name = "images";
  data.folder = std::move(folder);
  for (const std::string& path : paths) {
    Item item;
    item.path = path;
    item.label = kNoLabel;
    item.query = item.gallery = true;
    data.items.push_back(std::move(item));
  }
  return data;
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : "."; }

Dataset listed(const fs::path& list, Outside outside) {
  auto folder = std::make_shared<const Folder>(folder_of(list), outside);
  Bytes text;
  folder->read(list.filename().string(), kMostListBytes, text);
  std::vector<std::string> paths;
  for (const ListLine& line : lines_of(text, list.string())) {
    const std::string problem = outside == Outside::refuse ? path_problem(line.text) : "";
    if (!problem.empty()) {
      fail(ErrorCode::data, list.string(), ":", line.number, ": ", problem);
    }
    paths.emplace_back(line.text);
  }
  if (paths.empty()) {
    fail(ErrorCode::data, list.string(), ": names no image");
  }
  return unlabelled(std::move(folder), paths);
}

bool has_class_folders(const Folder& folder, const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return std::ranges::any_of(folder.files(name), has_image_extension); });
}

std::vector<std::string> left_out(const Folder& folder, const Folder::Names& names) {
  std::vector<std::string> warnings;
  ImageCount below;
  for (const std::string& name : names.folders) {
    folder.count_images(name, below);
  }
  if (below.images > 0) {
    warnings.push_back(below.text() + " images in the folders below are left out");
  }
  if (const auto unread = std::ranges::count_if(names.files, has_unread_image_extension); unread > 0) {
    warnings.push_back(unread_warning(static_cast<size_t>(unread)));
  }
  return warnings;
}

}  // namespace

Dataset image_files(std::span<const fs::path> paths) {
  std::vector<std::string> absolute;
  for (const fs::path& path : paths) {
    absolute.push_back(fs::absolute(path).lexically_normal().relative_path().string());
  }
  return unlabelled(std::make_shared<const Folder>("/", Outside::allow), absolute);
}

Dataset load_images_or_dataset(const fs::path& path, const DatasetOptions& options) {
  std::error_code ignored;
  if (options.dataset.empty() && fs::is_regular_file(path, ignored)) {
    if (has_image_extension(path.string())) {
      return image_files(std::span(&path, 1));
    }
    if (path.extension() == ".txt") {
      return listed(path, options.outside);
    }
  }
  if (options.dataset.empty() && fs::is_directory(path, ignored)) {
    auto folder = std::make_shared<const Folder>(path, options.outside);
    const Folder::Names names = folder->names("");
    std::vector<std::string> files = names.files;
    std::erase_if(files, [](const std::string& name) { return !has_image_extension(name); });
    if (!files.empty() && detected_dataset(*folder) == "folders" && !has_class_folders(*folder, names.folders)) {
      Dataset data = unlabelled(folder, files);
      data.warnings = left_out(*folder, names);
      return data;
    }
  }
  return load_dataset(path, options);
}

}  // namespace gle::data
