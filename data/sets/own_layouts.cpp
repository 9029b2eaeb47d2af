// Class folders, CSV files and tar shards: what users make themselves.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "data/csv.h"
#include "data/sets/builder.h"
#include "engine/error.h"

namespace gle::data {

namespace {

// What the name of a folder says about the images in it; false if it is not the name of a split.
bool roles_of(std::string_view split, Item& item) {
  if (split == "train" || split == "training") {
    item.train = true;
  } else if (split == "val" || split == "validation" || split == "test") {
    item.query = item.gallery = true;
  } else if (split == "query") {
    item.query = true;
  } else if (split == "gallery") {
    item.gallery = true;
  } else {
    return false;
  }
  return true;
}

bool is_split(const std::string& name) {
  Item ignored;
  return roles_of(name, ignored);
}

void apply_range(const std::optional<ClassRange>& range, size_t classes, size_t index, Item& item) {
  if (!range) {
    item.train = item.query = item.gallery = true;
    return;
  }
  if (range->begin < 0 || range->end <= range->begin || static_cast<size_t>(range->end) > classes) {
    fail(ErrorCode::usage, "train classes ", range->begin, ":", range->end, ": expected a range within 0:", classes);
  }
  item.train = index >= static_cast<size_t>(range->begin) && index < static_cast<size_t>(range->end);
  item.query = item.gallery = !item.train;
}

constexpr const char* kNoSplit =
    "no split given: every image is used for training and for testing; give a range of classes to train on, or put "
    "the classes into folders train and test";

struct Found {
  Item item;
  std::string class_name;
};

void warn_if_both(size_t validation, size_t test, DatasetBuilder& out) {
  if (validation > 0 && test > 0) {
    out.warn(std::to_string(validation) + " validation images and " + std::to_string(test) +
             " test images are both tested on, as one set");
  }
}

void number_and_add(std::vector<Found>& found, bool has_splits, const DatasetOptions& options, DatasetBuilder& out) {
  if (has_splits) {
    require_no_range(options);
    const auto count = [&](const char* split) {
      return static_cast<size_t>(
          std::ranges::count_if(found, [&](const Found& f) { return f.item.path.starts_with(split); }));
    };
    warn_if_both(count("val/") + count("validation/"), count("test/"), out);
  }
  std::set<std::string> names;
  for (const Found& f : found) {
    names.insert(f.class_name);
  }
  const std::vector<std::string> sorted(names.begin(), names.end());
  for (Found& f : found) {
    if (!has_splits) {
      const auto at = std::lower_bound(sorted.begin(), sorted.end(), f.class_name);
      apply_range(options.train_classes, sorted.size(), static_cast<size_t>(at - sorted.begin()), f.item);
    }
    out.add(std::move(f.item), std::move(f.class_name));
  }
  if (!has_splits && !options.train_classes) {
    out.warn(kNoSplit);
  }
}

size_t images_in(const std::vector<std::string>& files) {
  return static_cast<size_t>(std::ranges::count_if(files, has_image_extension));
}

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

// The images in class folders, and what is left out.
struct ClassFolders {
  const Folder& folder;
  std::vector<Found> found = {};
  size_t unread = 0;
  size_t beside = 0;
  ImageCount below = {};
  std::vector<std::string> with_below = {};
  std::vector<std::string> without_images = {};

  void add(const std::string& path, const std::string& class_name, const Item& roles) {
    const Folder::Names names = folder.names(path);
    const size_t found_before = found.size();
    for (const std::string& file : names.files) {
      if (has_image_extension(file)) {
        found.push_back({roles, class_name});
        found.back().item.path = path + "/" + file;
      } else {
        unread += has_unread_image_extension(file) ? 1 : 0;
      }
    }
    if (found.size() == found_before) {
      without_images.push_back(path);
    }
    const size_t below_before = below.images;
    for (const std::string& name : names.folders) {
      folder.count_images(path + "/" + name, below);
    }
    if (below.images > below_before) {
      with_below.push_back(path);
    }
  }

