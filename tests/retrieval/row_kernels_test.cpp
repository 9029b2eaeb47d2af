#include "retrieval/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

std::vector<float> values(int64_t count, uint64_t seed, float distinct) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = std::floor(distinct * uniform(RandomKey{.seed = seed, .stream = 4}, i));
  }
  return result;
}

class RowKernelsOf : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::supported(GetParam())) {
      GTEST_SKIP();
    }
  }
};

TEST_P(RowKernelsOf, EqualPlainLoops) {
  const RowKernels& kernels = row_kernels(GetParam());
  for (const int64_t count : {1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 127, 128, 129, 500, 1031}) {
    for (const float distinct : {1.0F, 7.0F, 1e6F}) {
      const std::vector<float> row = values(count, 3, distinct);
      const float bound = row[static_cast<size_t>(count / 2)];
      EXPECT_EQ(kernels.count_below(row.data(), count, bound),
                std::count_if(row.begin(), row.end(), [&](float v) { return v < bound; }));
      EXPECT_EQ(kernels.count_up_to(row.data(), count, bound),
                std::count_if(row.begin(), row.end(), [&](float v) { return v <= bound; }));
      EXPECT_EQ(kernels.smallest(row.data(), count), std::min_element(row.begin(), row.end()) - row.begin());
      EXPECT_EQ(kernels.largest(row.data(), count), *std::max_element(row.begin(), row.end()));
      for (const float limit : {bound, INFINITY, -1.0F}) {
        std::vector<int32_t> found(static_cast<size_t>(count));
        found.resize(static_cast<size_t>(kernels.find_below(row.data(), count, limit, found.data())));
        std::vector<int32_t> expected(static_cast<size_t>(count));
        std::iota(expected.begin(), expected.end(), 0);
        std::erase_if(expected, [&](int32_t i) { return !(row[static_cast<size_t>(i)] < limit); });
        EXPECT_EQ(found, expected);
      }
      const std::vector<float> norms = values(count, 4, distinct);
      std::vector<float> distances = row;
      kernels.to_distances(0.3F, norms.data(), count, distances.data());
      std::vector<double> sums(static_cast<size_t>(count), 0.5);
      kernels.accumulate(row.data(), count, sums.data());
      for (size_t i = 0; i < row.size(); ++i) {
        EXPECT_EQ(distances[i], std::max(0.0F, 0.3F + norms[i] - 2 * row[i]));
        EXPECT_EQ(sums[i], 0.5 + row[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RowKernelsOf, testing::Values(cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512),
                         [](const auto& info) { return cpu::name_of(info.param); });

}  // namespace
}  // namespace gle::test
