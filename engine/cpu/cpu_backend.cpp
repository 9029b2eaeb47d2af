#include "engine/cpu/cpu_backend.h"

namespace gle::cpu {

namespace GLE_ISA {

CpuBackend::CpuBackend(const RuntimeOptions& options, size_t memory_limit)
    : Backend(host_memory(), memory_limit), runtime_(options) {}

CpuBackend::~CpuBackend() = default;

const char* CpuBackend::description() const { return runtime_.description.c_str(); }
void CpuBackend::upload(const void* host, const Tensor& to) { cpu::upload(host, to); }
void CpuBackend::download(const Tensor& from, void* host) { cpu::download(from, host); }
void CpuBackend::synchronise() {}
void CpuBackend::prefetch(const void* host, const Tensor& to) { cpu::upload(host, to); }
void CpuBackend::await_prefetched() {}
void CpuBackend::run_step(int64_t, const std::function<void()>& step) { cpu::run_step(step); }
void CpuBackend::check_labels(const Tensor& labels, int64_t classes) { cpu::check_labels(labels, classes); }

Backend* new_backend(const RuntimeOptions& options, size_t memory_limit) {
  return new CpuBackend(options, memory_limit);
}

}  // namespace GLE_ISA

}  // namespace gle::cpu