  std::vector<std::string> warnings() const {
    std::vector<std::string> texts;
    if (unread > 0) {
      texts.push_back(unread_warning(unread));
    }
    if (beside > 0) {
      texts.push_back(std::to_string(beside) + " images beside class folders are left out");
    }
    if (below.images > 0) {
      texts.push_back(below.text() + " images in folders below class folders are left out: " + some_of(with_below));
    }
    if (!without_images.empty()) {
      texts.push_back(std::to_string(without_images.size()) +
                      " class folders without an image are left out: " + some_of(without_images));
    }
    return texts;
  }
};

// Why folders like train, with class folders in them, are no splits; empty if there are none.
std::string splits_as_classes(const ClassFolders& classes, std::vector<std::string> names) {
  std::vector<std::string> splits;
  std::ranges::set_intersection(classes.with_below, classes.without_images, std::back_inserter(splits));
  std::erase_if(splits, [](const std::string& name) { return !is_split(name); });
  std::erase_if(names, is_split);
  return splits.empty() ? ""
                        : some_of(splits) + " would be splits, but not beside folders that are none: " + some_of(names);
}

int64_t box_edge(const std::string& text, const std::string& name, int line) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e6)) {
    fail(ErrorCode::data, name, ":", line, ": expected an edge of a box in pixels, found '", text, "'");
  }
  return std::lround(value);
}

// "True", "1", "1.0"; empty counts as no.
bool truth(const std::string& text, const std::string& name, int line) {
  if (text == "True" || text == "true" || text == "TRUE" || text == "1" || text == "1.0") {
    return true;
  }
  if (text.empty() || text == "False" || text == "false" || text == "FALSE" || text == "0" || text == "0.0") {
    return false;
  }
  fail(ErrorCode::data, name, ":", line, ": expected True, False or nothing, found '", text, "'");
}

std::string stem_of(const std::string& path) {
  // WebDataset's key: up to the first dot of the file's name.
  const size_t slash = path.rfind('/');
  return path.substr(0, path.find('.', slash == path.npos ? 0 : slash));
}

}  // namespace

Dataset load_class_folders(const std::shared_ptr<const Folder>& folder, const DatasetOptions& options) {
  DatasetBuilder out("folders", folder, ClassOrder::by_name);
  const Folder::Names top = folder->names("");
  const bool has_splits = !top.folders.empty() && std::ranges::all_of(top.folders, is_split);
  ClassFolders classes{*folder};
  classes.beside += images_in(top.files);
  for (const std::string& name : top.folders) {
    Item roles;
    if (!has_splits) {
      classes.add(name, name, roles);
      continue;
    }
    roles_of(name, roles);
    const Folder::Names split = folder->names(name);
    classes.beside += images_in(split.files);
    for (const std::string& class_name : split.folders) {
      classes.add(name + "/" + class_name, class_name, roles);
    }
  }
  std::vector<std::string> warnings = classes.warnings();
  if (const std::string text = has_splits ? "" : splits_as_classes(classes, top.folders); !text.empty()) {
    warnings.push_back(text);
  }
  if (classes.found.empty()) {
    std::string hints;
    for (const std::string& text : warnings) {
      hints += "; " + text;
    }
    fail(ErrorCode::data, folder->path(),
         ": no images found for data set 'folders'; expected class/name.jpg, or train/class/name.jpg and "
         "test/class/name.jpg",
         hints);
  }
  for (std::string& text : warnings) {
    out.warn(std::move(text));
  }
  number_and_add(classes.found, has_splits, options, out);
  return out.finish();
}

