#include "data/dataset.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "data/sets/builder.h"
#include "engine/error.h"

namespace gle::data {

namespace {

namespace fs = std::filesystem;

bool is_shard(const std::string& name) {
  return name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

std::vector<std::string> shards_in(const Folder& folder) {
  std::vector<std::string> names = folder.files("");
  std::erase_if(names, [](const std::string& name) { return !is_shard(name); });
  return names;
}

std::vector<std::string> csv_files_in(const Folder& folder) {
  std::vector<std::string> names = folder.files("");
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".csv") || name == "bad_images.csv"; });
  return names;
}

// Market-1501, DukeMTMC-reID and CUHK03-NP share their folders; their file names differ.
std::string market_kin(const Folder& folder) {
  for (const std::string& file : folder.files("bounding_box_train")) {
    const size_t camera = file.find("_c");
    if (!has_image_extension(file) || camera == file.npos) {
      continue;
    }
    const std::string rest = file.substr(std::min(camera + 3, file.size()));
    if (rest.starts_with("_f")) {
      return "dukemtmc";
    }
    return rest.starts_with("s") ? "market1501" : "cuhk03-np";
  }
  return "market1501";
}

struct Recognised {
  std::string name;     // of the data set; empty: nothing that is known
  std::string because;  // of this file or folder
};

// What a folder is, by what is in it.
Recognised recognised(const Folder& folder) {
  if (folder.has_file("images.txt") && folder.has_file("image_class_labels.txt")) {
    return {"cub", "image_class_labels.txt"};
  }
  for (const char* file : {"cars_annos.mat", "devkit/cars_train_annos.mat"}) {
    if (folder.has_file(file)) {
      return {"cars", file};
    }
  }
  if (folder.has_file("Ebay_train.txt")) {
    return {"sop", "Ebay_train.txt"};
  }
  for (const char* file : {"Eval/list_eval_partition.txt", "list_eval_partition.txt"}) {
    if (folder.has_file(file)) {
      return {"inshop", file};
    }
  }
  if (folder.has_folder("bounding_box_train")) {
    return {market_kin(folder), "bounding_box_train"};
  }
  if (folder.has_file("list_train.txt") && folder.has_file("list_query.txt")) {
    return {"msmt17", "list_train.txt"};
  }
  for (const std::string kind : {"detected", "labeled"}) {
    for (const std::string& file : {"splits_new_" + kind + ".json", "cuhk03_new_protocol_config_" + kind + ".mat"}) {
      if (folder.has_file(file)) {
        return {"cuhk03-" + kind, file};
      }
    }
  }
  return {};
}

constexpr const char* kOverruled = "; --dataset folders, or data.dataset = \"folders\" in a config, overrules it";

// The same of a folder that may also be of the user's own making.
Recognised recognised_or_own(const Folder& folder) {
  Recognised known = recognised(folder);
  if (!known.name.empty()) {
    return known;
  }
  const std::vector<std::string> csv = csv_files_in(folder);
  if (csv.size() == 1) {
    return {"csv", csv[0]};
  }
  if (csv.size() > 1) {
    fail(ErrorCode::data, folder.path(), ": is taken for data set 'csv', but holds ", csv.size(), " CSV files, ",
         csv[0], " and others; name the one to use", kOverruled);
  }
  const std::vector<std::string> shards = shards_in(folder);
  return shards.empty() ? Recognised{"folders", ""} : Recognised{"shards", shards[0]};
}

// Whether a data set of this name needs its lists, which may be one folder deeper than the path given.
bool has_lists(const std::string& name) { return name != "folders" && name != "csv" && name != "shards"; }

// "cub" of "cub-classification".
std::string family(const std::string& name) { return name.substr(0, name.find('-')); }

std::shared_ptr<const Folder> descend(const std::shared_ptr<const Folder>& folder, const std::string& wanted) {
  if (!recognised(*folder).name.empty() || !(wanted.empty() || has_lists(wanted))) {
    return folder;
  }
  std::shared_ptr<const Folder> only;
  for (const std::string& name : folder->folders("")) {
    auto inner = std::make_shared<const Folder>(fs::path(folder->path()) / name, folder->outside());
    const std::string found = recognised(*inner).name;
    if (!found.empty() && (wanted.empty() || family(found) == family(wanted))) {
      if (only) {
        fail(ErrorCode::data, folder->path(), ": holds several data sets; name the folder of one");
      }
      only = std::move(inner);
    }
  }
  return only ? only : folder;
}

