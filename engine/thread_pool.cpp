#include "engine/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/error.h"
#include "engine/thread_count.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gle {

namespace {

// A worker looks for new work this many times before it sleeps: kernels follow each other within microseconds.
constexpr int kSpins = 4000;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

// The open pieces of the current round in the low half, the round's number in the high half: whoever lowers it by one
// owns a piece. A worker that comes late finds nothing open and harms nobody, so run() waits for pieces, not for
// workers.
using Ticket = uint64_t;
constexpr Ticket kPieces = 0xffffffff;

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;

  std::atomic<Ticket> ticket = 0;
  std::atomic<int64_t> done = 0;
  Call call = nullptr;
  void* body = nullptr;

  void take_pieces(int thread) {
    Ticket open = ticket.load(std::memory_order_acquire);
    while ((open & kPieces) != 0) {
      if (ticket.compare_exchange_weak(open, open - 1, std::memory_order_acquire)) {
        call(body, static_cast<int64_t>((open & kPieces) - 1), thread);
        done.fetch_add(1, std::memory_order_release);
      }
    }
  }

  bool idle() const { return (ticket.load(std::memory_order_acquire) & kPieces) == 0; }

  void work(int thread) {
    while (true) {
      for (int i = 0; i < kSpins && idle(); ++i) {
        pause_briefly();
      }
      if (idle()) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || !idle(); });
        if (stop) {
          return;
        }
      }
      take_pieces(thread);
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  const int count = thread_count(threads);
  for (int thread = 1; thread < count; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) {
    worker.join();
  }
}

int ThreadPool::size() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(int64_t pieces, Call call, void* body) {
  State& state = *state_;
  if (pieces <= 1 || state.workers.empty()) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      call(body, piece, 0);
    }
    return;
  }
  invariant(pieces <= static_cast<int64_t>(kPieces), "too many pieces of work");
  state.call = call;
  state.body = body;
  state.done.store(0, std::memory_order_relaxed);
  const Ticket round = (state.ticket.load(std::memory_order_relaxed) | kPieces) + 1;
  {
    const std::lock_guard lock(state.mutex);
    state.ticket.store(round | static_cast<Ticket>(pieces), std::memory_order_release);
  }
  state.wake.notify_all();
  state.take_pieces(0);
  for (int spins = 0; state.done.load(std::memory_order_acquire) != pieces; ++spins) {
    if (spins < kSpins) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace gle
