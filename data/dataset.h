#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/files.h"
#include "data/image.h"
#include "data/tar.h"

namespace gle::data {

// One image of a data set. In retrieval (CUB, Cars, SOP) a test image is both query and gallery.
struct Item {
  std::string path;     // relative to the data set's folder, or a member of its shard
  int32_t label = 0;    // index into class_names; classes that are trained on come first
  int32_t camera = -1;  // of re-identification; -1: none
  int32_t shard = -1;   // index into shards; -1: a file
  uint64_t offset = 0;  // in the shard
  uint64_t size = 0;
  Region box;  // the part of the picture that is the image; empty: all of it
  bool train = false;
  bool query = false;
  bool gallery = false;
};

struct Dataset {
  std::string name;  // "cub", "market1501", "folders", ...
  std::shared_ptr<const Folder> folder;
  std::vector<std::shared_ptr<const TarShard>> shards;
  std::vector<Item> items;
  std::vector<std::string> class_names;
  int32_t train_classes = 0;  // labels [0, train_classes) occur in training items
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  // what was left out on purpose

  // The item's file. Throws ErrorCode::data if it is missing or unsafe.
  void read(const Item& item, Bytes& bytes) const;
  // For messages: folder and path.
  std::string name_of(const Item& item) const;

  // Indices of the items in training, as queries, in the gallery.
  std::vector<uint32_t> train_items() const;
  std::vector<uint32_t> query_items() const;
  std::vector<uint32_t> gallery_items() const;
};

struct ClassRange {
  int begin = 0;
  int end = 0;
};
// Of "A:B"; nothing if it is not that. Throws ErrorCode::usage if no class is in it.
std::optional<ClassRange> parse_class_range(const std::string& text);

struct DatasetOptions {
  // Empty: told by what is in the folder. See dataset_names().
  std::string dataset = {};
  // Class folders: the classes (in the order of their names) to train on; all others are tested.
  std::optional<ClassRange> train_classes = std::nullopt;
  Outside outside = Outside::refuse;
};

// "cub", "cub-classification", "cars", "sop", "inshop", "market1501", "dukemtmc", "cuhk03-detected", "cuhk03-labeled",
// "cuhk03-np", "msmt17", "folders", "csv", "shards"
const std::vector<std::string>& dataset_names();

// What is in the folder, by its lists: one of these names, "folders" if there is none.
std::string detected_dataset(const Folder& folder);

// Reads the lists of a data set (no image): a folder as its authors ship it, or the folder around it; a CSV file; a tar
// shard or a folder of them. Throws ErrorCode::data for lists that are malformed or lead out of the folder; counts
// other than the published ones are warnings.
Dataset load_dataset(const std::filesystem::path& path, const DatasetOptions& options = {});

}  // namespace gle::data
