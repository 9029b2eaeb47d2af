#include "engine/comm/comm.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "engine/error.h"

namespace gle {

namespace {

using Kind = Collective::Kind;
using Type = Collective::Type;
using Memory = Collective::Memory;

// MPI counts in int.
constexpr int64_t kMostBytes = int64_t{1} << 30;

size_t bytes_of(Type type) {
  switch (type) {
    case Type::f32:
      return sizeof(float);
    case Type::f64:
      return sizeof(double);
    case Type::bytes:
      return 1;
  }
  bug("unknown type of a collective");
}

void check(const char* op, const Tensor& x) {
  require(x && x.dense() && x.type() == DType::f32, op, "needs dense numbers, got ", x.shape());
}

class OneProcess : public Comm {
 public:
  OneProcess() : Comm({}) {}

  std::string description() const override { return "one process"; }

 protected:
  Ticket begin(const Collective& c) override {
    if (c.from != c.to && c.count > 0) {
      require(c.memory == Memory::host, "comm", "a single process has nobody to exchange tensors of a GPU with");
      std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes(1)));
    }
    return 0;
  }
  void finish(Ticket) override {}
  void end_all(int) override {}
  double busy_seconds() const override { return 0; }
};

Memory memory_of(const Tensor& x) { return x.device() == Device{} ? Memory::host : Memory::device; }

}  // namespace

int64_t Collective::bytes(int ranks) const {
  return count * static_cast<int64_t>(bytes_of(type)) * (kind == Kind::reduce_scatter ? ranks : 1);
}

int64_t Collective::least_sent(int ranks) const {
  const int64_t own = bytes(ranks);
  switch (kind) {
    case Kind::all_reduce:
      return 2 * own * (ranks - 1) / ranks;
    case Kind::all_gather:
      return own * (ranks - 1);
    case Kind::reduce_scatter:
    case Kind::broadcast:
      return own * (ranks - 1) / ranks;
    case Kind::barrier:
      return 0;
  }
  bug("unknown kind of a collective");
}

Comm::~Comm() = default;

Comm::Ticket Comm::count(const Collective& c) {
  ++statistics_.collectives;
  statistics_.bytes += c.bytes(size_);
  statistics_.least_sent += c.least_sent(size_);
  return begin(c);
}

void Comm::wait(Ticket ticket) {
  const auto start = std::chrono::steady_clock::now();
  finish(ticket);
  statistics_.waiting_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Comm::Ticket Comm::begin_all_reduce(const Tensor& x) {
  check("all_reduce", x);
  return count({Kind::all_reduce, Type::f32, memory_of(x), x.data(), x.data(), x.elements()});
}

Comm::Ticket Comm::begin_reduce_scatter(const Tensor& from, const Tensor& to) {
  const char* op = "reduce_scatter";
  check(op, from);
  check(op, to);
  require(from.elements() == size_ * to.elements(), op, size_, " ranks share ", from.shape(), "; a piece is not ",
          to.shape());
  return count({Kind::reduce_scatter, Type::f32, memory_of(to), from.data(), to.data(), to.elements()});
}

void Comm::all_gather(const Tensor& from, const Tensor& to) {
  const char* op = "all_gather";
  check(op, from);
  check(op, to);
  require(to.elements() == size_ * from.elements(), op, size_, " ranks give ", from.shape(), " each; they do not make ",
          to.shape());
  wait(count({Kind::all_gather, Type::f32, memory_of(to), from.data(), to.data(), from.elements()}));
}

void Comm::broadcast(const Tensor& x, int root) {
  check("broadcast", x);
  wait(count({Kind::broadcast, Type::f32, memory_of(x), x.data(), x.data(), x.elements(), root}));
}

void Comm::barrier() { wait(count({})); }

void Comm::all_reduce(std::span<double> sums) {
  wait(count({Kind::all_reduce, Type::f64, Memory::host, sums.data(), sums.data(), static_cast<int64_t>(sums.size())}));
}

void Comm::broadcast(std::vector<std::byte>& bytes, int root) {
  auto length = static_cast<int64_t>(bytes.size());
  wait(count({Kind::broadcast, Type::bytes, Memory::host, &length, &length, sizeof length, root}));
  bytes.resize(static_cast<size_t>(length));
  for (int64_t at = 0; at < length; at += kMostBytes) {
    std::byte* piece = bytes.data() + at;
    wait(count({Kind::broadcast, Type::bytes, Memory::host, piece, piece, std::min(kMostBytes, length - at), root}));
  }
}

void Comm::broadcast(std::string& text, int root) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  std::vector<std::byte> bytes(begin, begin + text.size());
  broadcast(bytes, root);
  text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Rounds of equal pieces: what is too short is filled up, so that one kind of gather does for all.
std::vector<std::vector<std::byte>> Comm::gather(std::span<const std::byte> bytes) {
  const auto ranks = static_cast<size_t>(size_);
  const auto own = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> lengths(ranks);
  wait(count({Kind::all_gather, Type::bytes, Memory::host, &own, lengths.data(), sizeof own}));
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const int64_t piece = std::min(longest, kMostBytes / size_);
  std::vector<std::byte> from(static_cast<size_t>(piece));
  std::vector<std::byte> to(from.size() * ranks);
  std::vector<std::vector<std::byte>> all(ranks);
  for (int64_t at = 0; at < longest; at += piece) {
    if (at < own) {
      std::memcpy(from.data(), bytes.data() + at, static_cast<size_t>(std::min(piece, own - at)));
    }
    wait(count({Kind::all_gather, Type::bytes, Memory::host, from.data(), to.data(), piece}));
    for (size_t r = 0; r < ranks; ++r) {
      const int64_t there = std::clamp<int64_t>(lengths[r] - at, 0, piece);
      const auto begin = to.begin() + static_cast<int64_t>(r) * piece;
      all[r].insert(all[r].end(), begin, begin + there);
    }
  }
  return all;
}

void Comm::abort(int exit_code) {
  end_all(exit_code);
  std::_Exit(exit_code);
}

CommStatistics Comm::statistics() const {
  CommStatistics all = statistics_;
  all.busy_seconds = busy_seconds();
  return all;
}

std::unique_ptr<Comm> one_process() { return std::make_unique<OneProcess>(); }

}  // namespace gle
