#pragma once

#include <memory>

#include "engine/comm/comm.h"

namespace gle {

class Backend;

// The ranks of `host`, each with a GPU of its own: tensors by NCCL, on a stream beside the backend's, everything else
// by `host`, which must outlive it, as must the backend. Throws ErrorCode::usage for a backend that is no GPU's, or a
// build without NCCL.
std::unique_ptr<Comm> make_nccl_comm(Comm& host, Backend& backend);

}  // namespace gle
