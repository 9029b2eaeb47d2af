#include "tools/report/run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "models/files/file.h"
#include "tools/cli/config_file.h"

namespace gle::report {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uintmax_t kMostBytes = uintmax_t{256} << 20U;

// Empty if the file is not there.
std::string text_of(Run& run, const fs::path& path) {
  std::error_code problem;
  if (!fs::is_regular_file(path, problem)) {
    return {};
  }
  if (const uintmax_t size = fs::file_size(path, problem); problem || size > kMostBytes) {
    run.remarks.push_back(path.filename().string() + " is too large to be read: " + std::to_string(size) + " bytes");
    return {};
  }
  const std::vector<std::byte> bytes = read_file(path.string());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Discarded if it is no JSON. Nothing that we read is nested deeply, and what prints JSON recurses.
Json parsed(std::string_view text) {
  constexpr int kMostDepth = 16;
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth < kMostDepth; };
  return Json::parse(text, is_shallow, /*allow_exceptions=*/false);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Numbers numbers_in(const Json& object) {
  Numbers numbers;
  for (const auto& [key, value] : object.items()) {
    if (value.is_number()) {
      numbers.emplace_back(key, value.get<double>());
    }
  }
  return numbers;
}

template <class Number>
Number number_at(std::string_view bytes, size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

const double* Strategy::find(const std::string& metric) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& each) { return each.first == metric; });
  return found == metrics.end() ? nullptr : &found->second;
}

std::optional<Point> Run::best(const std::string& metric) const {
  const auto curve = evaluation.find(metric);
  if (curve == evaluation.end() || curve->second.empty()) {
    return std::nullopt;
  }
  return *std::max_element(curve->second.begin(), curve->second.end(),
                           [](const Point& a, const Point& b) { return a.y < b.y; });
}

fs::path Run::checkpoint() const {
  for (const char* name : {"best.gle", "last.gle"}) {
    if (const fs::path file = path / "checkpoints" / name; fs::is_regular_file(file)) {
      return file;
    }
  }
  return {};
}

void read_metrics(Run& run, std::string_view text) {
  size_t damaged = 0;
  double phase = 1;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const Json line = parsed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number() || !line.contains("kind")) {
      ++damaged;
      continue;
    }
    const double step = line["step"].get<double>();
    auto& curves = line["kind"] == "evaluation" ? run.evaluation : run.training;
    for (const auto& [name, value] : numbers_in(line)) {
      if (name == "epoch") {
        run.epochs.push_back({step, value});
      } else if (name == "phase") {
        if (value > phase) {
          run.phase_starts.push_back(step);
        }
        phase = value;
      } else if (name != "step") {
        curves[name].push_back({step, value});
      }
    }
  }
  if (damaged > 0) {
    run.remarks.push_back("metrics.jsonl: " + std::to_string(damaged) + " lines make no sense and are left out");
  }
}

// As gle-eval --json writes it: {"rows": [{"strategies": "L", "R@1": 0.6, ...}, ...], ...}
void read_strategies(Run& run, std::string_view text) {
  const Json file = parsed(text);
  if (!file.is_object() || !file.contains("rows") || !file["rows"].is_array()) {
    run.remarks.emplace_back("eval.json has no rows of strategies and is left out");
    return;
  }
  for (const Json& row : file["rows"]) {
    if (row.is_object() && row.contains("strategies")) {
      run.strategies.push_back({text_of(row["strategies"]), numbers_in(row)});
    }
  }
}

void read_environment(Run& run, std::string_view text) {
  const Json file = parsed(text);
  if (!file.is_object()) {
    run.remarks.emplace_back("env.json is no JSON object and is left out");
    return;
  }
  for (const auto& [key, value] : file.items()) {
    run.environment.emplace_back(key, text_of(value));
  }
}

// A record is u64 length, u32 crc, an event, u32 crc; an event begins with 0x09 f64 time, 0x10 varint step.
void add_timing(Run& run, std::string_view events) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kFrame = 16;
  constexpr size_t kTime = 9;
  double first = 0;
  double last = 0;
  int64_t step = 0;
  bool any = false;
  while (events.size() > kFrame) {
    const auto length = number_at<uint64_t>(events, 0);
    if (length > events.size() - kFrame) {
      break;
    }
    const std::string_view event = events.substr(12, length);
    events.remove_prefix(kFrame + length);
    if (event.size() < kTime || event[0] != 0x09) {
      continue;
    }
    const auto time = number_at<double>(event, 1);
    if (!std::isfinite(time)) {
      continue;
    }
    first = any ? first : time;
    last = time;
    any = true;
    uint64_t number = 0;
    for (size_t i = kTime + 1; event.size() > kTime && event[kTime] == 0x10 && i < std::min(event.size(), kTime + 10);
         ++i) {
      number |= uint64_t{static_cast<uint8_t>(event[i]) & 0x7FU} << (7 * (i - kTime - 1));
      if (!(static_cast<uint8_t>(event[i]) & 0x80U)) {
        step = static_cast<int64_t>(number);
        break;
      }
    }
  }
  if (any && last > first) {
    run.timing = run.timing.value_or(Timing{});
    run.timing->seconds += last - first;
    run.timing->steps = std::max(run.timing->steps, step);
    ++run.timing->sessions;
  }
}

Run read_run(const fs::path& path) {
  std::error_code problem;
  const fs::path folder = fs::canonical(path, problem);
  if (problem || !fs::is_directory(folder)) {
    fail(ErrorCode::usage, path.string(), ": no such folder; the folder of a run that gle-train made is expected");
  }
  Run run{.name = folder.filename().string(), .path = folder};
  const std::string metrics = text_of(run, folder / "metrics.jsonl");
  const std::string config = text_of(run, folder / "config.toml");
  if (metrics.empty() && config.empty() && run.checkpoint().empty()) {
    fail(ErrorCode::usage, path.string(), ": has no metrics.jsonl, config.toml or checkpoints; the folder of a run ",
         "that gle-train made is expected");
  }
  read_metrics(run, metrics);
  try {
    run.has_config = !config.empty();
    tools::read_config(run.config, config, "config.toml");
  } catch (const Error& e) {
    run.has_config = false;
    run.remarks.emplace_back(e.what());
  }
  run.command = text_of(run, folder / "command.txt");
  if (const std::string text = text_of(run, folder / "env.json"); !text.empty()) {
    read_environment(run, text);
  }
  if (const std::string text = text_of(run, folder / "eval.json"); !text.empty()) {
    read_strategies(run, text);
  }
  std::vector<fs::path> event_files;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      event_files.push_back(entry.path());
    }
  }
  std::sort(event_files.begin(), event_files.end());
  for (const fs::path& file : event_files) {
    add_timing(run, text_of(run, file));
  }
  return run;
}

}  // namespace gle::report
