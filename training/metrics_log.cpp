#include "training/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>

#include "engine/error.h"
#include "models/files/atomic_file.h"

namespace gle {

namespace {

constexpr std::string_view kStep = "{\"step\":";
constexpr std::string_view kEvaluation = "\"kind\":\"evaluation\"";

bool stays(std::string_view line, int64_t step, bool evaluated) {
  int64_t at = 0;
  if (!line.starts_with(kStep) || !line.ends_with('}')) {
    return false;
  }
  const auto [end, problem] = std::from_chars(line.data() + kStep.size(), line.data() + line.size(), at);
  if (problem != std::errc()) {
    return false;
  }
  const bool evaluation = line.find(kEvaluation) != line.npos;
  return at < step || (at == step && (evaluated || !evaluation));
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
  std::string before;
  std::string kept;
  {
    std::ifstream file(path_, std::ios::binary);
    before.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string_view left = before;
  while (!left.empty()) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    if (end != left.npos && stays(line, step, evaluated)) {
      kept.append(line).push_back('\n');
    }
    left.remove_prefix(end == left.npos ? left.size() : end + 1);
  }
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

}  // namespace gle