Dataset load_named(const std::string& name, const std::shared_ptr<const Folder>& folder,
                   const DatasetOptions& options) {
  if (name != "folders" && name != "shards") {
    require_no_range(options);
  }
  if (name == "cub" || name == "cub-classification") {
    return load_cub(folder, name != "cub");
  }
  if (name == "cars") {
    return recognised(*folder).name == "cars" ? load_cars(folder) : load_cars_folders(folder);
  }
  if (name == "sop") {
    return load_sop(folder);
  }
  if (name == "inshop") {
    return load_inshop(folder);
  }
  if (name == "market1501" || name == "dukemtmc" || name == "cuhk03-np") {
    return load_market(folder, name);
  }
  if (name == "cuhk03-detected" || name == "cuhk03-labeled") {
    return load_cuhk03(folder, name.substr(7));
  }
  if (name == "msmt17") {
    return load_msmt17(folder);
  }
  if (name == "csv") {
    const std::vector<std::string> files = csv_files_in(*folder);
    if (files.size() != 1) {
      fail(ErrorCode::data, folder->path(), ": holds ", files.size(), " CSV files; name the one to use");
    }
    return load_csv(folder, files[0]);
  }
  if (name == "shards") {
    return load_shards(folder, shards_in(*folder), options);
  }
  return load_class_folders(folder, options);
}

// By what is in the folder, which a stray file there may mislead.
Dataset load_recognised(const std::shared_ptr<const Folder>& folder, const DatasetOptions& options) {
  const Recognised found = recognised_or_own(*folder);
  try {
    return load_named(found.name, folder, options);
  } catch (const Error& e) {
    if (found.because.empty()) {
      throw;
    }
    fail(e.code(), e.what(), "; ", folder->path(), " is taken for data set '", found.name, "' because of its ",
         found.because, kOverruled);
  }
}

}  // namespace

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names = {"cub",
                                                 "cub-classification",
                                                 "cars",
                                                 "sop",
                                                 "inshop",
                                                 "market1501",
                                                 "dukemtmc",
                                                 "cuhk03-detected",
                                                 "cuhk03-labeled",
                                                 "cuhk03-np",
                                                 "msmt17",
                                                 "folders",
                                                 "csv",
                                                 "shards"};
  return names;
}

void require_no_range(const DatasetOptions& options) {
  if (options.train_classes) {
    fail(ErrorCode::usage, "classes ", options.train_classes->begin, ":", options.train_classes->end,
         " to train on were named, but the data set itself says which; that is for class folders without a split");
  }
}

std::optional<ClassRange> parse_class_range(const std::string& text) {
  ClassRange range;
  int read = 0;
  const bool whole = std::sscanf(text.c_str(), "%9d:%9d%n", &range.begin, &range.end, &read) == 2 &&
                     static_cast<size_t>(read) == text.size();
  if (!whole || range.begin < 0) {
    return std::nullopt;
  }
  if (range.end <= range.begin) {
    fail(ErrorCode::usage, "train classes ", text, ": the range is empty; A:B are the classes from A to B-1, as 0:100");
  }
  return range;
}

std::string detected_dataset(const Folder& folder) { return recognised_or_own(folder).name; }

Dataset load_dataset(const fs::path& path, const DatasetOptions& options) {
  const auto& names = dataset_names();
  if (!options.dataset.empty() && std::find(names.begin(), names.end(), options.dataset) == names.end()) {
    std::string list;
    for (const std::string& name : names) {
      list += (list.empty() ? "" : ", ") + name;
    }
    fail(ErrorCode::usage, "unknown data set '", options.dataset, "'; known are ", list);
  }
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const auto folder = std::make_shared<const Folder>(parent, options.outside);
    const std::string file = path.filename().string();
    if (is_shard(file)) {
      return load_shards(folder, {file}, options);
    }
    if (file.ends_with(".csv")) {
      require_no_range(options);
      return load_csv(folder, file);
    }
    fail(ErrorCode::data, path.string(), ": expected a folder, a CSV file or a tar shard");
  }
  const auto folder = descend(std::make_shared<const Folder>(path, options.outside), options.dataset);
  return options.dataset.empty() ? load_recognised(folder, options) : load_named(options.dataset, folder, options);
}

}  // namespace gle::data
