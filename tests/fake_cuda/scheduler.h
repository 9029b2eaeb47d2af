#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "fake_cuda/fake_cuda.h"

namespace fake_cuda {

using Work = std::function<void()>;

// One piece of work on a stream. It may run when all it waits for is done.
struct Task {
  Work work;
  std::vector<std::shared_ptr<const bool>> after;
  std::shared_ptr<bool> done = std::make_shared<bool>(false);
  std::function<bool()> ready = {};  // what it waits for outside this process; empty: nothing
};

struct Node {
  Work work;
  std::vector<size_t> after;
};

// A capture under way, or what it left.
struct Capture {
  std::vector<Node> nodes;
  std::set<CUstream_st*> streams;
  CUstream_st* origin = nullptr;
  bool valid = true;
  bool relaxed = false;  // the mode that allows calls which take no part in the stream, such as cudaMalloc
};

}  // namespace fake_cuda

struct CUgraph_st {
  std::vector<fake_cuda::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<fake_cuda::Node> nodes;
};

struct CUstream_st {
  int device = 0;
  int number = -1;       // of those created since reset()
  bool blocking = true;  // ordered with the legacy default stream
  bool destroyed = false;
  std::deque<fake_cuda::Task> queue;
  std::shared_ptr<const bool> last;  // the last piece of work given to it
  std::shared_ptr<fake_cuda::Capture> capture;
  std::vector<size_t> capture_tail;  // the nodes that its next node waits for
};

struct CUevent_st {
  int device = 0;
  bool timed = true;
  std::shared_ptr<const bool> recorded;  // null: never
  std::shared_ptr<double> time = std::make_shared<double>(0.0);
  std::shared_ptr<fake_cuda::Capture> capture;
  std::vector<size_t> capture_tail;
};

namespace fake_cuda {

class Scheduler {
 public:
  // Held by every function of the API: the stand-ins may be called from any thread.
  std::recursive_mutex mutex;
  Options options;
  Statistics statistics;
  std::vector<cudaError_t> broken;   // by device
  std::vector<cudaError_t> failing;  // what its next work will do to it

  Scheduler();

  CUstream_st* create(int device, bool blocking);
  void destroy(CUstream_st* stream);
  // The stream of a handle; null handles are the device's default stream. Null if there is no such stream.
  CUstream_st* find(cudaStream_t handle, int device);

  cudaError_t submit(CUstream_st& stream, Work work);
  // As submit, for events: says when it is done.
  std::shared_ptr<const bool> mark(CUstream_st& stream, Work work);
  void wait_for(CUstream_st& stream, std::shared_ptr<const bool> done);
  // As submit, for work that may run only once `ready` says so, which other processes decide.
  cudaError_t submit_when(CUstream_st& stream, std::function<bool()> ready, Work work);

  void finish(CUstream_st& stream);
  void finish_device(int device);
  void finish_until(const bool& done);
  // Some work may run, as time passes.
  void progress();

  void drop_all();
  cudaError_t run_graph(CUstream_st& stream, const std::vector<Node>& nodes);
  bool capturing() const;
  // Whether a capture forbids calls that may be unsafe in it.
  bool capturing_strictly() const;

 private:
  bool step(CUstream_st& stream);
  bool waits_outside() const;
  template <class F>
  void run_while(const F& unfinished);
  Task& append(CUstream_st& stream, Work work);

  std::mt19937_64 random_;
  int created_ = 0;
  std::vector<std::unique_ptr<CUstream_st>> defaults_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;
};

Scheduler& scheduler();

// The device that the calling host thread has chosen.
int current_device();
// Remembers what cudaGetLastError is to say.
cudaError_t fail(cudaError_t status);
// fail() and a report: a call against the manual.
cudaError_t misuse(cudaError_t status, const std::string& text);

}  // namespace fake_cuda
