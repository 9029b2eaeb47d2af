#include "layers/elementwise.h"

#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

Op activation_op() {
  Op op{"activation", {}};
  Draw draw(110);
  for (const Shape& shape : row_shapes()) {
    for (const Activation f : {kIdentity, kRelu, Activation{0.1F}}) {
      op.cases.push_back(
          {.label = name_of(shape) + " slope " + std::to_string(f.slope),
           .inputs = {{draw.array_off_zero(shape)}},
           .run = [f](Context& ctx, std::span<const Var> in, const Var& out) { return activation(ctx, in[0], f, out); },
           .forward = [f](const Arrays& in) { return reference::activation(in[0], f); },
           .backward = [f](const Arrays& in,
                           const Array& dy) { return Arrays{reference::activation_backward(in[0], f, dy)}; }});
    }
  }
  return op;
}

Op add_op() {
  Op op{"add", {}};
  Draw draw(111);
  for (const Shape& shape : row_shapes()) {
    op.cases.push_back(
        {.label = name_of(shape),
         .inputs = {{draw.array(shape)}, {draw.array(shape)}},
         .run = [](Context& ctx, std::span<const Var> in, const Var& out) { return add(ctx, in[0], in[1], out); },
         .forward = [](const Arrays& in) { return reference::add(in[0], in[1]); },
         .backward =
             [](const Arrays&, const Array& dy) {
               return Arrays{dy, dy};
             }});
  }
  return op;
}

Op scale_op() {
  Op op{"scale", {}};
  Draw draw(112);
  for (const Shape& shape : row_shapes()) {
    const float factor = draw.one_of<float>({1.0F, -0.5F, 3.0F});
    op.cases.push_back(
        {.label = name_of(shape) + " by " + std::to_string(factor),
         .inputs = {{draw.array(shape)}},
         .run = [factor](Context& ctx, std::span<const Var> in,
                         const Var& out) { return scale(ctx, in[0], factor, out); },
         .forward = [factor](const Arrays& in) { return reference::scale(in[0], factor); },
         .backward = [factor](const Arrays&, const Array& dy) { return Arrays{reference::scale(dy, factor)}; }});
  }
  return op;
}

// The first random stream of a step has the key that Context promises, so that the reference knows the mask.
Op dropout_op() {
  Op op{"dropout", {}};
  Draw draw(113);
  const RandomKey key{kSeed, kStep << 20U};
  for (const Shape& shape : row_shapes()) {
    const float p = draw.one_of<float>({0.1F, 0.5F, 0.8F});
    op.cases.push_back(
        {.label = name_of(shape) + " probability " + std::to_string(p),
         .inputs = {{draw.array(shape)}},
         .run = [p](Context& ctx, std::span<const Var> in, const Var&) { return dropout(ctx, in[0], p); },
         .forward = [p, key](const Arrays& in) { return reference::dropout(in[0], p, key); },
         .backward = [p, key](const Arrays&, const Array& dy) { return Arrays{reference::dropout(dy, p, key)}; },
         .takes_out = false,
         .repeatable = false});
  }
  return op;
}

}  // namespace

void add_elementwise_ops(std::vector<Op>& to) {
  to.insert(to.end(), {activation_op(), add_op(), scale_op(), dropout_op()});
}

}  // namespace gle::test