Dataset load_csv(const std::shared_ptr<const Folder>& folder, const std::string& file) {
  DatasetBuilder out("csv", folder, ClassOrder::by_number);
  const std::string name = folder->path() + "/" + file;
  Bytes text;
  folder->read(file, kMostListBytes, text);
  const CsvTable table = read_csv(text, name);
  const auto required = [&](const char* column) {
    const auto found = table.column(column);
    if (!found) {
      fail(ErrorCode::data, name, ": has no column '", column,
           "'; needed are label, path, split, is_query, is_gallery");
    }
    return *found;
  };
  const size_t label = required("label");
  const size_t path = required("path");
  const size_t split = required("split");
  const size_t is_query = required("is_query");
  const size_t is_gallery = required("is_gallery");
  const auto camera = table.column("camera");
  const std::array box = {table.column("x_1"), table.column("x_2"), table.column("y_1"), table.column("y_2")};
  const auto boxes = std::count_if(box.begin(), box.end(), [](const auto& c) { return c.has_value(); });
  if (boxes != 0 && boxes != 4) {
    fail(ErrorCode::data, name, ": has some of the columns x_1, x_2, y_1, y_2; expected all or none");
  }
  std::map<std::string, int> queries;
  std::set<std::string> gallery;
  size_t validation = 0;
  size_t test = 0;
  for (const CsvTable::Row& row : table.rows) {
    if (row.fields[label].empty()) {
      fail(ErrorCode::data, name, ":", row.line, ": the label is empty; expected the class of '", row.fields[path],
           "'");
    }
    Item item;
    item.path = row.fields[path];
    item.train = row.fields[split] == "train";
    if (!item.train && row.fields[split] != "validation" && row.fields[split] != "test") {
      fail(ErrorCode::data, name, ":", row.line, ": expected split train or validation, found '", row.fields[split],
           "'");
    }
    item.query = !item.train && truth(row.fields[is_query], name, row.line);
    item.gallery = !item.train && truth(row.fields[is_gallery], name, row.line);
    if (camera && !row.fields[*camera].empty()) {
      item.camera = camera_of(whole_number(row.fields[*camera], name, row.line), name, row.line);
    }
    if (boxes == 4) {
      const auto given = std::count_if(box.begin(), box.end(), [&](const auto& c) { return !row.fields[*c].empty(); });
      if (given == 4) {
        const auto edge = [&](size_t i) { return static_cast<int>(box_edge(row.fields[*box[i]], name, row.line)); };
        item.box = {edge(0), edge(2), edge(1) - edge(0), edge(3) - edge(2)};
      }
      if (given != 0 && (given != 4 || item.box.width <= 0 || item.box.height <= 0)) {
        fail(ErrorCode::data, name, ":", row.line, ": expected a box with x_1 < x_2 and y_1 < y_2, or none");
      }
    }
    if (item.query || item.gallery) {
      ++(row.fields[split] == "test" ? test : validation);
    }
    if (item.query) {
      queries.emplace(row.fields[label], row.line);
    }
    if (item.gallery) {
      gallery.insert(row.fields[label]);
    }
    out.add(std::move(item), row.fields[label], name, row.line);
  }
  for (const auto& [query, line] : queries) {
    if (!gallery.contains(query)) {
      fail(ErrorCode::data, name, ":", line, ": label '", query, "' is a query, but no image of the gallery has it");
    }
  }
  warn_if_both(validation, test, out);
  return out.finish();
}

Dataset load_shards(const std::shared_ptr<const Folder>& folder, const std::vector<std::string>& files,
                    const DatasetOptions& options) {
  DatasetBuilder out("shards", folder, ClassOrder::by_name);
  std::vector<Found> found;
  bool any_split = false;
  bool all_split = true;
  for (const std::string& file : files) {
    const auto shard = std::make_shared<const TarShard>(*folder, file);
    const int32_t index = out.add_shard(shard);
    if (!shard->is_closed()) {
      out.warn(shard->name() + ": has no empty block at its end, as an archive has that is not cut off");
    }
    // WebDataset: key.jpg and key.cls, the class as text.
    std::map<std::string, std::string> classes;
    for (const TarMember& member : shard->members()) {
      if (member.name.ends_with(".cls")) {
        Bytes text;
        constexpr size_t kMostClassBytes = 4096;
        shard->read(member, kMostClassBytes, text);
        const auto lines = lines_of(text, shard->name() + "/" + member.name);
        if (lines.size() != 1) {
          fail(ErrorCode::data, shard->name(), ": member '", member.name, "' must hold the class in one line");
        }
        classes[stem_of(member.name)] = lines[0].text;
      }
    }
    for (const TarMember& member : shard->members()) {
      if (!has_image_extension(member.name)) {
        continue;
      }
      Found f;
      f.item.path = member.name;
      f.item.shard = index;
      f.item.offset = member.offset;
      f.item.size = member.size;
      const size_t first = member.name.find('/');
      const bool split = first != member.name.npos && roles_of(std::string_view(member.name).substr(0, first), f.item);
      any_split = any_split || split;
      all_split = all_split && split;
      const auto given = classes.find(stem_of(member.name));
      const size_t last = member.name.rfind('/');
      const size_t begin = split ? first + 1 : 0;
      if (given != classes.end()) {
        f.class_name = given->second;
      } else if (last != member.name.npos && last > begin) {
        f.class_name = member.name.substr(begin, last - begin);
      } else {
        fail(ErrorCode::data, shard->name(), ": member '", member.name,
             "' has no class; expected class/name.png, train/class/name.png, or a member '", stem_of(member.name),
             ".cls'");
      }
      found.push_back(std::move(f));
    }
  }
  if (any_split != all_split) {
    fail(ErrorCode::data, folder->path(), ": some members are in folders like train and test, others are not");
  }
  number_and_add(found, any_split, options, out);
  return out.finish();
}

}  // namespace gle::data
