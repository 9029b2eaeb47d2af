#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/comm/comm.h"

namespace gle {

// Whether the other ranks are alive, asked by the thread that makes the calls of MPI: the ranks stand in a circle, each
// sends beats to its neighbours, and whoever misses those of one says so, tells all, and ends the run. A rank that is
// told ends within two seconds, whatever the launcher does.
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

  struct Neighbour {
    int rank;
    MPI_Request sending = MPI_REQUEST_NULL;
    MPI_Request hearing = MPI_REQUEST_NULL;
    char heard = 0;
    Clock::time_point last_heard = {};
    int looks = 0;  // since then
  };

  void listen(Neighbour& neighbour);
  // Beats, to and from; true if it has been silent for too long.
  bool silent(Neighbour& neighbour, Clock::time_point now, bool stopping);
  [[noreturn]] void give_up(const Neighbour& neighbour, Clock::time_point now, bool stopping);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::string> hosts_;
  Watch watch_;
  int rank_ = 0, size_ = 1;
  char beat_ = 0, ending_ = 0;
  MPI_Request end_heard_ = MPI_REQUEST_NULL;
  std::vector<Neighbour> neighbours_;  // two, one, or none
  Clock::time_point last_tick_;
  Clock::time_point stop_seen_ = {};
};

}  // namespace gle
