#pragma once

namespace gle {

// How many threads to use: `wanted` if positive, else GLE_NUM_THREADS, else OMP_NUM_THREADS, else the cores that this
// process may run on. A value that is not a whole number from 1 to 1024 is an error.
int thread_count(int wanted);
// The same for one of `processes` on this machine, which divide its cores unless whoever started them has done so.
int thread_count_among(int wanted, int processes);

}  // namespace gle
