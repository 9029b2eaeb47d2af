// What runs beside what: the copy of the next batch, steps as graphs, and whether a forgotten wait would be noticed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/cuda/cuda.h"
#include "engine/error.h"
#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"
#include "tests/device_watch.h"

namespace gle {

namespace {

constexpr uint64_t kSchedules = 40;
constexpr int kSteps = 6;
constexpr size_t kBatch = 32;

class CudaStreamsTest : public testing::Test {
 protected:
  CudaStreamsTest() {
    test::watch_device();
    simt::set_options({.order = simt::Order::random, .check = false});
  }
  ~CudaStreamsTest() override {
    fake_cuda::reset({});
    simt::set_options({.order = simt::Order::random});
  }
};

enum class Wait { yes, forgotten };

// A loop that adds up the batches which are prefetched for it, step by step; returns the running sums.
std::vector<float> sums_of_batches(Wait wait) {
  const auto backend = make_cuda_backend({.graphs = true});
  const Tensor places[] = {backend->new_tensor("batch", {kBatch}), backend->new_tensor("batch", {kBatch})};
  const Tensor sum = backend->new_tensor("sum", {kBatch});
  std::vector<float> found;
  backend->fill(-1, places[0]);
  backend->fill(-1, places[1]);
  backend->fill(0, sum);
  const auto batch_of = [](int step) { return std::vector<float>(kBatch, static_cast<float>(1 << step)); };
  backend->prefetch(batch_of(0).data(), places[0]);
  for (int step = 0; step < kSteps; ++step) {
    if (wait == Wait::yes) {
      backend->await_prefetched();
    }
    if (step + 1 < kSteps) {
      backend->prefetch(batch_of(step + 1).data(), places[(step + 1) % 2]);
    }
    backend->run_step(1, [&] { backend->add(sum, places[step % 2], sum); });
    std::vector<float> values(kBatch);
    backend->download(sum, values.data());
    found.insert(found.end(), values.begin(), values.end());
  }
  return found;
}

std::vector<float> expected_sums() {
  std::vector<float> expected;
  for (int step = 0; step < kSteps; ++step) {
    expected.insert(expected.end(), kBatch, static_cast<float>((2 << step) - 1));
  }
  return expected;
}

TEST_F(CudaStreamsTest, PrefetchedBatchesArriveInTimeWhateverTheSchedule) {
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    fake_cuda::reset({.seed = seed});
    ASSERT_EQ(sums_of_batches(Wait::yes), expected_sums()) << "schedule " << seed;
  }
}

// A test of the test: without await_prefetched() the kernels find the old contents under some schedules.
TEST_F(CudaStreamsTest, AForgottenWaitIsFound) {
  int found = 0;
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    fake_cuda::reset({.seed = seed});
    found += sums_of_batches(Wait::forgotten) == expected_sums() ? 0 : 1;
  }
  EXPECT_GE(found, static_cast<int>(kSchedules / 4));
}

// The same for a result that is read on another stream before the kernels are waited for.
TEST_F(CudaStreamsTest, AForgottenSynchronisationIsFound) {
  int found = 0;
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    fake_cuda::reset({.seed = seed});
    const auto backend = make_cuda_backend();
    const Tensor x = backend->new_tensor("test", {1});
    backend->fill(1, x);
    backend->synchronise();
    backend->fill(2, x);
    float* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float)), cudaSuccess);
    *pinned = 0;
    ASSERT_EQ(cudaMemcpyAsync(pinned, x.data(), sizeof(float), cudaMemcpyDeviceToHost, cudaStreamPerThread),
              cudaSuccess);
    found += *pinned == 2 ? 0 : 1;
    backend->synchronise();
    ASSERT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  }
  EXPECT_EQ(found, static_cast<int>(kSchedules));
}

TEST_F(CudaStreamsTest, StepsGoToTheDeviceAsGraphs) {
  fake_cuda::reset({});
  const auto backend = make_cuda_backend({.graphs = true});
  const Tensor x = backend->new_tensor("test", {8});
  backend->fill(0, x);
  const auto step = [&](float value) {
    backend->run_step(1, [&] {
      const Tensor one = backend->new_tensor("test", {8});  // dies while the kernels are only recorded
      backend->fill(value, one);
      backend->add(x, one, x);
    });
  };
  const uint64_t before = fake_cuda::statistics().graph_launches;
  for (int i = 1; i <= 5; ++i) {
    step(static_cast<float>(i));
  }
  EXPECT_EQ(fake_cuda::statistics().graph_launches - before, 4U) << "the first step runs by itself";
  std::vector<float> values(8);
  backend->download(x, values.data());
  EXPECT_EQ(values, std::vector<float>(8, 15));
}

