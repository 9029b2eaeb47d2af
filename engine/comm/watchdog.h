#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/comm/comm.h"

namespace gle {

// Whether the other ranks are alive, asked by the thread that makes the calls of MPI: each rank sends beats to the next
// one in a circle, and whoever misses those of the one before says so, tells all, and ends the run. A rank that is told
// ends within two seconds, whatever the launcher does.
class Watchdog {
 public:
  Watchdog(MPI_Comm world, std::vector<std::string> hosts);

  void watch(Watch watch) { watch_ = std::move(watch); }
  // To be called often; looks at the clock first. Does not return when the run is over.
  void tick();
  // Tells the others that this rank ends the run, as far as they can be reached at once.
  void announce_end();
  // Before MPI_Finalize, by all ranks; waits until all are there, watching.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void beat();
  void listen();
  [[noreturn]] void give_up(bool stopping);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::string> hosts_;
  Watch watch_;
  int rank_ = 0, size_ = 1;
  int previous_ = 0, next_ = 0;
  char beat_ = 0, heard_ = 0, ending_ = 0;
  MPI_Request sending_ = MPI_REQUEST_NULL;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
  MPI_Request end_heard_ = MPI_REQUEST_NULL;
  Clock::time_point last_tick_;
  std::chrono::duration<double> silence_{0};  // of the rank before this one, without the time that this one slept
};

}  // namespace gle
