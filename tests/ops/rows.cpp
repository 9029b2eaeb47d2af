#include "layers/rows.h"

#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

// Softmax of a single class and the like have no gradient: what is left is rounding, measured by the input.
constexpr double kAtLeast = 1;

Op softmax_op() {
  Op op{"softmax", {}};
  Draw draw(120);
  for (const Shape& shape : matrix_shapes()) {
    op.cases.push_back(
        {.label = name_of(shape),
         .inputs = {{draw.array(shape, -3, 3)}},
         .run = [](Context& ctx, std::span<const Var> in, const Var&) { return softmax(ctx, in[0]); },
         .forward = [](const Arrays& in) { return reference::softmax(in[0]); },
         .backward = [](const Arrays& in,
                        const Array& dy) { return Arrays{reference::softmax_backward(reference::softmax(in[0]), dy)}; },
         .takes_out = false,
         .at_least = shape.channels() == 1 ? kAtLeast : 0});
  }
  return op;
}

Op log_softmax_op() {
  Op op{"log_softmax", {}};
  Draw draw(121);
  for (const Shape& shape : matrix_shapes()) {
    op.cases.push_back(
        {.label = name_of(shape),
         .inputs = {{draw.array(shape, -3, 3)}},
         .run = [](Context& ctx, std::span<const Var> in, const Var&) { return log_softmax(ctx, in[0]); },
         .forward = [](const Arrays& in) { return reference::log_softmax(in[0]); },
         .backward =
             [](const Arrays& in, const Array& dy) {
               return Arrays{reference::log_softmax_backward(reference::log_softmax(in[0]), dy)};
             },
         .takes_out = false,
         .at_least = kAtLeast});
  }
  return op;
}

Op centre_rows_op() {
  Op op{"centre_rows", {}};
  Draw draw(122);
  for (const Shape& shape : matrix_shapes()) {
    op.cases.push_back(
        {.label = name_of(shape),
         .inputs = {{draw.array(shape, 0, 1)}},
         .run = [](Context& ctx, std::span<const Var> in, const Var&) { return centre_rows(ctx, in[0]); },
         .forward = [](const Arrays& in) { return reference::centre_rows(in[0]); },
         .backward = [](const Arrays&, const Array& dy) { return Arrays{reference::centre_rows(dy)}; },
         .takes_out = false,
         .at_least = kAtLeast});
  }
  return op;
}

Op normalise_rows_op() {
  Op op{"normalise_rows", {}};
  Draw draw(123);
  for (const Shape& shape : matrix_shapes()) {
    for (const float beta : {0.0F, 0.004F, 0.5F}) {
      op.cases.push_back(
          {.label = name_of(shape) + " beta " + std::to_string(beta),
           .inputs = {{draw.array_off_zero(shape, 0.3)}},
           .run = [beta](Context& ctx, std::span<const Var> in,
                         const Var&) { return normalise_rows(ctx, in[0], beta); },
           .forward = [beta](const Arrays& in) { return reference::normalise_rows(in[0], beta); },
           .backward = [beta](const Arrays& in,
                              const Array& dy) { return Arrays{reference::normalise_rows_backward(in[0], beta, dy)}; },
           .takes_out = false,
           .at_least = kAtLeast});
    }
  }
  return op;
}

Op take_columns_op() {
  Op op{"take_columns", {}};
  Draw draw(125);
  for (const Shape& shape : matrix_shapes()) {
    Array columns(Shape{(shape.channels() + 1) / 2});
    std::vector<int32_t> numbers;
    for (int64_t j = 0; j < columns.size(); ++j) {
      columns[j] = static_cast<double>(2 * j);
      numbers.push_back(static_cast<int32_t>(2 * j));
    }
    op.cases.push_back(
        {.label = name_of(shape),
         .inputs = {{draw.array(shape)}},
         .run =
             [numbers](Context& ctx, std::span<const Var> in, const Var&) {
               const Tensor list = ctx.backend.new_tensor("test", {static_cast<int64_t>(numbers.size())}, DType::i32);
               ctx.backend.upload(numbers.data(), list);
               return take_columns(ctx, in[0], list);
             },
         .forward = [columns](const Arrays& in) { return reference::take_columns(in[0], columns); },
         .backward = [columns](const Arrays& in,
                               const Array& dy) { return Arrays{reference::put_columns(dy, columns, in[0].shape)}; },
         .takes_out = false});
  }
  return op;
}

}  // namespace

void add_rows_ops(std::vector<Op>& to) {
  to.insert(to.end(), {softmax_op(), log_softmax_op(), centre_rows_op(), normalise_rows_op(), take_columns_op()});
}

}  // namespace gle::test
