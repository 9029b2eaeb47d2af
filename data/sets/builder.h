#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace gle::data {

// How class names are put in order before they are numbered: by bytes, as torchvision does with folders, or by value.
enum class ClassOrder { by_name, by_number };

// What a reader of one layout finds: images with the names of their classes; finish() numbers the classes, those with
// training images first.
class DatasetBuilder {
 public:
  DatasetBuilder(std::string name, std::shared_ptr<const Folder> folder, ClassOrder order);

  // `list` and `line` say where the path comes from, for the message if it is not a safe one; line 0: from a folder.
  void add(Item item, std::string class_name, const std::string& list = "", int line = 0);
  void warn(std::string text) { data_.warnings.push_back(std::move(text)); }
  void note(std::string text) { data_.notes.push_back(std::move(text)); }
  // A warning with both numbers unless they agree.
  void expect(std::string_view what, size_t found, size_t published);
  size_t items() const { return data_.items.size(); }
  int32_t add_shard(std::shared_ptr<const TarShard> shard);
  Dataset finish();

  size_t count(bool Item::*role) const;
  size_t classes(bool Item::*role) const;

 private:
  Dataset data_;
  ClassOrder order_;
  std::vector<std::string> class_of_;
};

// For data sets that say themselves what is trained on. ErrorCode::usage if the options do too.
void require_no_range(const DatasetOptions& options);

// An item's camera, checked: -1 for none, or a number of 32 bits. ErrorCode::data with "name:line".
int32_t camera_of(int64_t number, const std::string& name, int line);

// The warning of files in formats that are not read.
std::string unread_warning(size_t files);

// One line of a split: train, or test that is both query and gallery.
Item item_of(std::string path, bool train);

// The readers; each takes a folder that it recognises.
Dataset load_cub(const std::shared_ptr<const Folder>& folder, bool classification);
Dataset load_cars(const std::shared_ptr<const Folder>& folder);
Dataset load_sop(const std::shared_ptr<const Folder>& folder);
Dataset load_inshop(const std::shared_ptr<const Folder>& folder);
// Market-1501 and what has its layout: DukeMTMC-reID ("dukemtmc"), CUHK03-NP ("cuhk03-np").
Dataset load_market(const std::shared_ptr<const Folder>& folder, const std::string& name);
// kind: "detected" or "labeled".
Dataset load_cuhk03(const std::shared_ptr<const Folder>& folder, const std::string& kind);
Dataset load_msmt17(const std::shared_ptr<const Folder>& folder);
Dataset load_class_folders(const std::shared_ptr<const Folder>& folder, const DatasetOptions& options);
Dataset load_csv(const std::shared_ptr<const Folder>& folder, const std::string& file);
Dataset load_shards(const std::shared_ptr<const Folder>& folder, const std::vector<std::string>& files,
                    const DatasetOptions& options);

// Cars196 as class folders: 98 classes to train on of 196.
Dataset load_cars_folders(const std::shared_ptr<const Folder>& folder);

}  // namespace gle::data
