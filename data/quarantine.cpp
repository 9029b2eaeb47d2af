#include "data/quarantine.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "data/csv.h"
#include "engine/error.h"

namespace gle::data {

namespace {

bool can_be_read(const Dataset& data, const Item& item, const DecodeOptions& decode) {
  try {
    Bytes file;
    Image image;
    data.read(item, file);
    decode_image(file, data.name_of(item), decode, image);
    return true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::data && e.code() != ErrorCode::io) {
      throw;
    }
    return false;
  }
}

}  // namespace

std::string Quarantine::reason(uint32_t item) const {
  const auto known = found_.find(item);
  return known == found_.end() ? "" : known->second;
}

uint32_t Quarantine::replacement(uint32_t item, uint32_t first) const {
  const auto label = static_cast<size_t>(data_.items[first].label);
  static const std::vector<uint32_t> kNone;
  const std::vector<uint32_t>& peers = label < members_.of_class.size() ? members_.of_class[label] : kNone;
  const auto after = std::upper_bound(peers.begin(), peers.end(), item);
  const uint32_t next = peers.empty() ? first : after == peers.end() ? peers.front() : *after;
  if (next == first) {
    fail(ErrorCode::data, reason(first), "; class '", data_.class_names[label],
         "' has no readable training image to take its place");
  }
  return next;
}

void BadImageList::read_back(const DecodeOptions& decode) {
  std::ifstream in(file_, std::ios::binary);
  if (!in) {
    return;
  }
  const Bytes text{std::istreambuf_iterator<char>(in), {}};
  const CsvTable table = read_csv(text, file_.string());
  const auto path = table.column("path");
  const auto reason = table.column("reason");
  if (!path || !reason) {
    fail(ErrorCode::data, file_.string(), ": has no columns path and reason; remove it to begin another list");
  }
  std::multimap<std::string, std::string> listed;
  for (const CsvTable::Row& row : table.rows) {
    listed.emplace(row.fields[*path], row.fields[*reason]);
  }
  for (size_t i = 0; i < data_.items.size() && !listed.empty(); ++i) {
    const auto found = listed.find(data_.items[i].path);
    if (found == listed.end()) {
      continue;
    }
    if (!can_be_read(data_, data_.items[i], decode)) {
      images_.emplace(static_cast<uint32_t>(i), found->second);
    }
    listed.erase(found);
  }
}

void BadImageList::add(std::span<const BadImage> bad) {
  if (bad.empty()) {
    return;
  }
  const size_t before = images_.size();
  for (const BadImage& image : bad) {
    images_.emplace(image.item, image.reason);
  }
  if (images_.size() > before) {
    write();
  }
  const auto budget = static_cast<size_t>(max_bad_ * static_cast<double>(data_.items.size()));
  if (images_.size() > budget) {
    std::string list;
    constexpr size_t kShown = 20;
    size_t shown = 0;
    for (const auto& [item, reason] : images_) {
      if (++shown > kShown) {
        list += "\n  ...";
        break;
      }
      list += "\n  " + reason;
    }
    fail(ErrorCode::data, images_.size(), " images cannot be read; the budget is ", budget, " of ", data_.items.size(),
         ". Mend or remove them (gle-data check DATA finds them all), or raise data.max_bad:", list);
  }
}

std::vector<BadImage> BadImageList::images() const {
  std::vector<BadImage> list;
  for (const auto& [item, reason] : images_) {
    list.push_back({item, reason});
  }
  return list;
}

// As a whole or not at all: it is read back.
void BadImageList::write() const {
  if (file_.empty()) {
    return;
  }
  std::filesystem::path temporary = file_;
  temporary += ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << "path,reason\n";
  for (const auto& [item, reason] : images_) {
    out << csv_field(data_.items[item].path) << ',' << csv_field(reason) << '\n';
  }
  out.close();
  std::error_code problem;
  if (out) {
    std::filesystem::rename(temporary, file_, problem);
  }
  if (!out || problem) {
    std::filesystem::remove(temporary, problem);
    fail(ErrorCode::io, file_.string(), ": cannot be written");
  }
}

}  // namespace gle::data
