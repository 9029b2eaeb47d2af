// The readers of text lists, through the files of a small folder: the first byte says which layout, a byte 1 begins the
// next file.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tests/fuzz/fuzz.h"

namespace {

struct Layout {
  const char* name;
  std::vector<const char*> files;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"cub-classification", {"images.txt", "image_class_labels.txt", "train_test_split.txt"}},
      {"sop", {"Ebay_train.txt", "Ebay_test.txt"}},
      {"inshop", {"list_eval_partition.txt"}},
      {"msmt17", {"list_train.txt", "list_query.txt", "list_gallery.txt"}},
      {"csv", {"list.csv"}},
      {"cuhk03-detected", {"splits_new_detected.json"}},
  };
  return all;
}

std::filesystem::path folder_of(const Layout& layout) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("gle_lists_fuzz_" + std::to_string(::getpid())) / layout.name;
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const Layout& layout = layouts()[data[0] % layouts().size()];
  const std::filesystem::path folder = folder_of(layout);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const char* file : layout.files) {
    const size_t end = std::min(rest.find('\1'), rest.size());
    std::ofstream(folder / file, std::ios::binary) << rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return gle::fuzz::only(gle::ErrorCode::data, [&] {
    const gle::data::Dataset set = gle::data::load_dataset(folder, {.dataset = layout.name});
    for (const gle::data::Item& item : set.items) {
      gle::invariant(gle::data::path_problem(item.path).empty(), "an unsafe path");
      gle::invariant(item.label >= 0 && static_cast<size_t>(item.label) < set.class_names.size(),
                     "a label of no class");
    }
  });
}
