// For builds with oneDNN, which brings OpenMP's threads: sharing them keeps two sets of threads from fighting for the
// same cores.
#include <omp.h>

#include <atomic>

#include "engine/thread_count.h"
#include "engine/thread_pool.h"

namespace gle {

struct ThreadPool::State {
  int threads;
};

ThreadPool::ThreadPool(int threads) : state_(new State{thread_count(threads)}) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return state_->threads; }

void ThreadPool::run(int64_t pieces, Call call, void* body) {
  if (pieces <= 1 || state_->threads == 1) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      call(body, piece, 0);
    }
    return;
  }
  std::atomic<int64_t> next = 0;
#pragma omp parallel num_threads(state_->threads)
  {
    const int thread = omp_get_thread_num();
    for (int64_t piece = next.fetch_add(1, std::memory_order_relaxed); piece < pieces;
         piece = next.fetch_add(1, std::memory_order_relaxed)) {
      call(body, piece, thread);
    }
  }
}

}  // namespace gle
