// CUB-200-2011, Stanford Online Products, In-Shop: data sets with text lists.
#include <unordered_map>

#include "data/sets/builder.h"
#include "engine/error.h"

namespace gle::data {

namespace {

struct List {
  std::string name;
  Bytes text;
  std::vector<ListLine> lines;
};

List read_list(const Folder& folder, const std::string& file) {
  List list;
  list.name = folder.path() + "/" + file;
  folder.read(file, kMostListBytes, list.text);
  list.lines = lines_of(list.text, list.name);
  return list;
}

void expect_fields(const List& list, const ListLine& line, size_t found, size_t wanted, const char* what) {
  if (found != wanted) {
    fail(ErrorCode::data, list.name, ":", line.number, ": expected '", what, "', found '", line.text.substr(0, 200),
         "'");
  }
}

// "id value" lines: the value of each image id.
std::unordered_map<int64_t, int64_t> numbers_by_id(const Folder& folder, const std::string& file) {
  const List list = read_list(folder, file);
  std::unordered_map<int64_t, int64_t> values;
  for (const ListLine& line : list.lines) {
    const auto fields = fields_of(line.text);
    expect_fields(list, line, fields.size(), 2, "image number");
    const int64_t id = whole_number(fields[0], list.name, line.number);
    if (!values.emplace(id, whole_number(fields[1], list.name, line.number)).second) {
      fail(ErrorCode::data, list.name, ":", line.number, ": image ", id, " is there twice");
    }
  }
  return values;
}

int64_t value_of(const std::unordered_map<int64_t, int64_t>& values, int64_t id, const Folder& folder,
                 const char* file) {
  const auto found = values.find(id);
  if (found == values.end()) {
    fail(ErrorCode::data, folder.path(), "/", file, ": image ", id, " of images.txt is missing");
  }
  return found->second;
}

}  // namespace

Dataset load_cub(const std::shared_ptr<const Folder>& folder, bool classification) {
  constexpr int64_t kTrainClasses = 100;
  DatasetBuilder out(classification ? "cub-classification" : "cub", folder, ClassOrder::by_name);
  const auto classes = numbers_by_id(*folder, "image_class_labels.txt");
  const auto split = classification ? numbers_by_id(*folder, "train_test_split.txt") : classes;
  const List images = read_list(*folder, "images.txt");
  for (const ListLine& line : images.lines) {
    const auto fields = fields_of(line.text);
    expect_fields(images, line, fields.size(), 2, "image path");
    const int64_t id = whole_number(fields[0], images.name, line.number);
    const int64_t label = value_of(classes, id, *folder, "image_class_labels.txt");
    const bool train =
        classification ? value_of(split, id, *folder, "train_test_split.txt") != 0 : label <= kTrainClasses;
    // The folder is the class, as "017.Cardinal" says better than 17.
    const std::string path(fields[1]);
    const size_t slash = path.find('/');
    out.add(item_of("images/" + path, train), slash == path.npos ? std::to_string(label) : path.substr(0, slash),
            images.name, line.number);
  }
  out.expect("images to train on", out.count(&Item::train), classification ? 5994 : 5864);
  out.expect("images to test on", out.count(&Item::query), classification ? 5794 : 5924);
  out.expect("classes to train on", out.classes(&Item::train), classification ? 200 : 100);
  out.expect("classes to test on", out.classes(&Item::query), classification ? 200 : 100);
  return out.finish();
}

Dataset load_sop(const std::shared_ptr<const Folder>& folder) {
  DatasetBuilder out("sop", folder, ClassOrder::by_number);
  for (const bool train : {true, false}) {
    const List list = read_list(*folder, train ? "Ebay_train.txt" : "Ebay_test.txt");
    for (size_t i = 0; i < list.lines.size(); ++i) {
      const ListLine& line = list.lines[i];
      const auto fields = fields_of(line.text);
      expect_fields(list, line, fields.size(), 4, "image_id class_id super_class_id path");
      if (i == 0 && fields[0] == "image_id") {
        continue;
      }
      whole_number(fields[1], list.name, line.number);
      out.add(item_of(std::string(fields[3]), train), std::string(fields[1]), list.name, line.number);
    }
  }
  out.expect("images to train on", out.count(&Item::train), 59551);
  out.expect("images to test on", out.count(&Item::query), 60502);
  out.expect("classes to train on", out.classes(&Item::train), 11318);
  out.expect("classes to test on", out.classes(&Item::query), 11316);
  return out.finish();
}

Dataset load_inshop(const std::shared_ptr<const Folder>& folder) {
  DatasetBuilder out("inshop", folder, ClassOrder::by_number);
  const List list = read_list(*folder, folder->has_file("Eval/list_eval_partition.txt") ? "Eval/list_eval_partition.txt"
                                                                                        : "list_eval_partition.txt");
  // The list says img/...; as shipped that is Img/img, in which some keep the large pictures as img_highres.
  std::string images = folder->has_folder("Img/img") ? "Img/" : "";
  const bool large = images.empty() && !folder->has_folder("img") && folder->has_folder("Img/img_highres");
  if (list.lines.size() < 3) {
    fail(ErrorCode::data, list.name, ": expected a line with the count, a header line and one line an image");
  }
  const int64_t stated = whole_number(fields_of(list.lines[0].text)[0], list.name, list.lines[0].number);
  for (size_t i = 2; i < list.lines.size(); ++i) {
    const ListLine& line = list.lines[i];
    const auto fields = fields_of(line.text);
    expect_fields(list, line, fields.size(), 3, "image_name item_id evaluation_status");
    Item item;
    item.path = large && fields[0].starts_with("img/") ? "Img/img_highres" + std::string(fields[0].substr(3))
                                                       : images + std::string(fields[0]);
    item.train = fields[2] == "train";
    item.query = fields[2] == "query";
    item.gallery = fields[2] == "gallery";
    if (!item.train && !item.query && !item.gallery) {
      fail(ErrorCode::data, list.name, ":", line.number, ": expected train, query or gallery, found '", fields[2], "'");
    }
    if (!fields[1].starts_with("id_")) {
      fail(ErrorCode::data, list.name, ":", line.number, ": expected an item id_00000000, found '", fields[1], "'");
    }
    out.add(std::move(item), std::to_string(whole_number(fields[1].substr(3), list.name, line.number)), list.name,
            line.number);
  }
  if (static_cast<size_t>(stated) != out.items()) {
    out.warn(list.name + ": its first line says " + std::to_string(stated) + " images, it lists " +
             std::to_string(out.items()));
  }
  out.expect("images to train on", out.count(&Item::train), 25882);
  out.expect("classes to train on", out.classes(&Item::train), 3997);
  out.expect("queries", out.count(&Item::query), 14218);
  out.expect("gallery images", out.count(&Item::gallery), 12612);
  out.expect("classes in the gallery", out.classes(&Item::gallery), 3985);
  return out.finish();
}

Dataset load_msmt17(const std::shared_ptr<const Folder>& folder) {
  DatasetBuilder out("msmt17", folder, ClassOrder::by_number);
  for (const std::string part : {"train", "val", "query", "gallery"}) {
    const std::string file = "list_" + part + ".txt";
    if (part == "val" && !folder->has_file(file)) {
      continue;
    }
    const bool train = part == "train" || part == "val";
    const List list = read_list(*folder, file);
    for (const ListLine& line : list.lines) {
      const auto fields = fields_of(line.text);
      expect_fields(list, line, fields.size(), 2, "path id");
      Item item;
      item.path = (train ? "train/" : "test/") + std::string(fields[0]);
      item.train = train;
      item.query = part == "query";
      item.gallery = part == "gallery";
      // 0000/0000_000_01_0303morning_0008_0.jpg: the third part is the camera.
      const size_t name = item.path.rfind('/') + 1;
      const size_t first = item.path.find('_', name);
      const size_t second = first == item.path.npos ? first : item.path.find('_', first + 1);
      if (second == item.path.npos || item.path.size() < second + 3) {
        fail(ErrorCode::data, list.name, ":", line.number, ": no camera in the name '", fields[0], "'");
      }
      item.camera =
          static_cast<int32_t>(whole_number(std::string_view(item.path).substr(second + 1, 2), list.name, line.number));
      // Ids count from 0 in the training and in the test lists.
      const int64_t id = whole_number(fields[1], list.name, line.number);
      out.add(std::move(item), std::to_string(id) + (train ? "" : " (test)"), list.name, line.number);
    }
  }
  out.expect("images to train on", out.count(&Item::train), 32621);
  out.expect("queries", out.count(&Item::query), 11659);
  out.expect("gallery images", out.count(&Item::gallery), 82161);
  return out.finish();
}

}  // namespace gle::data
