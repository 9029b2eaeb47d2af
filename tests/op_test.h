#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/context.h"
#include "tests/array.h"

namespace gle::test {

struct OpInput {
  Array value;  // empty: an empty Var
  bool sliceable = true;
};

// One call of an op of layers/ or losses/ with its reference: forward, and the gradients of all inputs.
struct OpCase {
  std::string label;
  std::vector<OpInput> inputs;
  // `out` is a place for the output, or empty; ops without such an argument ignore it.
  std::function<Var(Context&, std::span<const Var> inputs, const Var& out)> run;
  std::function<Array(const Arrays& inputs)> forward;
  std::function<Arrays(const Arrays& inputs, const Array& dy)> backward;
  bool takes_out = true;
  bool out_sliceable = true;
  bool repeatable = true;  // a second call gives the same: not so where random numbers are drawn
  bool by_library = false;
  Mode mode = Mode::training;
  double at_least = 0;  // the largest entry is taken to be at least this
};

struct Op {
  std::string name;
  std::vector<OpCase> cases;
};

// The seed and step of the contexts that cases run in.
inline constexpr uint64_t kSeed = 0x1234567890abcdefU;
inline constexpr uint64_t kStep = 3;

// The reference alone: its gradients against central differences of its forward, along random directions.
void check_reference(const OpCase& c);

// Forward and backward over the tape against the reference: dense and sliced inputs, outputs and gradients, gradients
// that overwrite NaN and add to junk, inputs used twice, no tape at all, on every machine and 1, 2 and 3 threads.
// Returns the number of passes.
int check_op(const OpCase& c);

const std::vector<Op>& all_ops();
void add_elementwise_ops(std::vector<Op>& to);
void add_rows_ops(std::vector<Op>& to);
void add_gather_ops(std::vector<Op>& to);
void add_linear_ops(std::vector<Op>& to);
void add_conv2d_ops(std::vector<Op>& to);
void add_batch_norm_ops(std::vector<Op>& to);
void add_pool2d_ops(std::vector<Op>& to);
void add_loss_ops(std::vector<Op>& to);
void add_group_loss_ops(std::vector<Op>& to);
void add_pair_loss_ops(std::vector<Op>& to);

}  // namespace gle::test
