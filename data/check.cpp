#include "data/check.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/error.h"
#include "engine/thread_pool.h"

namespace gle::data {

namespace {

struct Finding {
  std::string problem;
  uint64_t hash = 0;
  uint64_t bytes = 0;
  ImageInfo info;
};

uint64_t hash_of(const Bytes& bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const uint8_t byte : bytes) {
    hash = (hash ^ byte) * 0x100000001B3;
  }
  return hash;
}

bool has_name_of(ImageFormat format, const std::string& path) {
  const size_t dot = path.rfind('.');
  const char first = dot == path.npos || dot + 1 == path.size() ? '\0' : path[dot + 1];
  switch (format) {
    case ImageFormat::jpeg:
      return first == 'j' || first == 'J';
    case ImageFormat::png:
      return first == 'p' || first == 'P';
    case ImageFormat::bmp:
      return first == 'b' || first == 'B';
  }
  bug("unknown image format");
}

Finding examine(const Dataset& data, const Item& item, const DecodeOptions& options, Bytes& file, Image& image) {
  Finding finding;
  const std::string name = data.name_of(item);
  try {
    data.read(item, file);
    finding.bytes = file.size();
    finding.hash = hash_of(file);
    finding.info = read_image_info(file, name, options);
    decode_image(file, name, finding.info, {0, 0, finding.info.width, finding.info.height}, options, image);
    const Region& box = item.box;
    if (box.x + box.width > finding.info.width || box.y + box.height > finding.info.height) {
      fail(ErrorCode::data, name, ": its box reaches out of the picture");
    }
  } catch (const std::exception& e) {
    finding.problem = e.what();
  }
  return finding;
}

void add_sizes(const std::vector<Finding>& findings, const Dataset& data, CheckReport& report) {
  size_t good = 0;
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    report.bytes += f.bytes;
    if (!f.problem.empty()) {
      report.broken.push_back({static_cast<uint32_t>(i), f.problem});
      continue;
    }
    const ImageInfo& info = f.info;
    report.least_width = good == 0 ? info.width : std::min(report.least_width, info.width);
    report.least_height = good == 0 ? info.height : std::min(report.least_height, info.height);
    report.most_width = std::max(report.most_width, info.width);
    report.most_height = std::max(report.most_height, info.height);
    report.mean_width += info.width;
    report.mean_height += info.height;
    (info.format == ImageFormat::jpeg ? report.jpeg : info.format == ImageFormat::png ? report.png : report.bmp) += 1;
    report.misnamed += has_name_of(info.format, data.items[i].path) ? 0 : 1;
    ++good;
  }
  report.mean_width /= static_cast<double>(std::max<size_t>(good, 1));
  report.mean_height /= static_cast<double>(std::max<size_t>(good, 1));
}

void add_duplicates(const std::vector<Finding>& findings, const Dataset& data, CheckReport& report) {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<uint32_t>> same;
  for (size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].problem.empty()) {
      same[{findings[i].hash, findings[i].bytes}].push_back(static_cast<uint32_t>(i));
    }
  }
  for (auto& [key, items] : same) {
    if (items.size() < 2) {
      continue;
    }
    Duplicates group;
    const Item& first = data.items[items[0]];
    for (const uint32_t item : items) {
      group.labels_differ = group.labels_differ || data.items[item].label != first.label;
      group.across_split = group.across_split || data.items[item].train != first.train;
    }
    group.items = std::move(items);
    report.duplicates.push_back(std::move(group));
  }
  std::sort(report.duplicates.begin(), report.duplicates.end(),
            [](const Duplicates& a, const Duplicates& b) { return a.items < b.items; });
}

}  // namespace

CheckReport check_files(const Dataset& data, const CheckOptions& options) {
  ThreadPool pool(options.threads);
  struct Desk {
    Bytes file;
    Image image;
  };
  std::vector<Desk> desks(static_cast<size_t>(pool.size()));
  std::vector<Finding> findings(data.items.size());
  std::mutex mutex;
  size_t done = 0;
  constexpr size_t kStep = 100;
  pool.parallel_for(static_cast<int64_t>(data.items.size()), [&](int64_t piece, int thread) {
    const auto i = static_cast<size_t>(piece);
    Desk& desk = desks[static_cast<size_t>(thread)];
    findings[i] = examine(data, data.items[i], options.decode, desk.file, desk.image);
    const std::lock_guard lock(mutex);
    ++done;
    if (options.progress && (done % kStep == 0 || done == data.items.size())) {
      options.progress(done, data.items.size());
    }
  });
  CheckReport report;
  add_sizes(findings, data, report);
  add_duplicates(findings, data, report);
  return report;
}

}  // namespace gle::data
