#include "data/quarantine.h"

#include <algorithm>
#include <fstream>

#include "data/csv.h"
#include "engine/error.h"

namespace gle::data {

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
    fail(ErrorCode::data, data_.name_of(data_.items[first]), ": cannot be read, and class '", data_.class_names[label],
         "' has no readable training image to take its place");
  }
  return next;
}

void Quarantine::report(std::span<const BadImage> bad) {
  const size_t before = reported_.size();
  for (const BadImage& image : bad) {
    reported_.emplace(image.item, image.reason);
  }
  if (reported_.size() == before) {
    return;
  }
  write_list();
  const auto budget = static_cast<size_t>(options_.max_bad * static_cast<double>(data_.items.size()));
  if (options_.on_bad == OnBad::quarantine && reported_.size() > budget) {
    std::string list;
    constexpr size_t kShown = 20;
    size_t shown = 0;
    for (const auto& [item, reason] : reported_) {
      if (++shown > kShown) {
        list += "\n  ...";
        break;
      }
      list += "\n  " + reason;
    }
    fail(ErrorCode::data, reported_.size(), " images cannot be read; the budget is ", budget, " of ",
         data_.items.size(), ". Mend or remove them, or allow more:", list);
  }
}

std::vector<BadImage> Quarantine::reported() const {
  std::vector<BadImage> list;
  for (const auto& [item, reason] : reported_) {
    list.push_back({item, reason});
  }
  return list;
}

void Quarantine::write_list() const {
  if (options_.bad_images.empty()) {
    return;
  }
  std::ofstream out(options_.bad_images, std::ios::binary | std::ios::trunc);
  out << "path,reason\n";
  for (const auto& [item, reason] : reported_) {
    out << csv_field(data_.items[item].path) << ',' << csv_field(reason) << '\n';
  }
  out.flush();
  if (!out) {
    fail(ErrorCode::io, options_.bad_images.string(), ": cannot be written");
  }
}

}  // namespace gle::data
