// NCCL between processes of one machine, through a file in shared memory that the unique id names. A collective is two
// pieces of work on its stream: one hands this rank's numbers over, once everybody has taken those of the collective
// before; the other takes the result, once everybody has handed over. Sums are made in the order of ranks.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fake_cuda/device_check.h"
#include "fake_cuda/scheduler.h"
#include "simt/memory.h"

namespace fake_cuda {

namespace {

constexpr int kMostRanks = 16;
constexpr size_t kMostBytes = size_t{256} << 20;  // of one rank in one collective

// What the processes share. Pages that nobody touches take no memory.
struct Meeting {
  struct Place {
    std::atomic<uint64_t> here, given, taken;  // the collectives so far
    alignas(4096) std::byte bytes[kMostBytes];
  };
  Place places[kMostRanks];
};

Meeting* map(const char* name, int flags) {
  const int file = shm_open(name, O_RDWR | flags, 0600);
  if (file < 0) {
    return nullptr;
  }
  if ((flags & O_CREAT) != 0 && ftruncate(file, sizeof(Meeting)) != 0) {
    close(file);
    return nullptr;
  }
  void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Meeting*>(memory);
}

}  // namespace

}  // namespace fake_cuda

struct ncclComm {
  int rank;
  int ranks;
  int device;
  std::string name;
  fake_cuda::Meeting* meeting;
  uint64_t begun = 0;

  bool all(std::atomic<uint64_t> fake_cuda::Meeting::Place::*what, uint64_t number) const {
    for (int r = 0; r < ranks; ++r) {
      if ((meeting->places[r].*what).load() < number) {
        return false;
      }
    }
    return true;
  }
};

namespace fake_cuda {

namespace {

struct Call {
  const char* function;
  const void* from;
  void* to;
  size_t gives, takes;  // elements
  bool gives_anything = true;
};

// take(comm): writes the result to call.to from what is in the places.
template <class Take>
ncclResult_t submit(const Call& call, ncclDataType_t type, ncclComm_t comm, cudaStream_t handle, Take take) {
  if (comm == nullptr || type != ncclFloat32 || call.gives * sizeof(float) > kMostBytes) {
    misuse(cudaSuccess, std::string(call.function) + ": no communicator, another type than float, or too much");
    return ncclInvalidArgument;
  }
  if (comm->device != current_device()) {
    misuse(cudaSuccess, std::string(call.function) + ": the communicator is of another device than the current one");
    return ncclInvalidUsage;
  }
  const size_t gives = call.gives * sizeof(float), takes = call.takes * sizeof(float);
  if (!usable(call.function, "sendbuff", call.from, call.gives_anything ? gives : 0, comm->device) ||
      !usable(call.function, "recvbuff", call.to, takes, comm->device)) {
    return ncclInvalidArgument;
  }
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = scheduler().find(handle, comm->device);
  if (stream == nullptr) {
    misuse(cudaSuccess, std::string(call.function) + ": the stream is gone");
    return ncclInvalidArgument;
  }
  const uint64_t number = ++comm->begun;
  using Place = Meeting::Place;
  const cudaError_t given = scheduler().submit_when(
      *stream, [comm, number] { return comm->all(&Place::taken, number - 1); },
      [call, comm, number, gives] {
        Place& own = comm->meeting->places[comm->rank];
        if (call.gives_anything) {
          check_read(call.function, "sendbuff", call.from, gives);
          std::memcpy(own.bytes, call.from, gives);
        }
        own.given = number;
      });
  const cudaError_t taken = scheduler().submit_when(
      *stream, [comm, number] { return comm->all(&Place::given, number); },
      [call, comm, number, takes, take] {
        take(*comm, static_cast<float*>(call.to));
        simt::mark_written(call.to, takes);
        comm->meeting->places[comm->rank].taken = number;
      });
  return given == cudaSuccess && taken == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const float* numbers_of(const ncclComm& comm, int rank) {
  return reinterpret_cast<const float*>(comm.meeting->places[rank].bytes);
}

// The sum over ranks of `count` numbers from `first` on.
auto sum(size_t count, size_t first) {
  return [count, first](const ncclComm& comm, float* to) {
    for (size_t i = 0; i < count; ++i) {
      float total = numbers_of(comm, 0)[first + i];
      for (int r = 1; r < comm.ranks; ++r) {
        total += numbers_of(comm, r)[first + i];
      }
      to[i] = total;
    }
  };
}

}  // namespace

}  // namespace fake_cuda

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> count = 0;
  const std::string name = "/fake-nccl-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  fake_cuda::Meeting* meeting = fake_cuda::map(name.c_str(), O_CREAT | O_EXCL);
  if (meeting == nullptr || name.size() >= sizeof id->internal) {
    return ncclSystemError;
  }
  munmap(meeting, sizeof(fake_cuda::Meeting));
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ranks < 1 || ranks > fake_cuda::kMostRanks || rank < 0 || rank >= ranks) {
    return ncclInvalidArgument;
  }
  fake_cuda::Meeting* meeting = fake_cuda::map(id.internal, 0);
  if (meeting == nullptr) {
    return ncclSystemError;
  }
  auto made = std::make_unique<ncclComm>(ncclComm{rank, ranks, fake_cuda::current_device(), id.internal, meeting});
  // The manual: waits for all ranks. Then nobody needs the name any more.
  meeting->places[rank].here = 1;
  while (!made->all(&fake_cuda::Meeting::Place::here, 1)) {
    usleep(200);
  }
  if (rank == 0) {
    shm_unlink(id.internal);
  }
  *comm = made.release();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  munmap(comm->meeting, sizeof(fake_cuda::Meeting));
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "an error"; }
const char* ncclGetLastError(ncclComm_t) { return "of the stand-in"; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return op != ncclSum ? ncclInvalidArgument
                       : fake_cuda::submit({"ncclAllReduce", from, to, count, count}, type, comm, stream,
                                           fake_cuda::sum(count, 0));
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum || comm == nullptr) {
    return ncclInvalidArgument;
  }
  return fake_cuda::submit({"ncclReduceScatter", from, to, count * static_cast<size_t>(comm->ranks), count}, type, comm,
                           stream, fake_cuda::sum(count, count * static_cast<size_t>(comm->rank)));
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  if (comm == nullptr) {
    return ncclInvalidArgument;
  }
  return fake_cuda::submit({"ncclAllGather", from, to, count, count * static_cast<size_t>(comm->ranks)}, type, comm,
                           stream, [count](const ncclComm& all, float* out) {
                             for (int r = 0; r < all.ranks; ++r) {
                               std::memcpy(out + static_cast<size_t>(r) * count, fake_cuda::numbers_of(all, r),
                                           count * sizeof(float));
                             }
                           });
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  if (comm == nullptr || root < 0 || root >= comm->ranks) {
    return ncclInvalidArgument;
  }
  return fake_cuda::submit({"ncclBroadcast", from, to, count, count, comm->rank == root}, type, comm, stream,
                           [count, root](const ncclComm& all, float* out) {
                             std::memcpy(out, fake_cuda::numbers_of(all, root), count * sizeof(float));
                           });
}

}  // extern "C"
