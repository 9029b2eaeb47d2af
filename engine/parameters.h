#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend.h"
#include "engine/tensor.h"

namespace gle {

// A named piece of the flat arrays of a ParameterSet.
struct Parameter {
  std::string name;
  Shape shape;
  Tensor value;
  Tensor grad;  // empty for state
  bool trainable = true;
  float lr_scale = 1;  // factors of the optimiser's learning rate and weight decay
  float decay_scale = 1;
  uint64_t moves = 0;         // how often an op has changed the value: running statistics
  bool has_gradient = false;  // grad holds something of this step: the next writer adds
  int pending = 0;            // places on the tape from which something may still come
};

// All parameters of a network: values in one array, gradients in another, so that an optimiser is one pass over them.
// State (running statistics) is named and stored alike but never trained. Names are those of the state_dict.
class ParameterSet {
 public:
  ParameterSet() = default;
  ParameterSet(const ParameterSet&) = delete;
  ParameterSet& operator=(const ParameterSet&) = delete;

  // References stay valid. Both throw if the name is taken or the arrays exist already.
  Parameter& add(std::string name, const Shape& shape);
  Parameter& add_state(std::string name, const Shape& shape);

  // Makes the arrays, filled with zeros. Once, after the last add().
  void allocate(Backend& backend);

  std::deque<Parameter>& parameters() { return parameters_; }
  std::deque<Parameter>& state() { return state_; }
  Parameter* find(std::string_view name);
  int64_t parameter_count() const;

  // The flat arrays [1, n]; every parameter starts at a multiple of 16 elements, the gaps hold zeros.
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  const Tensor& state_values() const { return state_values_; }

  // A stretch of the flat arrays of which every parameter is trained with the same factors.
  struct Range {
    int64_t begin, end;
    float lr_scale, decay_scale;
  };
  std::vector<Range> trainable_ranges() const;

  // After a backward pass: parameters that no gradient reached get zero.
  void complete_gradients(Backend& backend);
  // Before the next step: what the gradients hold is forgotten, the first writer overwrites.
  void clear_gradients();

  // Counts changes of the values, so that whoever derives something from them knows when it is stale.
  uint64_t version() const { return version_; }
  void values_changed() { ++version_; }

 private:
  Parameter& add_to(std::deque<Parameter>& list, std::string name, const Shape& shape);

  std::deque<Parameter> parameters_;
  std::deque<Parameter> state_;
  Tensor values_;
  Tensor gradients_;
  Tensor state_values_;
  uint64_t version_ = 1;
  bool allocated_ = false;
};

}  // namespace gle
