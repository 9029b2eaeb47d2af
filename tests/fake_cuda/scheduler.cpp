#include "fake_cuda/scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "simt/memory.h"
#include "simt/reports.h"

namespace fake_cuda {

Scheduler::Scheduler() : broken(simt::kDevices, cudaSuccess), failing(broken), random_(options.seed) {
  for (int device = 0; device < simt::kDevices; ++device) {
    defaults_.push_back(std::make_unique<CUstream_st>());
    defaults_.back()->device = device;
  }
}

CUstream_st* Scheduler::create(int device, bool blocking) {
  streams_.push_back(std::make_unique<CUstream_st>());
  streams_.back()->device = device;
  streams_.back()->number = created_++;
  streams_.back()->blocking = blocking;
  ++statistics.streams;
  return streams_.back().get();
}

void Scheduler::destroy(CUstream_st* stream) {
  // Its work is still to be done; the stream goes with the last of it.
  stream->destroyed = true;
  --statistics.streams;
}

CUstream_st* Scheduler::find(cudaStream_t handle, int device) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return defaults_[static_cast<size_t>(device)].get();
  }
  for (const auto& stream : streams_) {
    if (stream.get() == handle && !stream->destroyed) {
      return stream.get();
    }
  }
  return nullptr;
}

Task& Scheduler::append(CUstream_st& stream, Work work) {
  Task task;
  task.work = std::move(work);
  CUstream_st* const legacy = defaults_[static_cast<size_t>(stream.device)].get();
  if (&stream == legacy) {
    for (const auto& other : streams_) {
      if (other->blocking && other->device == stream.device && other->last) {
        task.after.push_back(other->last);
      }
    }
  } else if (stream.blocking && legacy->last) {
    task.after.push_back(legacy->last);
  }
  stream.last = task.done;
  stream.queue.push_back(std::move(task));
  return stream.queue.back();
}

cudaError_t Scheduler::submit(CUstream_st& stream, Work work) {
  if (stream.capture) {
    if (!stream.capture->valid) {
      return fail(cudaErrorStreamCaptureInvalidated);
    }
    stream.capture->nodes.push_back({std::move(work), stream.capture_tail});
    stream.capture_tail = {stream.capture->nodes.size() - 1};
    return cudaSuccess;
  }
  append(stream, std::move(work));
  if (!options.lazy) {
    finish(stream);
  }
  const cudaError_t status = broken[static_cast<size_t>(stream.device)];
  return status == cudaSuccess ? cudaSuccess : fail(status);
}

std::shared_ptr<const bool> Scheduler::mark(CUstream_st& stream, Work work) {
  std::shared_ptr<const bool> done = append(stream, std::move(work)).done;
  if (!options.lazy) {
    finish(stream);
  }
  return done;
}

void Scheduler::wait_for(CUstream_st& stream, std::shared_ptr<const bool> done) {
  append(stream, [] {}).after.push_back(std::move(done));
}

cudaError_t Scheduler::submit_when(CUstream_st& stream, std::function<bool()> ready, Work work) {
  if (stream.capture) {
    return misuse(cudaErrorStreamCaptureUnsupported, "the stand-in for NCCL does not record graphs");
  }
  append(stream, std::move(work)).ready = std::move(ready);
  if (!options.lazy) {
    finish(stream);
  }
  const cudaError_t status = broken[static_cast<size_t>(stream.device)];
  return status == cudaSuccess ? cudaSuccess : fail(status);
}

bool Scheduler::waits_outside() const {
  const auto waits = [](const auto& stream) { return !stream->queue.empty() && stream->queue.front().ready; };
  return std::any_of(streams_.begin(), streams_.end(), waits) || std::any_of(defaults_.begin(), defaults_.end(), waits);
}

bool Scheduler::step(CUstream_st& stream) {
  if (stream.queue.empty()) {
    return false;
  }
  const auto& after = stream.queue.front().after;
  if (!std::all_of(after.begin(), after.end(), [](const auto& done) { return *done; })) {
    return false;
  }
  if (stream.queue.front().ready && !stream.queue.front().ready()) {
    return false;
  }
  const Task task = std::move(stream.queue.front());
  stream.queue.pop_front();
  cudaError_t& status = broken[static_cast<size_t>(stream.device)];
  if (status == cudaSuccess) {
    status = std::exchange(failing[static_cast<size_t>(stream.device)], cudaSuccess);
  }
  if (status == cudaSuccess) {
    task.work();
  }
  *task.done = true;
  return true;
}

