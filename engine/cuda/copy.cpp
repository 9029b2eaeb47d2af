// Transfers. What goes to the device is copied to page-locked memory first, so that the caller's memory is free at
// once and nobody waits; what comes back waits for the kernels that make it.
#include <cstring>

#include "engine/cuda/check.h"
#include "engine/cuda/cuda_backend.h"

namespace gle::cuda {

namespace {

struct Rows {
  size_t width;  // bytes of a row, and from one to the next on the device
  size_t pitch;
  size_t count;
  bool dense;

  explicit Rows(const Tensor& t)
      : width(static_cast<size_t>(t.channels()) * bytes_of(t.type())),
        pitch(static_cast<size_t>(t.pitch()) * bytes_of(t.type())),
        count(static_cast<size_t>(t.rows())),
        dense(t.dense()) {}
};

void send(const char* op, const void* host, const Tensor& to, PinnedStaging& staging, cudaStream_t stream) {
  const Rows rows(to);
  void* pinned = staging.take(rows.width * rows.count, op);
  std::memcpy(pinned, host, rows.width * rows.count);
  check(rows.dense ? cudaMemcpyAsync(to.bytes(), pinned, rows.width * rows.count, cudaMemcpyHostToDevice, stream)
                   : cudaMemcpy2DAsync(to.bytes(), rows.pitch, pinned, rows.width, rows.width, rows.count,
                                       cudaMemcpyHostToDevice, stream),
        op);
}

}  // namespace

void CudaBackend::upload(const void* host, const Tensor& to) {
  runtime_->begin("upload");
  send("upload", host, to, runtime_->uploads, runtime_->compute.get());
  if (!runtime_->graph.recording()) {  // else run_step() does, when the copy is on its way
    runtime_->uploads.seal(runtime_->compute.get(), "upload");
  }
}

void CudaBackend::download(const Tensor& from, void* host) {
  runtime_->require_waiting("download()");
  runtime_->begin("download");
  const Rows rows(from);
  check(rows.dense ? cudaMemcpyAsync(host, from.bytes(), rows.width * rows.count, cudaMemcpyDeviceToHost,
                                     runtime_->compute.get())
                   : cudaMemcpy2DAsync(host, rows.width, from.bytes(), rows.pitch, rows.width, rows.count,
                                       cudaMemcpyDeviceToHost, runtime_->compute.get()),
        "download");
  runtime_->synchronise();
}

void CudaBackend::synchronise() { runtime_->synchronise(); }

// The copies wait for the kernels before the last await_prefetched(), the last that may have used `to`, and so run
// beside those since. Before the first such call it may be any.
void CudaBackend::prefetch(const void* host, const Tensor& to) {
  runtime_->begin("prefetch");
  if (!runtime_->awaited) {
    runtime_->require_waiting("the first prefetch()");
    check(cudaEventRecord(runtime_->step_begun.get(), runtime_->compute.get()), "prefetch");
  }
  check(cudaStreamWaitEvent(runtime_->copies.get(), runtime_->step_begun.get(), 0), "prefetch");
  send("prefetch", host, to, runtime_->prefetches, runtime_->copies.get());
  runtime_->prefetches.seal(runtime_->copies.get(), "prefetch");
}

void CudaBackend::await_prefetched() {
  runtime_->require_waiting("await_prefetched()");
  runtime_->begin("await_prefetched");
  const cudaStream_t compute = runtime_->compute.get();
  runtime_->awaited = true;
  check(cudaEventRecord(runtime_->step_begun.get(), compute), "await_prefetched");
  check(cudaEventRecord(runtime_->arrived.get(), runtime_->copies.get()), "await_prefetched");
  check(cudaStreamWaitEvent(compute, runtime_->arrived.get(), 0), "await_prefetched");
}

}  // namespace gle::cuda
