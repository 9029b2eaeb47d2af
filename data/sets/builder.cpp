#include "data/sets/builder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "engine/error.h"

namespace gle::data {

namespace {

struct InOrder {
  ClassOrder order;
  bool operator()(const std::string& a, const std::string& b) const {
    if (order == ClassOrder::by_number) {
      int64_t x = 0;
      int64_t y = 0;
      std::from_chars(a.data(), a.data() + a.size(), x);
      std::from_chars(b.data(), b.data() + b.size(), y);
      if (x != y) {
        return x < y;
      }
    }
    return a < b;
  }
};

std::vector<uint32_t> indices(const std::vector<Item>& items, bool Item::*role) {
  std::vector<uint32_t> found;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].*role) {
      found.push_back(static_cast<uint32_t>(i));
    }
  }
  return found;
}

}  // namespace

DatasetBuilder::DatasetBuilder(std::string name, std::shared_ptr<const Folder> folder, ClassOrder order)
    : order_(order) {
  data_.name = std::move(name);
  data_.folder = std::move(folder);
}

void DatasetBuilder::add(Item item, std::string class_name, const std::string& list, int line) {
  if (line > 0 && data_.folder->outside() == Outside::refuse) {
    const std::string problem = path_problem(item.path);
    if (!problem.empty()) {
      fail(ErrorCode::data, list, ":", line, ": ", problem, ": '", item.path.substr(0, 200), "'");
    }
  }
  data_.items.push_back(std::move(item));
  class_of_.push_back(std::move(class_name));
}

void DatasetBuilder::expect(std::string_view what, size_t found, size_t published) {
  if (found != published) {
    warn(data_.name + ": found " + std::to_string(found) + " " + std::string(what) + ", published are " +
         std::to_string(published));
  }
}

int32_t DatasetBuilder::add_shard(std::shared_ptr<const TarShard> shard) {
  data_.shards.push_back(std::move(shard));
  return static_cast<int32_t>(data_.shards.size()) - 1;
}

size_t DatasetBuilder::count(bool Item::*role) const {
  return static_cast<size_t>(
      std::count_if(data_.items.begin(), data_.items.end(), [&](const Item& item) { return item.*role; }));
}

size_t DatasetBuilder::classes(bool Item::*role) const {
  std::set<std::string_view> names;
  for (size_t i = 0; i < data_.items.size(); ++i) {
    if (data_.items[i].*role) {
      names.insert(class_of_[i]);
    }
  }
  return names.size();
}

Dataset DatasetBuilder::finish() {
  if (data_.items.empty()) {
    fail(ErrorCode::data, data_.folder->path(), ": no images found for data set '", data_.name, "'");
  }
  std::map<std::string, int32_t, InOrder> trained(InOrder{order_});
  std::map<std::string, int32_t, InOrder> tested(InOrder{order_});
  for (size_t i = 0; i < data_.items.size(); ++i) {
    (data_.items[i].train ? trained : tested)[class_of_[i]] = 0;
  }
  for (auto& [name, label] : trained) {
    label = static_cast<int32_t>(data_.class_names.size());
    data_.class_names.push_back(name);
    tested.erase(name);
  }
  data_.train_classes = static_cast<int32_t>(data_.class_names.size());
  for (auto& [name, label] : tested) {
    label = static_cast<int32_t>(data_.class_names.size());
    data_.class_names.push_back(name);
  }
  for (size_t i = 0; i < data_.items.size(); ++i) {
    const auto found = trained.find(class_of_[i]);
    data_.items[i].label = found != trained.end() ? found->second : tested.at(class_of_[i]);
  }
  return std::move(data_);
}

int32_t camera_of(int64_t number, const std::string& name, int line) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  if (number < -1 || number > kMost) {
    fail(ErrorCode::data, name, ":", line, ": found camera ", number, "; expected -1 (none) to ", kMost);
  }
  return static_cast<int32_t>(number);
}

std::string unread_warning(size_t files) {
  return std::to_string(files) +
         " files with the extensions ppm, pgm, tif, webp or gif are left out: JPEG, PNG and BMP are read";
}

Item item_of(std::string path, bool train) {
  Item item;
  item.path = std::move(path);
  item.train = train;
  item.query = !train;
  item.gallery = !train;
  return item;
}

void Dataset::read(const Item& item, Bytes& bytes) const {
  if (item.shard >= 0) {
    shards[static_cast<size_t>(item.shard)]->read({item.path, item.offset, item.size}, kMostImageBytes, bytes);
  } else {
    folder->read(item.path, kMostImageBytes, bytes);
  }
}

std::string Dataset::name_of(const Item& item) const {
  return (item.shard >= 0 ? shards[static_cast<size_t>(item.shard)]->name() : folder->path()) + "/" + item.path;
}

std::vector<uint32_t> Dataset::train_items() const { return indices(items, &Item::train); }
std::vector<uint32_t> Dataset::query_items() const { return indices(items, &Item::query); }
std::vector<uint32_t> Dataset::gallery_items() const { return indices(items, &Item::gallery); }

}  // namespace gle::data
