#pragma once

#include <functional>
#include <string>

#include "engine/thread_pool.h"

namespace gle {
class Tensor;
}

namespace gle::cpu {

enum class Isa { baseline, avx2, avx512 };

struct RuntimeOptions {
  Isa isa;
  int threads;
  bool library;
  std::string note;
};

// oneDNN where this build has it (onednn.cpp), else nothing (onednn_absent.cpp).
class OneDnn;

// What the CPU backend is apart from its kernels; the same for every instruction set, so compiled once.
struct CpuRuntime {
  explicit CpuRuntime(const RuntimeOptions& options);
  ~CpuRuntime();
  CpuRuntime(const CpuRuntime&) = delete;
  CpuRuntime& operator=(const CpuRuntime&) = delete;

  ThreadPool pool;
  OneDnn* library;  // null: kernels of our own
  std::string description;
};

// Transfers between pitched and plain memory, and what else gains nothing from wide vectors.
void upload(const void* host, const Tensor& to);
void download(const Tensor& from, void* host);
void check_labels(const Tensor& labels, int64_t classes);
void run_step(const std::function<void()>& step);

}  // namespace gle::cpu
