#include "engine/context.h"

namespace gle {

Var Context::output(const char* op, Tape::Inputs inputs, const Shape& shape, const Var& out) {
  if (!out) {
    return new_var(op, shape);
  }
  require(out.shape() == shape, op, "gives ", shape, " but is to write ", out.shape());
  require_device(op, {out.value()});
  if (tape) {
    tape->require_writable(op, inputs, out);
  }
  return out;
}

void Context::require_device(const char* op,
                             std::initializer_list<std::reference_wrapper<const Tensor>> tensors) const {
  for (const Tensor& tensor : tensors) {
    require(!tensor || tensor.device() == backend.device(), op, "a tensor ", tensor.shape(), " is on ", tensor.device(),
            " but the op runs on ", backend.device(), "; copy it first");
  }
}

void Context::require_finite(const char* op, const Var& output) const {
  if (!backend.all_finite(output.value())) {
    fail(ErrorCode::not_finite, op, ": the output ", output.shape(), " is not finite");
  }
}

}  // namespace gle
