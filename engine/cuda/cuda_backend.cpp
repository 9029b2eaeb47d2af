#include "engine/cuda/cuda_backend.h"

#include "engine/cuda/blas.h"
#include "engine/cuda/convolutions.h"

namespace gle::cuda {

CudaBackend::CudaBackend(const CudaOptions& options) : CudaBackend(options, std::make_unique<CudaRuntime>(options)) {
  // Here, where the destructor runs if one of them throws.
  blas_ = std::make_unique<Blas>(*runtime_, allocator(), options);
  convolutions_ = std::make_unique<Convolutions>(*runtime_, options);
}

CudaBackend::CudaBackend(const CudaOptions& options, std::unique_ptr<CudaRuntime> runtime)
    : Backend(runtime->memory.source(), options.memory_limit), runtime_(std::move(runtime)), graphs_(options.graphs) {}

CudaBackend::~CudaBackend() {
  (void)cudaStreamSynchronize(runtime_->compute.get());
  (void)cudaStreamSynchronize(runtime_->copies.get());
  convolutions_.reset();
  blas_.reset();
  // The allocator outlives the runtime that its memory comes from.
  workspace().clear();
  allocator().trim();
}

const char* CudaBackend::description() const { return runtime_->description.c_str(); }

// The first step of a kind loads kernels and plans convolutions, neither of which belongs into a graph.
void CudaBackend::run_step(int64_t kind, const std::function<void()>& step) {
  runtime_->require_waiting("run_step()");
  if (!graphs_ || kind_ != kind) {
    kind_ = kind;
    step();
    return;
  }
  runtime_->begin("run_step");
  const cudaStream_t stream = runtime_->compute.get();
  runtime_->graph.begin(stream);
  runtime_->memory.hold(true);
  try {
    step();
    runtime_->graph.launch(stream);
  } catch (...) {
    runtime_->graph.abandon(stream);
    runtime_->uploads.seal(stream, "run_step");
    runtime_->memory.hold(false);
    throw;
  }
  runtime_->uploads.seal(stream, "run_step");
  runtime_->memory.hold(false);
}

}  // namespace gle::cuda
