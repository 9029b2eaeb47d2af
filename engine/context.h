#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "engine/backend.h"
#include "engine/comm/comm.h"
#include "engine/error.h"
#include "engine/parameters.h"
#include "engine/tape.h"
#include "engine/var.h"

namespace gle {

enum class Mode { training, inference };

// What an op needs besides its arguments. Made anew for every pass: numbering the random streams of step t from zero
// is what lets a resumed run draw what the uninterrupted one would have.
struct Context {
  Backend& backend;
  Tape* tape = nullptr;  // null: nothing is recorded
  Mode mode = Mode::inference;
  uint64_t seed = 0;
  uint64_t step = 0;
  bool check_finite = false;  // look at every op's output; slow
  uint32_t random_streams = 0;
  // The ranks that share a batch, each with as many of its rows in their order; null: this process has all of it.
  Comm* comm = nullptr;
  // Batch-norm takes its statistics over all ranks.
  bool sync_batch_norm = true;

  // Memory for an op's output; `op` is named if there is none left.
  Var new_var(const char* op, const Shape& shape) {
    require(shape.rank() > 0, op, "got an empty Var");
    Tensor value = backend.new_tensor(op, shape);
    return tape ? tape->new_var(std::move(value)) : Var(std::move(value));
  }
  // Where an op with these inputs writes: `out` if the caller gave a place (a slice of a wider Var), else new memory.
  // Asked before anything is changed.
  Var output(const char* op, Tape::Inputs inputs, const Shape& shape, const Var& out);

  Var parameter(Parameter& parameter) const { return tape ? tape->parameter(parameter) : Var(parameter.value); }

  // Ends every op. Checks the output if asked to, and keeps `backward` if a gradient will be wanted.
  template <class Backward>
  void record(const char* op, Tape::Inputs inputs, const Var& output, Backward&& backward) {
    if (check_finite) {
      require_finite(op, output);
    }
    if (tape) {
      tape->record(op, inputs, output, std::forward<Backward>(backward));
    }
  }

  RandomKey next_random_key() { return {seed, (step << 20U) | random_streams++}; }

  // Throws unless every tensor is on this context's device; empty ones are.
  void require_device(const char* op, std::initializer_list<std::reference_wrapper<const Tensor>> tensors) const;

 private:
  void require_finite(const char* op, const Var& output) const;
};

}  // namespace gle