// Each stream has a random priority, redrawn now and then: the highest that can move moves.
template <class F>
void Scheduler::run_while(const F& unfinished) {
  std::map<CUstream_st*, uint64_t> priority;
  std::vector<CUstream_st*> order;
  const auto draw = [&] {
    order.clear();
    for (const auto* group : {&defaults_, &streams_}) {
      for (const auto& stream : *group) {
        priority.try_emplace(stream.get(), random_());
        order.push_back(stream.get());
      }
    }
    std::sort(order.begin(), order.end(), [&](CUstream_st* a, CUstream_st* b) { return priority[a] > priority[b]; });
  };
  draw();
  while (unfinished()) {
    if (std::none_of(order.begin(), order.end(), [&](CUstream_st* stream) { return step(*stream); })) {
      if (waits_outside()) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      std::fprintf(stderr, "fake_cuda: streams wait for each other\n");
      std::abort();
    }
    if (random_() % 8 == 0) {
      priority[order[random_() % order.size()]] = random_();
      draw();
    }
  }
  std::erase_if(streams_, [](const auto& stream) { return stream->destroyed && stream->queue.empty(); });
}

void Scheduler::finish(CUstream_st& stream) {
  run_while([&] { return !stream.queue.empty(); });
}

void Scheduler::finish_device(int device) {
  run_while([&] {
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](const auto& stream) { return stream->device == device && !stream->queue.empty(); }) ||
           !defaults_[static_cast<size_t>(device)]->queue.empty();
  });
}

void Scheduler::finish_until(const bool& done) {
  run_while([&] { return !done; });
}

void Scheduler::progress() {
  auto steps = static_cast<int>(random_() % 3);
  const auto queued = [&] {
    const auto has_work = [](const auto& stream) { return !stream->queue.empty(); };
    return std::any_of(streams_.begin(), streams_.end(), has_work) ||
           std::any_of(defaults_.begin(), defaults_.end(), has_work);
  };
  run_while([&] { return steps-- > 0 && queued(); });
}

void Scheduler::drop_all() {
  created_ = 0;
  for (const auto* group : {&defaults_, &streams_}) {
    for (const auto& stream : *group) {
      stream->queue.clear();
      stream->last = nullptr;
      stream->capture = nullptr;
      stream->capture_tail.clear();
    }
  }
  std::erase_if(streams_, [](const auto& stream) { return stream->destroyed; });
  std::fill(broken.begin(), broken.end(), cudaSuccess);
  std::fill(failing.begin(), failing.end(), cudaSuccess);
  random_.seed(options.seed);
}

cudaError_t Scheduler::run_graph(CUstream_st& stream, const std::vector<Node>& nodes) {
  ++statistics.graph_launches;
  return submit(stream, [this, nodes] {
    std::vector<bool> done(nodes.size(), false);
    for (size_t left = nodes.size(); left > 0; --left) {
      std::vector<size_t> ready;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const auto& after = nodes[i].after;
        if (!done[i] && std::all_of(after.begin(), after.end(), [&](size_t node) { return done[node]; })) {
          ready.push_back(i);
        }
      }
      const size_t next = ready[random_() % ready.size()];
      nodes[next].work();
      done[next] = true;
    }
  });
}

bool Scheduler::capturing() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream->capture != nullptr; });
}

bool Scheduler::capturing_strictly() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->capture != nullptr && !stream->capture->relaxed; });
}

Scheduler& scheduler() {
  static Scheduler* const instance = new Scheduler;  // outlives every static of the backend under test
  return *instance;
}

const Options& options() { return scheduler().options; }

void reset(const Options& options) {
  const std::lock_guard lock(scheduler().mutex);
  scheduler().options = options;
  scheduler().drop_all();
}

Statistics statistics() {
  const std::lock_guard lock(scheduler().mutex);
  return scheduler().statistics;
}

void break_device(int device, cudaError_t status) {
  const std::lock_guard lock(scheduler().mutex);
  scheduler().failing[static_cast<size_t>(device)] = status;
}

cudaError_t misuse(cudaError_t status, const std::string& text) {
  simt::report(simt::Kind::api, text);
  return fail(status);
}

}  // namespace fake_cuda
