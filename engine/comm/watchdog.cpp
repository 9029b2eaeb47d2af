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
constexpr Seconds kLaunchersPatience{4};
// A process that was stopped itself has not been listening: silence counts when it has listened so often since.
constexpr int kFewLooks = 3;
constexpr int kManyLooks = 15;
constexpr int kSeldom = 10;
constexpr Seconds kTimeToTell{0.3};
constexpr Seconds kTimeToEnd{2};
constexpr int kBeat = 1;
constexpr int kEnd = 2;

// What was never begun is done.
bool done(MPI_Request& request) {
  int flag = 0;
  return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag != 0;
}

// What was never begun, or failed, is not received.
bool received(MPI_Request& request) { return request != MPI_REQUEST_NULL && done(request); }

}  // namespace

Watchdog::Watchdog(MPI_Comm world, std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
  MPI_Comm_dup(world, &comm_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  last_tick_ = Clock::now();
  if (size_ == 1) {
    return;
  }
  MPI_Irecv(&ending_, 1, MPI_CHAR, MPI_ANY_SOURCE, kEnd, comm_, &end_heard_);
  neighbours_.push_back({.rank = (rank_ + 1) % size_});
  if (size_ > 2) {
    neighbours_.push_back({.rank = (rank_ + size_ - 1) % size_});
  }
  for (Neighbour& neighbour : neighbours_) {
    neighbour.last_heard = last_tick_;
    listen(neighbour);
  }
}

void Watchdog::listen(Neighbour& neighbour) {
  MPI_Irecv(&neighbour.heard, 1, MPI_CHAR, neighbour.rank, kBeat, comm_, &neighbour.hearing);
}

bool Watchdog::silent(Neighbour& neighbour, Clock::time_point now, bool stopping) {
  // To one that is probably dead a beat a second: MPI complains of every one.
  if (done(neighbour.sending) && neighbour.looks % (neighbour.looks < kSeldom ? 1 : kSeldom) == 0) {
    MPI_Isend(&beat_, 1, MPI_CHAR, neighbour.rank, kBeat, comm_, &neighbour.sending);
  }
  ++neighbour.looks;
  while (received(neighbour.hearing)) {
    neighbour.last_heard = now;
    neighbour.looks = 0;
    listen(neighbour);
  }
  if (neighbour.hearing == MPI_REQUEST_NULL) {
    listen(neighbour);  // it failed
  }
  const Seconds silence = now - neighbour.last_heard;
  return stopping ? silence > std::min(kSilenceWhenStopping, Seconds(watch_.timeout)) && neighbour.looks >= kFewLooks
                  : silence > Seconds(watch_.timeout) && neighbour.looks >= kManyLooks;
}

void Watchdog::tick() {
  const Clock::time_point now = Clock::now();
  if (neighbours_.empty() || now - last_tick_ < kPause) {
    return;
  }
  last_tick_ = now;
  if (received(end_heard_)) {
    std::this_thread::sleep_for(kTimeToEnd);
    ::_exit(1);
  }
  if (stop_seen_ == Clock::time_point{} && watch_.stopping && watch_.stopping()) {
    stop_seen_ = now;
  }
  const bool stopping = stop_seen_ != Clock::time_point{} && now - stop_seen_ < kLaunchersPatience;
  for (Neighbour& neighbour : neighbours_) {
    if (silent(neighbour, now, stopping)) {
      give_up(neighbour, now, stopping);
    }
  }
}

void Watchdog::give_up(const Neighbour& neighbour, Clock::time_point now, bool stopping) {
  char silence[32];
  std::snprintf(silence, sizeof silence, "%.1f", Seconds(now - neighbour.last_heard).count());
  const std::string what = "rank " + std::to_string(neighbour.rank) + " on " +
                           hosts_[static_cast<size_t>(neighbour.rank)] + " has been silent for " + silence +
                           " s: it has died or cannot be reached";
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
      done(request);
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
  while (!done(all_there)) {
    tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Cancel(&end_heard_);
  MPI_Wait(&end_heard_, MPI_STATUS_IGNORE);
  for (Neighbour& neighbour : neighbours_) {
    MPI_Cancel(&neighbour.hearing);
    MPI_Wait(&neighbour.hearing, MPI_STATUS_IGNORE);
    MPI_Wait(&neighbour.sending, MPI_STATUS_IGNORE);
  }
}

}  // namespace gle
