#include "engine/parameters.h"

#include <algorithm>

#include "engine/error.h"

namespace gle {

namespace {

constexpr int64_t kUnit = 16;

int64_t padded(const Shape& shape) { return (shape.elements() + kUnit - 1) / kUnit * kUnit; }

// A dense view of `shape` at `offset` of a flat array.
Tensor view(const Tensor& flat, int64_t offset, const Shape& shape) {
  return flat.slice(offset, offset + shape.elements()).reshaped(shape);
}

Tensor new_flat(Backend& backend, const char* purpose, const std::deque<Parameter>& list) {
  int64_t size = 0;
  for (const Parameter& parameter : list) {
    size += padded(parameter.shape);
  }
  Tensor flat = backend.new_tensor(purpose, {1, std::max(size, kUnit)});
  backend.fill(0.0F, flat);
  return flat;
}

void bind_views(const Tensor& flat, std::deque<Parameter>& list, Tensor Parameter::*member) {
  int64_t offset = 0;
  for (Parameter& parameter : list) {
    parameter.*member = view(flat, offset, parameter.shape);
    offset += padded(parameter.shape);
  }
}

}  // namespace

Parameter& ParameterSet::add_to(std::deque<Parameter>& list, std::string name, const Shape& shape) {
  require(!allocated_, "parameters", "'", name, "' comes after the arrays were made");
  require(find(name) == nullptr, "parameters", "the name '", name, "' is taken");
  Parameter& parameter = list.emplace_back();
  parameter.name = std::move(name);
  parameter.shape = shape;
  return parameter;
}

Parameter& ParameterSet::add(std::string name, const Shape& shape) {
  return add_to(parameters_, std::move(name), shape);
}

Parameter& ParameterSet::add_state(std::string name, const Shape& shape) {
  Parameter& parameter = add_to(state_, std::move(name), shape);
  parameter.trainable = false;
  return parameter;
}

void ParameterSet::allocate(Backend& backend) {
  require(!allocated_, "parameters", "the arrays exist already");
  values_ = new_flat(backend, "parameters", parameters_);
  gradients_ = new_flat(backend, "gradients", parameters_);
  state_values_ = new_flat(backend, "state", state_);
  bind_views(values_, parameters_, &Parameter::value);
  bind_views(gradients_, parameters_, &Parameter::grad);
  bind_views(state_values_, state_, &Parameter::value);
  allocated_ = true;
}

Parameter* ParameterSet::find(std::string_view name) {
  for (std::deque<Parameter>* list : {&parameters_, &state_}) {
    const auto found = std::find_if(list->begin(), list->end(), [&](const Parameter& p) { return p.name == name; });
    if (found != list->end()) {
      return &*found;
    }
  }
  return nullptr;
}

int64_t ParameterSet::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    count += parameter.shape.elements();
  }
  return count;
}

std::vector<ParameterSet::Range> ParameterSet::trainable_ranges() const {
  std::vector<Range> ranges;
  int64_t offset = 0;
  for (const Parameter& parameter : parameters_) {
    const Range range{offset, offset + padded(parameter.shape), parameter.lr_scale, parameter.decay_scale};
    offset = range.end;
    if (!parameter.trainable) {
      continue;
    }
    const bool joins = !ranges.empty() && ranges.back().end == range.begin &&
                       ranges.back().lr_scale == range.lr_scale && ranges.back().decay_scale == range.decay_scale;
    if (joins) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

void ParameterSet::complete_gradients(Backend& backend) {
  for (Parameter& parameter : parameters_) {
    if (!parameter.has_gradient) {
      backend.fill(0.0F, parameter.grad);
      parameter.has_gradient = true;
    }
  }
}

void ParameterSet::clear_gradients() {
  for (Parameter& parameter : parameters_) {
    parameter.has_gradient = false;
  }
}

}  // namespace gle
