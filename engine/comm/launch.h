#pragma once

namespace gle {

enum class Launcher { none, mpi, torchrun };

// Who started this process, as its environment says: mpirun, srun --mpi=pmix and their like; torchrun; or nobody who
// starts several.
Launcher launcher();

}  // namespace gle
