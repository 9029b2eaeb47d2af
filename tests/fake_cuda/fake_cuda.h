#pragma once

// Stand-ins for the functions of cudart, cuBLAS and cuDNN that a backend calls, written from NVIDIA's headers and
// manuals and compiled against those headers. Streams are lazy: work is queued and runs only when a synchronisation
// asks for it, streams in random order by seed as far as events allow, so a missing synchronisation or a missing wait
// shows as stale data. Misuse that a GPU would not always show is reported through simt::take_reports().

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake_cuda {

struct Options {
  uint64_t seed = 1;
  // Off: each call runs at once, which hides what lazy streams find.
  bool lazy = true;
  int devices = 2;
  // Of each device; beyond it allocations fail.
  size_t memory_bytes = size_t{4} << 30;
  // What cudaGetDeviceCount answers: 34, 35 and 100 are machines without a GPU.
  cudaError_t device_count_status = cudaSuccess;
  // A seeded bug: this stream, counted from 0 as created since reset(), waits for no event.
  int deaf_stream = -1;
};

// Drops all queued work, a device's error included; streams and memory stay.
void reset(const Options& options);
const Options& options();

struct Statistics {
  uint64_t kernels = 0;
  uint64_t graph_launches = 0;
  // Copies that were asked to be asynchronous but cannot be, since their host memory is not pinned.
  uint64_t pageable_copies = 0;
  size_t device_bytes = 0;
  size_t pinned_bytes = 0;
  size_t streams = 0;
  size_t events = 0;
  size_t handles = 0;  // of cuBLAS and cuDNN, and descriptors of the latter
};
Statistics statistics();

// The next work of the device fails with this status, as after an illegal address; all calls then return it.
void break_device(int device, cudaError_t status);

}  // namespace fake_cuda
