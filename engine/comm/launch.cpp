#include "engine/comm/launch.h"

#include <cstdlib>
#include <initializer_list>

namespace gle {

Launcher launcher() {
  // Open MPI's, that of PMIx (srun --mpi=pmix), and that of the launchers of MPICH. What Slurm sets without either is
  // set for the plain commands of a batch script as well.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name)) {
      return Launcher::mpi;
    }
  }
  return std::getenv("RANK") && std::getenv("WORLD_SIZE") && std::getenv("MASTER_ADDR") ? Launcher::torchrun
                                                                                        : Launcher::none;
}

}  // namespace gle
