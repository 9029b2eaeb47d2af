#pragma once

#include <cstdint>
#include <vector>

#include "engine/comm/comm.h"
#include "engine/parameters.h"
#include "engine/tape.h"

namespace gle {

// Adds up what the ranks have in the flat array of gradients, in stretches of whole parameters: one begins as soon as
// the backward pass is done with its parameters, and goes on beside the rest of the pass. With shards a rank gets the
// sum of its piece of each stretch alone, where the optimiser then makes its step; values are gathered afterwards.
class GradientExchange {
 public:
  enum class Result { whole, shards };

  GradientExchange(Comm& comm, Backend& backend, ParameterSet& parameters, int64_t stretch_bytes, Result result);
  // Waits for what a failure left under way: it writes to memory that goes with this.
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // Around the backward pass that completes the gradients of a step.
  void begin(Tape& tape);
  void finish(Tape& tape);

  // What this rank steps: a part of the flat arrays, and where it begins in arrays of size() elements that hold nothing
  // else.
  struct Piece {
    int64_t begin, end, at;
  };
  Result result() const { return result_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  int64_t size() const { return size_; }
  // Of shards: the sums [1,size()], and their length over all ranks.
  const Tensor& gradients() const { return shard_; }
  double sum_of_squares();
  // Every rank's pieces of the values, of which each has changed its own.
  void gather_values() { gather(parameters_.values(), Source::in_place, parameters_.values()); }
  // whole[1,n] = what the ranks have in arrays of size() elements, and back.
  void gather(const Tensor& shard, const Tensor& whole) { gather(shard, Source::shard, whole); }
  void take(const Tensor& whole, const Tensor& shard);

 private:
  enum class Source { shard, in_place };
  struct Stretch {
    int64_t begin, end;
    int64_t piece = 0;    // of every rank; what is left over at the end is everybody's
    int64_t at = 0;       // of this rank's piece in the shard
    int64_t rest_at = 0;  // of what is left over
    int expected = 0;     // parameters that the pass is not done with
    bool begun = false;

    int64_t rest(int ranks) const { return begin + ranks * piece; }
  };

  void cut(int64_t stretch_bytes);
  void lay_out_shard();
  Stretch& stretch_of(const Parameter& parameter);
  void begin_stretch(Stretch& stretch);
  void gather(const Tensor& from, Source source, const Tensor& whole);
  void wait();

  Comm& comm_;
  Backend& backend_;
  ParameterSet& parameters_;
  Result result_;
  std::vector<Stretch> stretches_;
  std::vector<Piece> pieces_;
  std::vector<Comm::Ticket> tickets_;
  int64_t size_ = 0;
  int64_t owned_ = 0;  // of the shard: what no other rank has
  Tensor shard_;
};

}  // namespace gle
