#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace gle {

// One collective of all ranks, in memory of the host or of the ranks' devices.
struct Collective {
  enum class Kind : uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, barrier };
  enum class Type : uint8_t { f32, f64, bytes };
  enum class Memory : uint8_t { host, device };

  Kind kind = Kind::barrier;
  Type type = Type::bytes;
  Memory memory = Memory::host;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;  // elements: that a rank gives, of reduce_scatter that it gets
  int root = 0;

  // What a rank hands over, and what it has to send at the least, whatever the algorithm: of a broadcast on average.
  int64_t bytes(int ranks) const;
  int64_t least_sent(int ranks) const;
};

struct CommStatistics {
  int64_t collectives = 0;
  int64_t bytes = 0;           // that this rank handed over, before any algorithm multiplies them
  int64_t least_sent = 0;      // that it had to send for them
  double busy_seconds = 0;     // with a collective under way,
  double waiting_seconds = 0;  // of them with the caller waiting for it
};

// When a rank counts as dead. Both functions are called by another thread.
struct Watch {
  double timeout = 20;  // seconds that it may be silent
  // Whether the run is being stopped from outside: perhaps because of such a rank, which is named sooner then.
  std::function<bool()> stopping = {};
  // Gets the message that names it; otherwise stderr does.
  std::function<void(const std::string&)> report = {};
};

// The processes of a run. Every rank calls the same collectives in the same order with the same sizes, from one thread;
// every rank then has the same bits, and a second run with as many ranks has them too. A tensor is dense, f32 and on
// the device of the rank's backend; the collective comes after the kernels called before it, and kernels called after
// it find its result. Throws ErrorCode::runtime if a rank is gone.
class Comm {
 public:
  virtual ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Among the ranks of this host.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  const std::string& host_of(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  // For logs and reports: "4 ranks, Open MPI 4.1.4".
  virtual std::string description() const = 0;

  // x = sum of the ranks' x
  void all_reduce(const Tensor& x) { wait(begin_all_reduce(x)); }
  // to = the ranks' `from` one after the other
  void all_gather(const Tensor& from, const Tensor& to);
  // to = the rank's piece of the sum of the ranks' `from`; pieces in the order of ranks
  void reduce_scatter(const Tensor& from, const Tensor& to) { wait(begin_reduce_scatter(from, to)); }
  void broadcast(const Tensor& x, int root);
  void barrier();

  // The same beside the kernels: nobody touches the memory until wait(). Tickets are waited for in any order, each
  // once.
  using Ticket = uint64_t;
  Ticket begin_all_reduce(const Tensor& x);
  Ticket begin_reduce_scatter(const Tensor& from, const Tensor& to);
  void wait(Ticket ticket);

  // Of the host.
  void all_reduce(std::span<double> sums);
  void broadcast(std::vector<std::byte>& bytes, int root);  // any length: all get root's
  void broadcast(std::string& text, int root);
  // What every rank gave, in their order; lengths may differ.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes);

  // A rank that dies is found from the beginning on, by Watch{} or by what is said here: it is named, and all others
  // end with exit code 1, wherever they are.
  virtual void watch(const Watch&) {}

  // Ends all ranks at once: for a failure that the others do not know of.
  [[noreturn]] void abort(int exit_code);

  CommStatistics statistics() const;

 protected:
  struct Place {
    int rank = 0, size = 1, local_rank = 0, local_size = 1;
    std::vector<std::string> hosts = {"this host"};  // of every rank
  };
  explicit Comm(const Place& place)
      : rank_(place.rank),
        size_(place.size),
        local_rank_(place.local_rank),
        local_size_(place.local_size),
        hosts_(place.hosts) {}

  virtual Ticket begin(const Collective& collective) = 0;
  virtual void finish(Ticket ticket) = 0;
  virtual void end_all(int exit_code) = 0;
  virtual double busy_seconds() const = 0;

 private:
  friend class NcclComm;  // leaves the host's collectives to another Comm

  Ticket count(const Collective& collective);

  int rank_, size_, local_rank_, local_size_;
  std::vector<std::string> hosts_;
  CommStatistics statistics_;
};

// A run without others: nothing is exchanged.
std::unique_ptr<Comm> one_process();

}  // namespace gle
