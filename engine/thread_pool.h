#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace gle {

// A fixed set of threads that share out numbered pieces of work. Which thread takes which piece is left to chance, so
// a caller that wants the same bits on any number of threads cuts its work the same way whatever size() says.
class ThreadPool {
 public:
  // The calling thread is one of `threads`; 0 takes GLE_NUM_THREADS, then OMP_NUM_THREADS, then the cores at hand.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Calls body(piece, thread) once for every piece in [0, pieces), thread in [0, size()), and returns when all are
  // done. One call at a time; body must not throw and must not call parallel_for.
  template <class Body>
  void parallel_for(int64_t pieces, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        pieces, [](void* b, int64_t piece, int thread) { (*static_cast<Plain*>(b))(piece, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* body, int64_t piece, int thread);
  void run(int64_t pieces, Call call, void* body);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gle
