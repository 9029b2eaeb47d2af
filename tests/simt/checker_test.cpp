// The checker is only worth what it finds: each seeded bug must be reported with its kind and its line, and the same
// kernels without a bug not at all, in sequence and in many random orders.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "fake_cuda/fake_cuda.h"
#include "simt/seeded_bugs.h"
#include "simt/simt.h"

namespace simt::test {

namespace {

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  explicit OnDevice(size_t size) : size_(size) { cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)); }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* get() { return data_; }
  std::vector<T> values() {
    std::vector<T> result(size_);
    cudaMemcpy(result.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return result;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

std::vector<float> numbers(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

// Each runs one kernel and says whether the numbers are right.

bool run_row_sums(Bug bug) {
  const int rows = 3;
  const int columns = bug == Bug::return_before_barrier ? 40 : 100;
  const std::vector<float> x = numbers(static_cast<size_t>(rows * columns));
  OnDevice<float> y(static_cast<size_t>(rows));
  if (bug == Bug::uninitialised_device) {
    OnDevice<float> never_written(x.size());
    row_sums(bug, never_written.get(), rows, columns, y.get());
    cudaDeviceSynchronize();
    return false;
  }
  OnDevice<float> device_x(x);
  if (bug == Bug::freed_pointer) {
    cudaFree(device_x.get());
  }
  row_sums(bug, device_x.get(), rows, columns, y.get());
  cudaDeviceSynchronize();
  const std::vector<float> sums = y.values();
  for (int r = 0; r < rows; ++r) {
    const auto begin = x.begin() + r * columns;
    if (sums[static_cast<size_t>(r)] != std::accumulate(begin, begin + columns, 0.0F)) {
      return false;
    }
  }
  return true;
}

bool run_tile(Bug bug) {
  const int rows = 5;
  const std::vector<float> x = numbers(rows * kThreads);
  OnDevice<float> device_x(x);
  OnDevice<float> y(kThreads);
  column_sums_by_tile(bug, device_x.get(), rows, y.get());
  cudaDeviceSynchronize();
  const std::vector<float> sums = y.values();
  for (size_t c = 0; c < kThreads; ++c) {
    float expected = 0.0F;
    for (size_t r = 0; r < rows; ++r) {
      expected += x[r * kThreads + c];
    }
    if (sums[c] != expected) {
      return false;
    }
  }
  return true;
}

bool run_rotate(Bug bug) {
  const int n = 6;
  const std::vector<float> x = numbers(n * n);
  OnDevice<float> device_x(x);
  OnDevice<float> y(x.size());
  float* const out = bug == Bug::in_place_between_blocks ? device_x.get() : y.get();
  rotate_rows(bug, device_x.get(), n, out);
  cudaDeviceSynchronize();
  std::vector<float> expected = x;
  std::rotate(expected.begin(), expected.begin() + n, expected.end());
  return (bug == Bug::in_place_between_blocks ? device_x : y).values() == expected;
}

bool run_histogram(Bug bug) {
  std::vector<int> labels(200);
  std::vector<int> expected(7);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int>(i * 3 % 7);
    ++expected[static_cast<size_t>(labels[i])];
  }
  OnDevice<int> device_labels(labels);
  OnDevice<int> counts(std::vector<int>(7, 0));
  histogram(bug, bug == Bug::host_pointer ? labels.data() : device_labels.get(), 200, counts.get());
  cudaDeviceSynchronize();
  return counts.values() == expected;
}

bool run_vectors(Bug bug) {
  const std::vector<float> x = numbers(36);
  OnDevice<float> device_x(x);
  OnDevice<float> y(x.size());
  const int shift = bug == Bug::misaligned_vector ? 1 : 0;
  double_vectors(bug, device_x.get() + shift, 32, y.get());
  cudaDeviceSynchronize();
  const std::vector<float> doubled = y.values();
  for (size_t i = 0; i < 32; ++i) {
    if (doubled[i] != 2 * x[i + static_cast<size_t>(shift)]) {
      return false;
    }
  }
  return true;
}

bool run_add_one(Bug bug) {
  const std::vector<float> x = numbers(3 * 100 + 1);
  OnDevice<float> device_x(x);
  OnDevice<float> y(std::vector<float>(x.size(), 0.0F));
  if (bug == Bug::other_device) {
    cudaSetDevice(1);
    OnDevice<float> there(x);
    cudaSetDevice(0);
    add_one(bug, there.get(), 3, 100, y.get());
    cudaDeviceSynchronize();
    return false;
  }
  add_one(bug, device_x.get(), 3, 100, y.get());
  cudaDeviceSynchronize();
  const std::vector<float> more = y.values();
  for (size_t i = 0; i < 300; ++i) {
    if (more[i] != x[i] + 1.0F) {
      return false;
    }
  }
  return true;
}

bool run_neighbours(Bug bug) {
  const std::vector<float> x = numbers(64);
  OnDevice<float> device_x(x);
  OnDevice<float> y(x.size());
  neighbours(bug, device_x.get(), 64, y.get());
  cudaDeviceSynchronize();
  const std::vector<float> swapped = y.values();
  for (size_t i = 0; i < x.size(); ++i) {
    if (swapped[i] != x[i ^ 1U]) {
      return false;
    }
  }
  return true;
}

struct Seeded {
  const char* name;
  Bug bug;
  bool (*run)(Bug);
  Kind kind;
};

const Seeded kSeeded[] = {
    {"missing_barrier", Bug::missing_barrier, run_row_sums, Kind::race},
    {"missing_barrier_with_right_numbers", Bug::missing_barrier_with_right_numbers, run_tile, Kind::race},
    {"divergent_barrier", Bug::divergent_barrier, run_row_sums, Kind::divergent_barrier},
    {"return_before_barrier", Bug::return_before_barrier, run_row_sums, Kind::divergent_barrier},
    {"out_of_bounds", Bug::out_of_bounds, run_row_sums, Kind::bounds},
    {"shared_array_too_small", Bug::shared_array_too_small, run_row_sums, Kind::bounds},
    {"dynamic_shared_too_small", Bug::dynamic_shared_too_small, run_tile, Kind::bounds},
    {"uninitialised_shared", Bug::uninitialised_shared, run_row_sums, Kind::uninitialised},
    {"uninitialised_device", Bug::uninitialised_device, run_row_sums, Kind::uninitialised},
    {"half_warp_mask", Bug::half_warp_mask, run_row_sums, Kind::warp_mask},
    {"shuffle_from_lane_that_left", Bug::shuffle_from_lane_that_left, run_row_sums, Kind::warp_mask},
    {"shuffle_under_a_branch", Bug::shuffle_under_a_branch, run_row_sums, Kind::deadlock},
    {"missing_syncwarp", Bug::missing_syncwarp, run_neighbours, Kind::race},
    {"plain_histogram", Bug::plain_histogram, run_histogram, Kind::race},
    {"in_place_between_blocks", Bug::in_place_between_blocks, run_rotate, Kind::race},
    {"host_pointer", Bug::host_pointer, run_histogram, Kind::bounds},
    {"freed_pointer", Bug::freed_pointer, run_row_sums, Kind::bounds},
    {"other_device", Bug::other_device, run_add_one, Kind::bounds},
    {"wrong_column_guard", Bug::wrong_column_guard, run_add_one, Kind::race},
    {"misaligned_vector", Bug::misaligned_vector, run_vectors, Kind::misaligned},
};

std::string text_of(const std::vector<Report>& reports) {
  std::string text;
  for (const Report& report : reports) {
    text += std::string(name_of(report.kind)) + ": " + report.text + "\n";
  }
  return text;
}

class SeededBug : public testing::TestWithParam<Seeded> {};

TEST_P(SeededBug, IsReportedWithItsKindAndLine) {
  for (const Order order : {Order::sequential, Order::random}) {
    fake_cuda::reset({});
    set_options({.order = order, .seed = 7});
    GetParam().run(GetParam().bug);
    fake_cuda::reset({});
    const std::vector<Report> reports = take_reports();
    const auto found = std::find_if(reports.begin(), reports.end(),
                                    [](const Report& report) { return report.kind == GetParam().kind; });
    ASSERT_NE(found, reports.end()) << text_of(reports);
    EXPECT_NE(found->text.find("seeded_bugs.cu:"), std::string::npos) << found->text;
    EXPECT_NE(found->text.find(" of block "), std::string::npos) << found->text;
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, SeededBug, testing::ValuesIn(kSeeded),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Checker, FindsNothingInCorrectKernels) {
  for (uint64_t seed = 0; seed <= 20; ++seed) {
    fake_cuda::reset({.seed = seed});
    set_options({.order = seed == 0 ? Order::sequential : Order::random, .seed = seed});
    for (const auto run :
         {run_row_sums, run_tile, run_rotate, run_histogram, run_vectors, run_add_one, run_neighbours}) {
      EXPECT_TRUE(run(Bug::none));
    }
    const std::vector<Report> reports = take_reports();
    EXPECT_TRUE(reports.empty()) << text_of(reports);
  }
}

// Why the checker does not trust results: these two bugs give the right numbers in sequence.
TEST(Checker, FindsRacesThatNumbersDoNotShow) {
  fake_cuda::reset({});
  set_options({});
  EXPECT_TRUE(run_tile(Bug::missing_barrier_with_right_numbers));
  EXPECT_TRUE(run_histogram(Bug::plain_histogram));
  const std::string text = text_of(take_reports());
  EXPECT_NE(text.find("race: seeded: sum_tile"), std::string::npos) << text;
  EXPECT_NE(text.find("race: seeded: count"), std::string::npos) << text;
}

TEST(Checker, CountsTheBytesOfAKernel) {
  fake_cuda::reset({});
  set_options({});
  take_traffic();
  ASSERT_TRUE(run_add_one(Bug::none));
  ASSERT_TRUE(run_histogram(Bug::none));
  std::vector<Traffic> traffic = take_traffic();
  ASSERT_EQ(traffic.size(), 2U);
  const Traffic& add = traffic[0].kernel.find("add_one_to") != std::string::npos ? traffic[0] : traffic[1];
  const Traffic& hist = &add == &traffic[0] ? traffic[1] : traffic[0];
  EXPECT_EQ(add.op, "seeded");
  EXPECT_EQ(add.launches, 1U);
  EXPECT_EQ(add.loaded, 300U * 4);
  EXPECT_EQ(add.stored, 300U * 4);
  EXPECT_EQ(hist.loaded, 200U * 4 * 2);
  EXPECT_EQ(hist.distinct_loaded, 200U * 4 + 7 * 4);
  EXPECT_EQ(hist.distinct_stored, 7U * 4);
}

TEST(Checker, LeavesFastRunsAlone) {
  fake_cuda::reset({});
  set_options({.check = false});
  run_histogram(Bug::plain_histogram);
  run_rotate(Bug::in_place_between_blocks);
  EXPECT_TRUE(take_reports().empty());
  set_options({});
}

}  // namespace

}  // namespace simt::test
