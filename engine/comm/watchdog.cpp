#include "engine/comm/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace gle {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kPause{0.1};
// A launcher that finds a rank dead sends the others SIGTERM a second later and SIGKILL after another: in between is
// the time to say who it was.
constexpr Seconds kSilenceWhenStopping{1.2};
constexpr Seconds kTimeToTell{0.3};
constexpr Seconds kTimeToEnd{2};
constexpr int kBeat = 1;
constexpr int kEnd = 2;

// True when it is done.
bool test(MPI_Request& request) {
  int done = 0;
  return MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
}

}  // namespace

Watchdog::Watchdog(MPI_Comm world, std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
  MPI_Comm_dup(world, &comm_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  previous_ = (rank_ + size_ - 1) % size_;
  next_ = (rank_ + 1) % size_;
  last_tick_ = Clock::now();
  if (size_ > 1) {
    MPI_Irecv(&ending_, 1, MPI_CHAR, MPI_ANY_SOURCE, kEnd, comm_, &end_heard_);
    listen();
  }
}

void Watchdog::listen() { MPI_Irecv(&heard_, 1, MPI_CHAR, previous_, kBeat, comm_, &hearing_); }

void Watchdog::beat() {
  if (test(sending_)) {
    MPI_Isend(&beat_, 1, MPI_CHAR, next_, kBeat, comm_, &sending_);
  }
}

void Watchdog::tick() {
  const Clock::time_point now = Clock::now();
  const Seconds passed = now - last_tick_;
  if (size_ == 1 || passed < kPause) {
    return;
  }
  last_tick_ = now;
  // A process that was stopped itself has not been listening: the others get the time to be heard again.
  silence_ += std::min(passed, 3 * kPause);
  beat();
  while (test(hearing_)) {
    silence_ = Seconds(0);
    listen();
  }
  if (test(end_heard_)) {
    std::this_thread::sleep_for(kTimeToEnd);
    ::_exit(1);
  }
  const bool stopping = watch_.stopping && watch_.stopping();
  if (silence_.count() > (stopping ? std::min(kSilenceWhenStopping.count(), watch_.timeout) : watch_.timeout)) {
    give_up(stopping);
  }
}

void Watchdog::give_up(bool stopping) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", silence_.count());
  const std::string what = "rank " + std::to_string(previous_) + " on " + hosts_[static_cast<size_t>(previous_)] +
                           " has been silent for " + seconds + " s: it has died or cannot be reached";
  if (watch_.report) {
    watch_.report(what);
  } else {
    std::fprintf(stderr, "gle: %s\n", what.c_str());
  }
  announce_end();
  if (!stopping) {
    MPI_Abort(comm_, 1);
  }
  ::_exit(1);
}

void Watchdog::announce_end() {
  std::vector<MPI_Request> telling;
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) {
      MPI_Isend(&ending_, 1, MPI_CHAR, other, kEnd, comm_, &telling.emplace_back(MPI_REQUEST_NULL));
    }
  }
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < kTimeToTell) {
    for (MPI_Request& request : telling) {
      test(request);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Watchdog::finish() {
  if (size_ == 1) {
    return;
  }
  MPI_Request all_there = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &all_there);
  while (!test(all_there)) {
    tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (MPI_Request* request : {&hearing_, &end_heard_}) {
    MPI_Cancel(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  MPI_Wait(&sending_, MPI_STATUS_IGNORE);
}

}  // namespace gle
