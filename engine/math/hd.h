#pragma once

// Marks what the host and the device compiler share. Such functions are `static inline`: kernels of several
// instruction sets include them, and none may leave a copy that another could be linked to.
#ifdef __CUDACC__
#define GLE_HD __host__ __device__
#else
#define GLE_HD
#endif
