// Market-1501 and its kin, and CUHK03: data sets for re-identification.
#include <algorithm>
#include <charconv>

#include "data/mat5.h"
#include "data/sets/builder.h"
#include "data/split_json.h"
#include "engine/error.h"

namespace gle::data {

namespace {

// 0002_c1s1_000451_03.jpg: id 2, camera 1. False: the name is not of this kind.
bool parse_name(std::string_view name, int64_t& id, int32_t& camera) {
  const char* end = name.data() + name.size();
  const auto [at, problem] = std::from_chars(name.data(), end, id);
  if (problem != std::errc() || end - at < 3 || at[0] != '_' || at[1] != 'c') {
    return false;
  }
  return std::from_chars(at + 2, end, camera).ec == std::errc();
}

struct Published {
  const char* name;
  size_t train;
  size_t train_classes;
  size_t queries;
  size_t gallery;  // without junk
};

constexpr Published kPublished[] = {
    {"market1501", 12936, 751, 3368, 15913},
    {"dukemtmc", 16522, 702, 2228, 17661},
};

std::string rebased(const std::string& path, const std::string& images) {
  // torchreid writes the paths of the machine that it ran on; what counts begins at the folder of the images.
  const size_t at = path.rfind(images + "/");
  return at == std::string::npos ? path : path.substr(at);
}

const MatArray& variable(const std::vector<MatArray>& variables, const std::string& name, const std::string& file) {
  const auto found =
      std::find_if(variables.begin(), variables.end(), [&](const MatArray& array) { return array.name == name; });
  if (found == variables.end()) {
    fail(ErrorCode::data, file, ": has no variable '", name, "'");
  }
  return *found;
}

Dataset from_json(const std::shared_ptr<const Folder>& folder, const std::string& kind, const std::string& file) {
  DatasetBuilder out("cuhk03-" + kind, folder, ClassOrder::by_number);
  const std::string name = folder->path() + "/" + file;
  Bytes text;
  folder->read(file, kMostListBytes, text);
  int entry = 0;
  for (const SplitEntry& split : read_split_json(text, name)) {
    Item item;
    item.path = rebased(split.path, "images_" + kind);
    item.train = split.role == SplitEntry::Role::train;
    item.query = split.role == SplitEntry::Role::query;
    item.gallery = split.role == SplitEntry::Role::gallery;
    item.camera = camera_of(split.camera, name, ++entry);
    // Training ids are renumbered from 0 by torchreid, test ids are not.
    out.add(std::move(item), std::to_string(split.id) + (split.role == SplitEntry::Role::train ? "" : " (test)"), name,
            entry);
  }
  return out.finish();
}

Dataset from_mat(const std::shared_ptr<const Folder>& folder, const std::string& kind, const std::string& file) {
  DatasetBuilder out("cuhk03-" + kind, folder, ClassOrder::by_number);
  const std::string name = folder->path() + "/" + file;
  Bytes bytes;
  folder->read(file, kMostListBytes, bytes);
  const std::vector<MatArray> variables = read_mat5(bytes, name);
  const MatArray& labels = variable(variables, "labels", name);
  const MatArray& cameras = variable(variables, "camId", name);
  const MatArray& files = variable(variables, "filelist", name);
  const size_t count = files.cells.size();
  if (labels.numbers.size() != count || cameras.numbers.size() != count) {
    fail(ErrorCode::data, name, ": ", count, " files, ", labels.numbers.size(), " labels, ", cameras.numbers.size(),
         " cameras; expected as many of each");
  }
  for (const std::string part : {"train", "query", "gallery"}) {
    for (const double index : variable(variables, part + "_idx", name).numbers) {
      if (!(index >= 1 && index <= static_cast<double>(count))) {
        fail(ErrorCode::data, name, ": ", part, "_idx holds ", index, "; expected 1 to ", count);
      }
      const size_t i = static_cast<size_t>(index) - 1;
      Item item;
      item.path = "images_" + kind + "/" + files.cells[i].text;
      item.camera = static_cast<int32_t>(std::clamp(cameras.numbers[i], 0.0, 1e6)) - 1;
      item.train = part == "train";
      item.query = part == "query";
      item.gallery = part == "gallery";
      out.add(std::move(item), std::to_string(static_cast<int64_t>(std::clamp(labels.numbers[i], -1e15, 1e15))), name,
              static_cast<int>(i) + 1);
    }
  }
  return out.finish();
}

}  // namespace

Dataset load_market(const std::shared_ptr<const Folder>& folder, const std::string& name) {
  DatasetBuilder out(name, folder, ClassOrder::by_number);
  size_t junk = 0;
  size_t unread = 0;
  for (const std::string part : {"bounding_box_train", "query", "bounding_box_test"}) {
    if (!folder->has_folder(part)) {
      fail(ErrorCode::data, folder->path(), ": has no folder '", part, "'");
    }
    for (const std::string& file : folder->files(part)) {
      int64_t id = 0;
      Item item;
      item.path = part + "/" + file;
      if (!has_image_extension(file)) {
        continue;  // Thumbs.db
      }
      if (!parse_name(file, id, item.camera)) {
        ++unread;
        continue;
      }
      if (id == -1) {
        ++junk;
        continue;
      }
      item.camera -= 1;
      item.train = part == "bounding_box_train";
      item.query = part == "query";
      item.gallery = part == "bounding_box_test";
      out.add(std::move(item), std::to_string(id));
    }
  }
  if (unread > 0) {
    out.warn(name + ": left out " + std::to_string(unread) +
             " images whose names are not like 0002_c1s1_000451_03.jpg");
  }
  if (junk > 0) {
    out.note(name + ": left out " + std::to_string(junk) + " junk images (id -1), as the protocol says");
  }
  for (const Published& published : kPublished) {
    if (name == published.name) {
      out.expect("images to train on", out.count(&Item::train), published.train);
      out.expect("classes to train on", out.classes(&Item::train), published.train_classes);
      out.expect("queries", out.count(&Item::query), published.queries);
      out.expect("gallery images without junk", out.count(&Item::gallery), published.gallery);
    }
  }
  if (name == "cuhk03-np") {
    out.expect("classes to train on", out.classes(&Item::train), 767);
    out.expect("queries", out.count(&Item::query), 1400);
  }
  return out.finish();
}

Dataset load_cuhk03(const std::shared_ptr<const Folder>& folder, const std::string& kind) {
  const std::string json = "splits_new_" + kind + ".json";
  const std::string mat = "cuhk03_new_protocol_config_" + kind + ".mat";
  Dataset data;
  if (folder->has_file(json)) {
    data = from_json(folder, kind, json);
  } else if (folder->has_file(mat)) {
    data = from_mat(folder, kind, mat);
  } else {
    fail(ErrorCode::data, folder->path(), ": has neither ", json, " nor ", mat);
  }
  const bool labeled = kind == "labeled";
  const auto expect = [&](const char* what, size_t found, size_t published) {
    if (found != published) {
      data.warnings.push_back(data.name + ": found " + std::to_string(found) + " " + what + ", published are " +
                              std::to_string(published));
    }
  };
  expect("images to train on", data.train_items().size(), labeled ? 7368 : 7365);
  expect("classes to train on", static_cast<size_t>(data.train_classes), 767);
  expect("classes to test on", data.class_names.size() - static_cast<size_t>(data.train_classes), 700);
  expect("queries", data.query_items().size(), 1400);
  expect("gallery images", data.gallery_items().size(), labeled ? 5328 : 5332);
  return data;
}

}  // namespace gle::data
