#include "engine/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/error.h"
#include "engine/parameters.h"

namespace gle {

namespace {

void require_finite(Backend& backend, const Tensor& gradient, const char* op) {
  if (!backend.all_finite(gradient)) {
    fail(ErrorCode::not_finite, op, ": backward gave a gradient ", gradient.shape(), " that is not finite");
  }
}

uint64_t next_pass() {
  static std::atomic<uint64_t> passes = 0;
  return ++passes;
}

}  // namespace

Tape::Tape(Backend& backend) : backend_(backend), pass_(next_pass()) {}

int Tape::new_slot(const Shape& shape) {
  if (slots_used_ == slots_.size()) {
    slots_.emplace_back();
  }
  Slot& slot = slots_[slots_used_];
  slot.shape = shape;
  slot.grad = Tensor();
  slot.written.clear();
  slot.produced.clear();
  slot.created_at = nodes_used_;
  slot.needed = slot.keep = slot.spent = false;
  slot.parameter = nullptr;
  return static_cast<int>(slots_used_++);
}

Var Tape::new_var(Tensor value) {
  const int slot = new_slot(value.shape());
  return Var(std::move(value), slot, 0, pass_);
}

Var Tape::leaf(Tensor value) {
  Var var = new_var(std::move(value));
  slots_[static_cast<size_t>(var.slot_)].needed = true;
  slots_[static_cast<size_t>(var.slot_)].keep = true;
  return var;
}

Var Tape::parameter(Parameter& parameter) {
  if (!parameter.trainable) {
    return Var(parameter.value);
  }
  Var var = new_var(parameter.value);
  Slot& slot = slots_[static_cast<size_t>(var.slot_)];
  slot.needed = true;
  slot.parameter = &parameter;
  ++parameter.pending;
  return var;
}

bool Tape::needs_gradient(const Var& var) const {
  if (var.slot_ == Var::kNoSlot) {
    return false;
  }
  require(var.pass_ == pass_, "tape", "a Var ", var.shape(),
          " is of another tape, or from before clear(): make a new one of its value");
  const Slot& slot = slots_[static_cast<size_t>(var.slot_)];
  require(!slot.spent, "tape", "a Var ", var.shape(), " is from before backward(), which only leaves outlast");
  return slot.needed;
}

bool Tape::needs_gradient(Inputs inputs) const {
  return std::count_if(inputs.begin(), inputs.end(), [&](const Var& input) { return needs_gradient(input); }) > 0;
}

Tape::Place Tape::place_of(const Var& var) {
  return {var.slot_, var.first_channel_, var.first_channel_ + var.value_.channels()};
}

void Tape::require_writable(const char* op, Inputs inputs, const Var& output) const {
  const bool recorded = needs_gradient(inputs);
  const bool outside = output.slot_ == Var::kNoSlot;
  require(outside ? !recorded : output.pass_ == pass_, op,
          "the place for its output must be a Var of the tape that records");
  if (outside) {
    return;
  }
  const Place to = place_of(output);
  const auto overlaps = [&](int64_t begin, int64_t end) { return begin < to.end && to.begin < end; };
  for (const Var& input : inputs) {
    const Place from = place_of(input);
    require(!recorded || from.slot != to.slot || !overlaps(from.begin, from.end), op,
            "its output would overwrite its input ", input.shape(), ", which backward() needs");
  }
  for (const Interval& interval : slots_[static_cast<size_t>(to.slot)].produced) {
    require(!overlaps(interval.begin, interval.end), op, "its output ", output.shape(),
            " would overwrite that of another op, whose gradient would go wrong");
  }
}

Tape::Node& Tape::next_node(const char* op, Inputs inputs, const Var& output) {
  invariant(inputs.size() <= kMostInputs, "an op has more inputs than a node of the tape holds");
  require_writable(op, inputs, output);
  if (nodes_used_ == nodes_.size()) {
    nodes_.emplace_back();
  }
  Node& node = nodes_[nodes_used_];
  node.op = op;
  node.input_count = inputs.size();
  std::transform(inputs.begin(), inputs.end(), node.inputs.begin(),
                 [&](const Var& input) { return needs_gradient(input) ? place_of(input) : Place{}; });
  node.output = place_of(output);
  return node;
}

void Tape::keep_node() {
  const Place& to = nodes_[nodes_used_].output;
  Slot& slot = slots_[static_cast<size_t>(to.slot)];
  slot.produced.push_back({to.begin, to.end});
  slot.needed = true;
  ++nodes_used_;
}

void Tape::fill_gaps(Slot& slot, int64_t begin, int64_t end) {
  int64_t at = begin;
  const auto fill_until = [&](int64_t stop) {
    if (at < stop) {
      backend_.fill(0.0F, slot.grad.slice(at, stop));
    }
  };
  for (const Interval& interval : slot.written) {
    if (interval.end <= at || interval.begin >= end) {
      continue;
    }
    fill_until(interval.begin);
    at = interval.end;
  }
  fill_until(end);
}

// Writes of a part of the channels are rare, so the list of intervals stays short.
GradTarget Tape::target(const Place& place, const char* op) {
  if (place.slot == Var::kNoSlot) {
    return {};
  }
  Slot& slot = slots_[static_cast<size_t>(place.slot)];
  if (slot.parameter) {
    Parameter& parameter = *slot.parameter;
    require(place.begin == 0 && place.end == slot.shape.channels(), op, "the gradient of a slice of parameter '",
            parameter.name, "' cannot be taken; use all of it");
    const Accumulate mode = parameter.has_gradient ? Accumulate::add : Accumulate::overwrite;
    parameter.has_gradient = true;
    return {parameter.grad, mode};
  }
  if (!slot.grad) {
    slot.grad = backend_.new_tensor(op, slot.shape);
  }
  int64_t covered = 0;
  Interval merged{place.begin, place.end};
  for (const Interval& interval : slot.written) {
    covered += std::max<int64_t>(0, std::min(interval.end, place.end) - std::max(interval.begin, place.begin));
    if (interval.begin <= place.end && place.begin <= interval.end) {
      merged = {std::min(merged.begin, interval.begin), std::max(merged.end, interval.end)};
    }
  }
  if (covered > 0 && covered < place.end - place.begin) {
    fill_gaps(slot, place.begin, place.end);
  }
  std::erase_if(slot.written, [&](const Interval& i) { return i.begin >= merged.begin && i.end <= merged.end; });
  const auto after =
      std::find_if(slot.written.begin(), slot.written.end(), [&](const Interval& i) { return i.begin > merged.begin; });
  slot.written.insert(after, merged);
  const bool whole = place.begin == 0 && place.end == slot.shape.channels();
  return {whole ? slot.grad : slot.grad.slice(place.begin, place.end),
          covered > 0 ? Accumulate::add : Accumulate::overwrite};
}

bool Tape::take_gradient(const Place& place, Tensor& dy) {
  Slot& slot = slots_[static_cast<size_t>(place.slot)];
  const bool touched = std::any_of(slot.written.begin(), slot.written.end(), [&](const Interval& interval) {
    return interval.begin < place.end && place.begin < interval.end;
  });
  if (!touched) {
    return false;
  }
  fill_gaps(slot, place.begin, place.end);
  const bool whole = place.begin == 0 && place.end == slot.shape.channels();
  dy = whole ? slot.grad : slot.grad.slice(place.begin, place.end);
  return true;
}

void Tape::backward(const Var& output) {
  require(needs_gradient(output), "backward", "the output does not depend on anything that needs a gradient");
  require(output.value().elements() == 1, "backward", "without a cotangent the output must be a single number, not ",
          output.shape());
  const Tensor one = backend_.new_tensor("backward", output.shape());
  backend_.fill(1.0F, one);
  backward(output, one);
}

void Tape::backward(const Var& output, const Tensor& cotangent) {
  require(needs_gradient(output), "backward", "the output does not depend on anything that needs a gradient");
  require(output.shape() == cotangent.shape(), "backward", "the cotangent is ", cotangent.shape(), ", the output ",
          output.shape());
  require(cotangent.type() == DType::f32 && cotangent.device() == backend_.device(), "backward",
          "the cotangent must be of floats on ", backend_.device(), "; it is on ", cotangent.device());
  backend_.scale(1.0F, cotangent, target(place_of(output), "backward"));
  walk_back();
}

void Tape::run(Node& node) {
  Tensor dy;
  if (!take_gradient(node.output, dy)) {
    return;
  }
  std::array<GradTarget, kMostInputs> targets;
  for (size_t i = 0; i < node.input_count; ++i) {
    targets[i] = target(node.inputs[i], node.op);
  }
  const GradTargets wanted(targets.data(), node.input_count);
  node.run(node.closure, backend_, dy, wanted);
  if (check_finite_) {
    for (const GradTarget& written : wanted) {
      if (written) {
        require_finite(backend_, written.grad, node.op);
      }
    }
  }
}

// Nobody will ask for it again.
void Tape::release(Slot& slot) {
  if (!slot.keep) {
    slot.grad = Tensor();
    slot.spent = true;
  }
  Parameter* parameter = std::exchange(slot.parameter, nullptr);
  if (parameter && --parameter->pending == 0 && on_gradient_) {
    on_gradient_(*parameter);
  }
}

void Tape::walk_back() {
  size_t slot = slots_used_;
  while (nodes_used_ > 0) {
    Node& node = nodes_[nodes_used_ - 1];
    run(node);
    node.destroy(node.closure);
    --nodes_used_;
    while (slot > 0 && slots_[slot - 1].created_at >= nodes_used_) {
      release(slots_[--slot]);
    }
  }
  for (size_t i = 0; i < slots_used_; ++i) {
    Slot& leaf = slots_[i];
    if (leaf.keep && leaf.grad) {
      fill_gaps(leaf, 0, leaf.shape.channels());
      leaf.written.assign(1, {0, leaf.shape.channels()});
    }
  }
  arena_.reset();
}

void Tape::destroy_closures() {
  for (; nodes_used_ > 0; --nodes_used_) {
    Node& node = nodes_[nodes_used_ - 1];
    node.destroy(node.closure);
  }
  arena_.reset();
}

Tensor Tape::gradient(const Var& leaf) const {
  require(leaf.slot_ != Var::kNoSlot && leaf.pass_ == pass_ && slots_[static_cast<size_t>(leaf.slot_)].keep, "gradient",
          "only leaves of this pass keep their gradients");
  return slots_[static_cast<size_t>(leaf.slot_)].grad;
}

void Tape::clear() {
  destroy_closures();
  for (size_t i = 0; i < slots_used_; ++i) {
    slots_[i].grad = Tensor();
    if (slots_[i].parameter) {
      slots_[i].parameter->pending = 0;
    }
  }
  slots_used_ = 0;
  pass_ = next_pass();
}

}  // namespace gle
