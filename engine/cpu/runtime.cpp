#include "engine/cpu/runtime.h"

#include <cstring>

#include "engine/cpu/cpu.h"
#include "engine/cpu/onednn.h"
#include "engine/error.h"
#include "engine/tensor.h"

namespace gle::cpu {

CpuRuntime::CpuRuntime(const RuntimeOptions& options)
    : pool(options.threads), library(options.library ? OneDnn::open(options.isa, pool.size()) : nullptr) {
  description = std::string("cpu, ") + name_of(options.isa) + ", " + std::to_string(pool.size()) +
                (pool.size() == 1 ? " thread" : " threads") + ", " +
                (library ? std::string("oneDNN ") + library->version() : "own kernels") +
                (options.note.empty() ? "" : " (" + options.note + ")");
}

CpuRuntime::~CpuRuntime() { OneDnn::close(library); }

void upload(const void* host, const Tensor& to) {
  const size_t row = static_cast<size_t>(to.channels()) * bytes_of(to.type());
  const size_t pitch = static_cast<size_t>(to.pitch()) * bytes_of(to.type());
  const auto* from = static_cast<const std::byte*>(host);
  for (size_t i = 0; i < static_cast<size_t>(to.rows()); ++i) {
    std::memcpy(to.bytes() + i * pitch, from + i * row, row);
  }
}

void download(const Tensor& from, void* host) {
  const size_t row = static_cast<size_t>(from.channels()) * bytes_of(from.type());
  const size_t pitch = static_cast<size_t>(from.pitch()) * bytes_of(from.type());
  auto* to = static_cast<std::byte*>(host);
  for (size_t i = 0; i < static_cast<size_t>(from.rows()); ++i) {
    std::memcpy(to + i * row, from.bytes() + i * pitch, row);
  }
}

void check_labels(const Tensor& labels, int64_t classes) {
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const int32_t label = labels.ints()[i];
    if (label < 0 || label >= classes) {
      fail(ErrorCode::data, "labels: label ", label, " of sample ", i, " is not one of ", classes, " classes");
    }
  }
}

void run_step(const std::function<void()>& step) { step(); }

}  // namespace gle::cpu
