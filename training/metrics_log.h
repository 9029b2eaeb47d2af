#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gle {

enum class LogKind { training, evaluation };

// metrics.jsonl: one object a line, nothing in it that depends on time or machine. Opened for a run that stands at
// `step` it drops what was written beyond (a torn last line too), so that a resumed run ends in the same bytes as one
// that was never stopped.
class MetricsLog {
 public:
  // `evaluated`: the evaluation at `step` itself is done and stays.
  MetricsLog(std::filesystem::path path, int64_t step, bool evaluated);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // {"step":12,"kind":"training","loss":0.5,...}
  void add(int64_t step, LogKind kind, const std::vector<std::pair<std::string, double>>& numbers);
  // Everything so far is on the disk.
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// A metric at each evaluation that a metrics.jsonl tells of, in its order; none if there is no file.
struct LoggedValue {
  int64_t step = 0;
  double value = 0;

  bool operator==(const LoggedValue&) const = default;
};
std::vector<LoggedValue> logged_evaluations(const std::filesystem::path& path, const std::string& metric);

// A number as JSON has it, the shortest that reads back as the same; null if it is not finite.
std::string json_number(double value);
// A text as JSON has it, and TOML too.
std::string json_text(const std::string& text);

}  // namespace gle
