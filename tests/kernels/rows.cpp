#include <algorithm>

#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

Kernel column_sums() {
  Kernel kernel{"column_sums", {}};
  Draw draw(20);
  for (const Shape& shape : row_shapes()) {
    const Array x = draw.array(shape);
    kernel.cases.push_back(
        {name_of(shape),
         {{x}},
         {{.expected = reference::column_sums(x), .sliceable = false}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.column_sums(in[0], out[0]); }});
  }
  return kernel;
}

Kernel centre_rows() {
  Kernel kernel{"centre_rows", {}};
  Draw draw(21);
  for (const Shape& shape : matrix_shapes()) {
    const Array x = draw.array(shape, 0, 2);
    kernel.cases.push_back(
        {name_of(shape),
         {{x}},
         {{.expected = reference::centre_rows(x), .at_least = 1}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.centre_rows(in[0], out[0]); }});
  }
  return kernel;
}

// Rows of ordinary, small and large numbers, and of zeros.
Array rows_to_normalise(Draw& draw, const Shape& shape) {
  Array x = draw.array_off_zero(shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const double factor = row % 4 == 1 ? 1e-3 : row % 4 == 2 ? 1e3 : row % 7 == 3 ? 0 : 1;
    for (int64_t c = 0; c < x.channels(); ++c) {
      x(row, c) = static_cast<float>(x(row, c) * factor);
    }
  }
  return x;
}

Kernel normalise_rows_forward() {
  Kernel kernel{"normalise_rows_forward", {}};
  Draw draw(22);
  for (const Shape& shape : matrix_shapes()) {
    for (const float beta : {0.0F, 0.25F}) {
      const Array x = rows_to_normalise(draw, shape);
      kernel.cases.push_back({name_of(shape) + " beta " + std::to_string(beta),
                              {{x}},
                              {{.expected = reference::row_norms(x), .sliceable = false, .adds = false},
                               {.expected = reference::normalise_rows(x, beta), .adds = false}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.normalise_rows_forward(in[0], beta, out[0].grad, out[1].grad);
                              }});
    }
  }
  return kernel;
}

Kernel normalise_rows_backward() {
  Kernel kernel{"normalise_rows_backward", {}};
  Draw draw(23);
  for (const Shape& shape : matrix_shapes()) {
    for (const float beta : {0.0F, 0.25F}) {
      Array x = draw.array_off_zero(shape);
      std::fill_n(x.values.begin(), shape.rows() > 2 ? shape.channels() : 0, 0.0);
      const Array dy = draw.array(shape);
      kernel.cases.push_back({name_of(shape) + " beta " + std::to_string(beta),
                              {{x}, {reference::row_norms(x), DType::f32, false}, {dy}},
                              {{.expected = reference::normalise_rows_backward(x, beta, dy), .at_least = 20}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.normalise_rows_backward(in[0], in[1], beta, in[2], out[0]);
                              }});
    }
  }
  return kernel;
}

// Every third column, or the first alone.
Array some_columns(int64_t channels) {
  Array columns(Shape{(channels + 2) / 3});
  for (int64_t j = 0; j < columns.size(); ++j) {
    columns[j] = static_cast<double>(3 * j);
  }
  return columns;
}

Kernel take_columns() {
  Kernel kernel{"take_columns", {}};
  Draw draw(24);
  for (const Shape& shape : matrix_shapes()) {
    const Array x = draw.array(shape), columns = some_columns(shape.channels());
    kernel.cases.push_back({name_of(shape),
                            {{x}, {columns, DType::i32, false}},
                            {{.expected = reference::take_columns(x, columns), .adds = false, .tolerance = 1e-7}},
                            [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.take_columns(in[0], in[1], out[0].grad);
                            }});
  }
  return kernel;
}

Kernel put_columns() {
  Kernel kernel{"put_columns", {}};
  Draw draw(25);
  for (const Shape& shape : matrix_shapes()) {
    const Array columns = some_columns(shape.channels());
    const Array dy = draw.array(Shape{shape.rows(), columns.size()});
    kernel.cases.push_back(
        {name_of(shape),
         {{dy}, {columns, DType::i32, false}},
         {{.expected = reference::put_columns(dy, columns, shape), .omissible = true}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.put_columns(in[0], in[1], out[0]); }});
  }
  return kernel;
}

}  // namespace

void add_rows_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {column_sums(), centre_rows(), normalise_rows_forward(), normalise_rows_backward(),
                       take_columns(), put_columns()});
}

}  // namespace gle::test
