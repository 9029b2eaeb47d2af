// A build without NCCL.
#include "engine/comm/nccl_comm.h"
#include "engine/error.h"

namespace gle {

std::unique_ptr<Comm> make_nccl_comm(Comm& host, Backend&) {
  fail(ErrorCode::usage, "nccl: ", host.size(),
       " ranks with GPUs need NCCL, which this build does not have. Use --device cpu, or build where nccl.h is found.");
}

}  // namespace gle
