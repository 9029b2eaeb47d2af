#pragma once

#include <filesystem>
#include <span>

#include "data/dataset.h"

namespace gle::data {

// Pictures without classes: all are queries and gallery, of label kNoLabel.
inline constexpr int32_t kNoLabel = -1;

// Image files, wherever they are.
Dataset image_files(std::span<const std::filesystem::path> paths);

// A picture, a text file with the path of one on every line (relative to the file's folder), or a folder that holds
// pictures itself; anything else is left to load_dataset().
Dataset load_images_or_dataset(const std::filesystem::path& path, const DatasetOptions& options = {});

}  // namespace gle::data