// What a launch was given must not stay in the graph: random keys, factors, and what is uploaded within the step.
TEST_F(CudaStreamsTest, AGraphHasTheNumbersOfItsStep) {
  const auto run = [](bool graphs) {
    const auto backend = make_cuda_backend({.graphs = graphs});
    const Tensor x = backend->new_tensor("test", {4, 64});
    const Tensor y = backend->new_tensor("test", {4, 64});
    backend->fill(0, y);
    for (int step = 0; step < 5; ++step) {
      const std::vector<float> host(256, static_cast<float>(step + 1));
      backend->run_step(7, [&] {
        backend->upload(host.data(), x);
        backend->dropout(x, 0.5F, {.seed = 3, .stream = static_cast<uint64_t>(step)}, 0, {x});
        backend->scale(static_cast<float>(step) - 1.5F, x, {y, Accumulate::add});
      });
    }
    std::vector<float> values(256);
    backend->download(y, values.data());
    return values;
  };
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    fake_cuda::reset({.seed = seed});
    ASSERT_EQ(run(true), run(false)) << "schedule " << seed;
  }
}

TEST_F(CudaStreamsTest, TheFirstStepOfAKindRunsByItself) {
  fake_cuda::reset({});
  const auto backend = make_cuda_backend({.graphs = true});
  const Tensor x = backend->new_tensor("test", {8});
  std::vector<uint64_t> launches;
  for (const int64_t kind : {0, 0, 1, 1, 1, 0}) {
    const uint64_t before = fake_cuda::statistics().graph_launches;
    backend->run_step(kind, [&] { backend->fill(1, x); });
    launches.push_back(fake_cuda::statistics().graph_launches - before);
  }
  EXPECT_EQ(launches, (std::vector<uint64_t>{0, 1, 0, 1, 1, 0}));
}

TEST_F(CudaStreamsTest, AStepMayTakeMemoryFromTheDevice) {
  fake_cuda::reset({});
  const auto backend = make_cuda_backend({.graphs = true});
  const Tensor sum = backend->new_tensor("test", {1});
  float expected = 0;
  backend->fill(0, sum);
  for (int64_t step = 0; step < 3; ++step) {
    const int64_t elements = int64_t{1} << (12 + 6 * step);
    backend->run_step(1, [&] {
      const Tensor large = backend->new_tensor("test", {elements});
      const Tensor one = large.reshaped({1, elements}).slice(0, 1).reshaped({1});
      backend->fill(static_cast<float>(step + 1), one);
      backend->add(sum, one, sum);
    });
    backend->allocator().trim();
    expected += static_cast<float>(step + 1);
  }
  float found = 0;
  backend->download(sum, &found);
  EXPECT_EQ(found, expected);
}

TEST_F(CudaStreamsTest, AStepMayNotWait) {
  fake_cuda::reset({});
  const auto backend = make_cuda_backend({.graphs = true});
  const Tensor x = backend->new_tensor("test", {4});
  float number = 0;
  backend->run_step(1, [&] { backend->fill(1, x); });
  const std::function<void()> waits[] = {
      [&] { backend->synchronise(); },           [&] { backend->download(x, &number); },
      [&] { backend->await_prefetched(); },      [&] { (void)backend->all_finite(x); },
      [&] { (void)backend->sum_of_squares(x); }, [&] { backend->run_step(1, [] {}); }};
  for (const auto& wait : waits) {
    try {
      backend->run_step(1, [&] {
        backend->fill(5, x);
        wait();
      });
      FAIL() << "a step that waits was recorded";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
      EXPECT_NE(std::string(e.what()).find("do it after the step"), std::string::npos) << e.what();
    }
    backend->run_step(1, [&] { backend->fill(2, x); });
    EXPECT_EQ(backend->sum_of_squares(x), 16);
  }
}

}  // namespace

}  // namespace gle
