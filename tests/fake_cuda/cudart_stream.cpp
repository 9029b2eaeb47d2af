// Streams, events, captured graphs.

#include <algorithm>
#include <string>

#include "fake_cuda/scheduler.h"

namespace fake_cuda {

namespace {

CUstream_st* stream_of(cudaStream_t handle) { return scheduler().find(handle, current_device()); }

cudaError_t no_stream(const char* function) {
  return misuse(cudaErrorInvalidResourceHandle, std::string(function) + ": no such stream");
}

// What is not allowed while a stream is captured spoils the capture.
cudaError_t spoil(Capture& capture, const char* function) {
  capture.valid = false;
  return misuse(cudaErrorStreamCaptureUnsupported, std::string(function) + ": while the stream is captured");
}

cudaError_t state_of(int device) {
  const cudaError_t status = scheduler().broken[static_cast<size_t>(device)];
  return status == cudaSuccess ? cudaSuccess : fail(status);
}

void append_unique(std::vector<size_t>& to, const std::vector<size_t>& from) {
  for (const size_t node : from) {
    if (std::find(to.begin(), to.end(), node) == to.end()) {
      to.push_back(node);
    }
  }
}

// Whether everything captured leads to the end of the origin's work.
bool joined(const Capture& capture) {
  std::vector<bool> reached(capture.nodes.size(), false);
  std::vector<size_t> open = capture.origin->capture_tail;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (!reached[node]) {
      reached[node] = true;
      open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
    }
  }
  return std::all_of(reached.begin(), reached.end(), [](bool yes) { return yes; });
}

// Events of one stream differ by the work between them.
double clock_now = 0.0;

}  // namespace

}  // namespace fake_cuda

using fake_cuda::Capture;
using fake_cuda::fail;
using fake_cuda::misuse;
using fake_cuda::scheduler;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const std::lock_guard lock(scheduler().mutex);
  *stream = scheduler().create(fake_cuda::current_device(), (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = handle == nullptr ? nullptr : fake_cuda::stream_of(handle);
  if (stream == nullptr) {
    return fake_cuda::no_stream("cudaStreamDestroy");
  }
  scheduler().destroy(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr) {
    return fake_cuda::no_stream("cudaStreamSynchronize");
  }
  if (stream->capture) {
    return fake_cuda::spoil(*stream->capture, "cudaStreamSynchronize");
  }
  scheduler().finish(*stream);
  return fake_cuda::state_of(stream->device);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr) {
    return fake_cuda::no_stream("cudaStreamQuery");
  }
  scheduler().progress();
  const cudaError_t status = fake_cuda::state_of(stream->device);
  return status != cudaSuccess ? status : stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard lock(scheduler().mutex);
  if (scheduler().capturing()) {
    return misuse(cudaErrorStreamCaptureUnsupported, "cudaDeviceSynchronize: while a stream is captured");
  }
  scheduler().finish_device(fake_cuda::current_device());
  return fake_cuda::state_of(fake_cuda::current_device());
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  return stream == nullptr ? fake_cuda::no_stream("cudaLaunchHostFunc")
                           : scheduler().submit(*stream, [=] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const std::lock_guard lock(scheduler().mutex);
  *event = new CUevent_st;
  (*event)->device = fake_cuda::current_device();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  ++scheduler().statistics.events;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(scheduler().mutex);
  delete event;
  --scheduler().statistics.events;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr || stream->device != event->device) {
    return misuse(cudaErrorInvalidResourceHandle, "cudaEventRecord: no such stream, or one of another device");
  }
  if (stream->capture) {
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    return cudaSuccess;
  }
  event->capture = nullptr;
  event->recorded = scheduler().mark(*stream, [time = event->time] { *time = fake_cuda::clock_now += 0.01; });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr) {
    return fake_cuda::no_stream("cudaStreamWaitEvent");
  }
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) {
      return misuse(cudaErrorStreamCaptureUnsupported, "cudaStreamWaitEvent: an event of another capture");
    }
    stream->capture = event->capture;
    stream->capture->streams.insert(stream);
    fake_cuda::append_unique(stream->capture_tail, event->capture_tail);
    return cudaSuccess;
  }
  if (stream->capture) {
    stream->capture->valid = false;
    return misuse(cudaErrorStreamCaptureUnsupported, "cudaStreamWaitEvent: a captured stream waits for work outside");
  }
  const bool deaf = stream->number >= 0 && stream->number == scheduler().options.deaf_stream;
  if (event->recorded && !deaf) {
    scheduler().wait_for(*stream, event->recorded);
  }
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(scheduler().mutex);
  if (event->capture) {
    return fake_cuda::spoil(*event->capture, "cudaEventSynchronize");
  }
  if (event->recorded) {
    const auto done = event->recorded;
    scheduler().finish_until(*done);
  }
  return fake_cuda::state_of(event->device);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(scheduler().mutex);
  if (event->capture) {
    return fake_cuda::spoil(*event->capture, "cudaEventQuery");
  }
  scheduler().progress();
  const cudaError_t status = fake_cuda::state_of(event->device);
  return status != cudaSuccess ? status : !event->recorded || *event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(scheduler().mutex);
  if (!start->timed || !end->timed || !start->recorded || !end->recorded) {
    return misuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: events without timing, or never recorded");
  }
  if (!*start->recorded || !*end->recorded) {
    return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>(*end->time - *start->time);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = handle == nullptr ? nullptr : fake_cuda::stream_of(handle);
  if (stream == nullptr || stream->capture) {
    return misuse(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture: the default stream, or captured already");
  }
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
  stream->capture->streams.insert(stream);
  stream->capture_tail.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const std::lock_guard lock(scheduler().mutex);
  *graph = nullptr;
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr || !stream->capture || stream->capture->origin != stream) {
    return misuse(cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture: not the stream where a capture began");
  }
  const std::shared_ptr<Capture> capture = stream->capture;
  const bool all_joined = fake_cuda::joined(*capture);
  for (CUstream_st* member : capture->streams) {
    member->capture = nullptr;
    member->capture_tail.clear();
  }
  if (!capture->valid) {
    return fail(cudaErrorStreamCaptureInvalidated);
  }
  if (!all_joined) {
    return misuse(cudaErrorStreamCaptureUnjoined, "cudaStreamEndCapture: work of another stream was not joined");
  }
  *graph = new CUgraph_st{capture->nodes};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  if (stream == nullptr) {
    return fake_cuda::no_stream("cudaStreamIsCapturing");
  }
  *status = !stream->capture         ? cudaStreamCaptureStatusNone
            : stream->capture->valid ? cudaStreamCaptureStatusActive
                                     : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) {
    return misuse(cudaErrorInvalidValue, "cudaGraphGetNodes: the stand-in only counts");
  }
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

// What the manual calls the same topology, by number and links of the nodes; their work may be new.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  const auto& before = executable->nodes;
  const auto& now = graph->nodes;
  const bool same = std::equal(before.begin(), before.end(), now.begin(), now.end(),
                               [](const auto& a, const auto& b) { return a.after == b.after; });
  result->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (!same) {
    return fail(cudaErrorGraphExecUpdateFailure);
  }
  executable->nodes = now;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = fake_cuda::stream_of(handle);
  return stream == nullptr ? fake_cuda::no_stream("cudaGraphLaunch")
                           : scheduler().run_graph(*stream, executable->nodes);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

}  // extern "C"
