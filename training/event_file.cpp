// Protocol buffers, as far as scalars need them:
//   Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog log = 7; }
//   Summary { repeated Value { string tag = 1; float simple_value = 2; } value = 1; }   SessionLog { START = 1 } status
// A record is u64 length, u32 masked crc of it, the event, u32 masked crc of that.
#include "training/event_file.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <span>

#include "engine/error.h"
#include "models/files/crc32c.h"

namespace gle {

namespace {

void put_varint(std::string& to, uint64_t value) {
  while (value >= 0x80) {
    to += static_cast<char>((value & 0x7FU) | 0x80U);
    value >>= 7U;
  }
  to += static_cast<char>(value);
}

template <class Number>
void put_fixed(std::string& to, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

enum class Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void put_tag(std::string& to, uint32_t field, Wire wire) { put_varint(to, field << 3U | static_cast<uint32_t>(wire)); }

void put_bytes(std::string& to, uint32_t field, const std::string& bytes) {
  put_tag(to, field, Wire::bytes);
  put_varint(to, bytes.size());
  to += bytes;
}

uint32_t masked(const std::string& bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, int64_t begin) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const std::string name = "events.out.tfevents." + std::to_string(static_cast<int64_t>(wall_time())) + "." + host +
                           "." + std::to_string(::getpid()) + ".0";
  const std::filesystem::path path = folder / name;
  file_ = std::fopen(path.c_str(), "wbe");
  if (!file_) {
    fail(ErrorCode::io, path.string(), ": cannot be written: ", std::strerror(errno));
  }
  std::string version;
  put_bytes(version, 3, "brain.Event:2");
  write(0, version);
  std::string start;
  put_tag(start, 1, Wire::varint);
  put_varint(start, 1);
  std::string session;
  put_bytes(session, 7, start);
  write(begin, session);
}

EventFile::~EventFile() { std::fclose(file_); }

void EventFile::write(int64_t step, const std::string& what) {
  std::string event;
  put_tag(event, 1, Wire::fixed64);
  put_fixed(event, wall_time());
  put_tag(event, 2, Wire::varint);
  put_varint(event, static_cast<uint64_t>(step));
  event += what;
  std::string record;
  put_fixed(record, static_cast<uint64_t>(event.size()));
  put_fixed(record, masked(record));
  record += event;
  put_fixed(record, masked(event));
  // Curves are a convenience: a full disk is for the checkpoints to report.
  static_cast<void>(std::fwrite(record.data(), 1, record.size(), file_));
}

void EventFile::add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    put_tag(value, 2, Wire::fixed32);
    put_fixed(value, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string event;
  put_bytes(event, 5, summary);
  write(step, event);
}

void EventFile::flush() { std::fflush(file_); }

}  // namespace gle
