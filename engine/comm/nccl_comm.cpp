// A collective is queued on a stream of its own, behind what the backend's stream has queued so far; wait() queues what
// comes after behind the collective. The host waits for neither.
#include "engine/comm/nccl_comm.h"

#include <nccl.h>

#include <cstring>
#include <exception>
#include <vector>

#include "engine/cuda/check.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/error.h"

namespace gle {

namespace {

constexpr const char* kOp = "nccl";

using Kind = Collective::Kind;

using Communicator = cuda::Owned<ncclComm_t, ncclCommDestroy>;

void check(ncclResult_t status, ncclComm_t comm) {
  if (status != ncclSuccess) {
    fail(ErrorCode::runtime, kOp, ": ", ncclGetErrorString(status), ": ", ncclGetLastError(comm),
         "; a rank may be gone");
  }
}

}  // namespace

class NcclComm : public Comm {
 public:
  NcclComm(Comm& host, cuda::CudaRuntime& runtime)
      : Comm({host.rank(), host.size(), host.local_rank(), host.local_size(), host.hosts_}),
        host_(host),
        runtime_(runtime) {
    runtime_.begin(kOp);
    ncclUniqueId id{};
    if (rank() == 0) {
      check(ncclGetUniqueId(&id), nullptr);
    }
    std::vector<std::byte> bytes(sizeof id);
    std::memcpy(bytes.data(), &id, sizeof id);
    host_.broadcast(bytes, 0);
    std::memcpy(&id, bytes.data(), sizeof id);
    stream_ = cuda::new_stream(kOp);
    ready_ = cuda::new_event(kOp);
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, size(), id, rank()), nullptr);
    comm_ = Communicator(comm);
  }
  ~NcclComm() override {
    if (std::uncaught_exceptions() > exceptions_) {
      // Destroying it would wait for the others, who wait for this rank.
      (void)ncclCommAbort(comm_.release());
    } else {
      (void)cudaStreamSynchronize(stream_.get());
    }
  }

  std::string description() const override {
    int version = 0;
    (void)ncclGetVersion(&version);
    return host_.description() + ", NCCL " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }

  void watch(const Watch& watch) override { host_.watch(watch); }

 protected:
  // Odd tickets are the host's.
  Ticket begin(const Collective& c) override {
    if (c.memory == Collective::Memory::host) {
      return 2 * host_.begin(c) + 1;
    }
    runtime_.begin(kOp);
    const cudaStream_t stream = stream_.get();
    cuda::check(cudaEventRecord(ready_.get(), runtime_.compute.get()), kOp);
    cuda::check(cudaStreamWaitEvent(stream, ready_.get(), 0), kOp);
    check(queue(c, stream), comm_.get());
    if (idle_.empty()) {
      idle_.push_back(events_.size());
      events_.push_back(cuda::new_event(kOp));
    }
    const size_t event = idle_.back();
    idle_.pop_back();
    cuda::check(cudaEventRecord(events_[event].get(), stream), kOp);
    return 2 * event;
  }
  void finish(Ticket ticket) override {
    if (ticket % 2 == 1) {
      host_.finish(ticket / 2);
      return;
    }
    const size_t event = ticket / 2;
    cuda::check(cudaStreamWaitEvent(runtime_.compute.get(), events_[event].get(), 0), kOp);
    idle_.push_back(event);
    ncclResult_t status = ncclSuccess;
    check(ncclCommGetAsyncError(comm_.get(), &status), comm_.get());
    check(status, comm_.get());
  }
  void end_all(int exit_code) override { host_.end_all(exit_code); }
  double busy_seconds() const override { return host_.busy_seconds(); }

 private:
  ncclResult_t queue(const Collective& c, cudaStream_t stream) {
    invariant(c.type == Collective::Type::f32, "tensors are exchanged as floats");
    const auto count = static_cast<size_t>(c.count);
    switch (c.kind) {
      case Kind::all_reduce:
        return ncclAllReduce(c.from, c.to, count, ncclFloat32, ncclSum, comm_.get(), stream);
      case Kind::all_gather:
        return ncclAllGather(c.from, c.to, count, ncclFloat32, comm_.get(), stream);
      case Kind::reduce_scatter:
        return ncclReduceScatter(c.from, c.to, count, ncclFloat32, ncclSum, comm_.get(), stream);
      case Kind::broadcast:
        return ncclBroadcast(c.from, c.to, count, ncclFloat32, c.root, comm_.get(), stream);
      case Kind::barrier:
        break;
    }
    bug("a barrier is the host's");
  }

  Comm& host_;
  cuda::CudaRuntime& runtime_;
  cuda::Stream stream_;
  cuda::Event ready_;
  std::vector<cuda::Event> events_;
  std::vector<size_t> idle_;
  Communicator comm_;
  int exceptions_ = std::uncaught_exceptions();
};

std::unique_ptr<Comm> make_nccl_comm(Comm& host, Backend& backend) {
  auto* gpu = dynamic_cast<cuda::CudaBackend*>(&backend);
  require(gpu != nullptr, kOp, "the backend is ", backend.description(), ", which is no GPU");
  return std::make_unique<NcclComm>(host, gpu->runtime());
}

}  // namespace gle
