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
constexpr int kSpins = 20000;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

// Each thread starts with the same share of the pieces in every round, so that what it wrote in one kernel is still in
// its cache in the next; then it helps the others. A share holds its open pieces in the low half and the round's number
// in the high half: whoever lowers it by one owns a piece. A worker that comes late finds nothing open and harms
// nobody, so run() waits for pieces, not for workers.
using Ticket = uint64_t;
constexpr Ticket kPieces = 0xffffffff;

struct alignas(64) Share {
  std::atomic<Ticket> ticket = 0;
};

struct ThreadPool::State {
  explicit State(int threads) : shares(static_cast<size_t>(threads)) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) {
      worker.join();
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::vector<Share> shares;
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;

  alignas(64) std::atomic<uint32_t> round = 0;
  alignas(64) std::atomic<int64_t> done = 0;
  int64_t pieces = 0;
  Call call = nullptr;
  void* body = nullptr;

  int64_t end_of_share(size_t share) const {
    return pieces * static_cast<int64_t>(share + 1) / static_cast<int64_t>(shares.size());
  }

  void take_pieces(int thread) {
    for (size_t i = 0; i < shares.size(); ++i) {
      const size_t share = (static_cast<size_t>(thread) + i) % shares.size();
      std::atomic<Ticket>& ticket = shares[share].ticket;
      Ticket open = ticket.load(std::memory_order_acquire);
      while ((open & kPieces) != 0) {
        if (ticket.compare_exchange_weak(open, open - 1, std::memory_order_acquire)) {
          call(body, end_of_share(share) - static_cast<int64_t>(open & kPieces), thread);
          done.fetch_add(1, std::memory_order_release);
        }
      }
    }
  }

  void work(int thread) {
    uint32_t seen = 0;
    const auto idle = [&] { return round.load(std::memory_order_acquire) == seen; };
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
      seen = round.load(std::memory_order_acquire);
      take_pieces(thread);
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(thread_count(threads))) {
  for (int thread = 1; thread < size(); ++thread) {
    try {
      state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
    } catch (const std::system_error& e) {
      fail(ErrorCode::runtime, "thread ", thread + 1, " of ", size(), " cannot be started: ", e.what());
    }
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return static_cast<int>(state_->shares.size()); }

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
  state.pieces = pieces;
  state.done.store(0, std::memory_order_relaxed);
  const uint32_t round = state.round.load(std::memory_order_relaxed) + 1;
  int64_t begin = 0;
  for (size_t share = 0; share < state.shares.size(); ++share) {
    const int64_t end = state.end_of_share(share);
    state.shares[share].ticket.store(Ticket{round} << 32 | static_cast<Ticket>(end - begin), std::memory_order_release);
    begin = end;
  }
  {
    const std::lock_guard lock(state.mutex);
    state.round.store(round, std::memory_order_release);
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
