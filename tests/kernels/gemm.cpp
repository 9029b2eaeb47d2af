#include <sstream>

#include "tests/kernel_test.h"
#include "tests/reference/reference.h"

namespace gle::test {

namespace {

struct Sizes {
  int64_t m, n, k;
};

std::vector<Sizes> gemm_sizes() {
  std::vector<Sizes> all = {{1, 1, 1},   {1, 17, 5},    {17, 1, 5},    {5, 17, 1},     {16, 16, 16},  {3, 64, 33},
                            {33, 65, 7}, {32, 100, 64}, {12, 200, 31}, {100, 12, 129}, {48, 96, 300}, {7, 5, 1000}};
  Draw draw(40);
  for (int i = 0; i < 10; ++i) {
    all.push_back({draw.integer(1, 50), draw.integer(1, 70), draw.integer(1, 70)});
  }
  return all;
}

}  // namespace

void add_gemm_kernels(std::vector<Kernel>& to) {
  Kernel kernel{"gemm", {}};
  Draw draw(41);
  for (const Sizes& sizes : gemm_sizes()) {
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        const Array a = draw.array(ta == Transpose::yes ? Shape{sizes.k, sizes.m} : Shape{sizes.m, sizes.k});
        const Array b = draw.array(tb == Transpose::yes ? Shape{sizes.n, sizes.k} : Shape{sizes.k, sizes.n});
        const Array bias = draw.integer(0, 1) == 1 ? draw.array(Shape{sizes.n}) : Array();
        std::ostringstream label;
        label << sizes.m << "x" << sizes.n << "x" << sizes.k << (ta == Transpose::yes ? " a transposed" : "")
              << (tb == Transpose::yes ? " b transposed" : "") << (bias ? " bias" : "");
        kernel.cases.push_back({label.str(),
                                {{a}, {b}, {bias, DType::f32, false}},
                                {{.expected = reference::gemm(a, ta, b, tb, bias)}},
                                [=](Backend& backend, KernelCase::Inputs in, KernelCase::Outputs out) {
                                  backend.gemm(in[0], ta, in[1], tb, in[2], out[0]);
                                },
                                true});
      }
    }
  }
  to.push_back(kernel);
}

}  // namespace gle::test
