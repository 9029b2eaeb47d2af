// Cars196: the one list of the first release, the two of the second, or class folders.
#include <algorithm>

#include "data/mat5.h"
#include "data/sets/builder.h"
#include "engine/error.h"

namespace gle::data {

namespace {

constexpr int kTrainClasses = 98;
constexpr int kClasses = 196;

void expect_published(DatasetBuilder& out) {
  out.expect("images to train on", out.count(&Item::train), 8054);
  out.expect("images to test on", out.count(&Item::query), 8131);
  out.expect("classes to train on", out.classes(&Item::train), kTrainClasses);
  out.expect("classes to test on", out.classes(&Item::query), kClasses - kTrainClasses);
}

// The structure array `annotations`; fields are found by name, for their order differs between the files.
void add_annotations(const Folder& folder, const std::string& file, const char* path_field, const std::string& images,
                     DatasetBuilder& out) {
  const std::string name = folder.path() + "/" + file;
  Bytes bytes;
  folder.read(file, kMostListBytes, bytes);
  const std::vector<MatArray> variables = read_mat5(bytes, name);
  const auto found = std::find_if(variables.begin(), variables.end(), [](const MatArray& v) {
    return v.name == "annotations" && v.kind == MatArray::Kind::structure;
  });
  if (found == variables.end()) {
    fail(ErrorCode::data, name, ": has no structure 'annotations'");
  }
  for (int64_t i = 0; i < found->elements(); ++i) {
    const MatArray* path = found->at(i, path_field);
    const MatArray* label = found->at(i, "class");
    if (!path || path->kind != MatArray::Kind::text || !label || label->numbers.size() != 1) {
      fail(ErrorCode::data, name, ": annotation ", i + 1, " lacks a text '", path_field, "' or a number 'class'",
           label ? "" : "; the test list with labels is cars_test_annos_withlabels.mat");
    }
    const double number = label->numbers[0];
    if (!(number >= 1 && number <= kClasses)) {
      fail(ErrorCode::data, name, ": annotation ", i + 1, " has class ", number, "; expected 1 to ", kClasses);
    }
    out.add(item_of(images + path->text, number <= kTrainClasses), std::to_string(static_cast<int>(number)), name,
            static_cast<int>(i) + 1);
  }
}

}  // namespace

Dataset load_cars(const std::shared_ptr<const Folder>& folder) {
  DatasetBuilder out("cars", folder, ClassOrder::by_number);
  if (folder->has_file("cars_annos.mat")) {
    add_annotations(*folder, "cars_annos.mat", "relative_im_path", "", out);
  } else {
    add_annotations(*folder, "devkit/cars_train_annos.mat", "fname", "cars_train/", out);
    const bool beside = folder->has_file("cars_test_annos_withlabels.mat");
    add_annotations(*folder, beside ? "cars_test_annos_withlabels.mat" : "devkit/cars_test_annos_withlabels.mat",
                    "fname", "cars_test/", out);
  }
  expect_published(out);
  return out.finish();
}

Dataset load_cars_folders(const std::shared_ptr<const Folder>& folder) {
  DatasetOptions options;
  options.train_classes = ClassRange{0, kTrainClasses};
  Dataset data = load_class_folders(folder, options);
  data.name = "cars";
  const auto count = [&](bool train) {
    return std::count_if(data.items.begin(), data.items.end(), [&](const Item& item) { return item.train == train; });
  };
  if (data.class_names.size() != kClasses || count(true) != 8054 || count(false) != 8131) {
    data.warnings.push_back("cars: found " + std::to_string(data.class_names.size()) + " classes, " +
                            std::to_string(count(true)) + " images to train on and " + std::to_string(count(false)) +
                            " to test on, published are 196, 8054 and 8131");
  }
  return data;
}

}  // namespace gle::data
