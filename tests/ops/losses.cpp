#include "losses/cross_entropy.h"
#include "tests/op_test.h"
#include "tests/placed.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

void add_loss_ops(std::vector<Op>& to) {
  Op op{"cross_entropy", {}};
  Draw draw(160);
  for (const Shape& shape : matrix_shapes()) {
    for (const float smoothing : {0.0F, 0.1F}) {
      const std::vector<int> labels = draw.labels(shape.rows(), shape.channels());
      const Array labels_array(Shape{shape.rows()}, std::vector<double>(labels.begin(), labels.end()));
      op.cases.push_back(
          {.label = name_of(shape) + " smoothing " + std::to_string(smoothing),
           .inputs = {{draw.array(shape, -3, 3)}},
           .run =
               [=](Context& ctx, std::span<const Var> in, const Var&) {
                 const Placed on_device(ctx.backend, labels_array, Layout::dense, DType::i32);
                 return cross_entropy(ctx, in[0], on_device.tensor(), smoothing);
               },
           .forward = [=](const Arrays& in) { return reference::cross_entropy(in[0], labels, smoothing); },
           .backward =
               [=](const Arrays& in, const Array& dy) {
                 return Arrays{reference::cross_entropy_backward(in[0], labels, smoothing, dy[0])};
               },
           .takes_out = false,
           .out_sliceable = false,
           .at_least = shape.channels() == 1 ? 1.0 : 0.0});
    }
  }
  to.push_back(op);
}

}  // namespace gle::test
