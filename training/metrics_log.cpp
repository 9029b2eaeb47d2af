#include "training/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "engine/error.h"
#include "models/files/atomic_file.h"

namespace gle {

namespace {

constexpr std::string_view kStep = "{\"step\":";
constexpr std::string_view kEvaluation = "\"kind\":\"evaluation\"";

// The number that follows `name` in a line.
template <class Number>
std::optional<Number> number_after(std::string_view line, std::string_view name) {
  const size_t found = line.find(name);
  Number number = 0;
  if (found == line.npos || !line.ends_with('}') ||
      std::from_chars(line.data() + found + name.size(), line.data() + line.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

bool is_evaluation(std::string_view line) { return line.find(kEvaluation) != line.npos; }

bool stays(std::string_view line, int64_t step, bool evaluated) {
  const auto at = number_after<int64_t>(line, kStep);
  return at && line.starts_with(kStep) && (*at < step || (*at == step && (evaluated || !is_evaluation(line))));
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Calls take(line) for every line that has an end.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    take(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) {
    return "null";
  }
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr const char* kDigits = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

MetricsLog::MetricsLog(std::filesystem::path path, int64_t step, bool evaluated) : path_(std::move(path)) {
  const std::string before = contents(path_);
  std::string kept;
  for_each_line(before, [&](std::string_view line) {
    if (stays(line, step, evaluated)) {
      kept.append(line).push_back('\n');
    }
  });
  if (kept != before) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(kept.data(), kept.size()));
    write_atomically(path_, {&bytes, 1});
  }
  descriptor_ = ::open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ == -1) {
    fail(ErrorCode::io, path_.string(), ": cannot be written: ", std::strerror(errno));
  }
}

MetricsLog::~MetricsLog() { ::close(descriptor_); }

void MetricsLog::add(int64_t step, LogKind kind, const std::vector<std::pair<std::string, double>>& numbers) {
  std::string line = std::string(kStep) + std::to_string(step) + ",\"kind\":\"" +
                     (kind == LogKind::training ? "training" : "evaluation") + "\"";
  for (const auto& [name, value] : numbers) {
    line.append(",").append(json_text(name)).append(":").append(json_number(value));
  }
  line += "}\n";
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno != EINTR) {
      fail(ErrorCode::io, path_.string(), ": writing failed: ", std::strerror(errno));
    }
    left.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
}

void MetricsLog::sync() {
  if (::fdatasync(descriptor_) != 0) {
    fail(ErrorCode::io, path_.string(), ": syncing failed: ", std::strerror(errno));
  }
}

std::vector<LoggedValue> logged_evaluations(const std::filesystem::path& path, const std::string& metric) {
  std::vector<LoggedValue> values;
  const std::string text = contents(path);
  const std::string name = json_text(metric) + ":";
  for_each_line(text, [&](std::string_view line) {
    const auto step = number_after<int64_t>(line, kStep);
    const auto value = number_after<double>(line, name);
    if (step && value && is_evaluation(line)) {
      values.push_back({*step, *value});
    }
  });
  return values;
}

}  // namespace gle
