#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "engine/error.h"
#include "tests/kernel_test.h"
#include "tests/placed.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

// A tensor written by upload() and read by download() holds what was written, and only its own channels change.
void check_transfer(Backend& backend) {
  for (const Shape& shape : row_shapes()) {
    for (const DType type : {DType::f32, DType::i32, DType::u8}) {
      for (const Layout layout : {Layout::dense, Layout::slice}) {
        SCOPED_TRACE(name_of(shape));
        const Placed placed(backend, shape, layout, type);
        std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements()) * bytes_of(type));
        for (size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<uint8_t>(i * 37 + 11);
        }
        backend.upload(bytes.data(), placed.tensor());
        ASSERT_TRUE(placed.guards_intact());
        std::vector<uint8_t> back(bytes.size());
        backend.download(placed.tensor(), back.data());
        ASSERT_EQ(bytes, back);
      }
    }
  }
}

// A training loop with two places: each step adds up what was prefetched for it while the next is on its way.
void check_prefetch(Backend& backend) {
  constexpr int kSteps = 5;
  for (const Layout layout : {Layout::dense, Layout::slice}) {
    const Shape shape{2, 3, 3, 7};
    const Placed places[] = {Placed(backend, shape, layout), Placed(backend, shape, layout)};
    const Tensor sums = backend.new_tensor("test", {kSteps, 7});
    const auto batch_of = [&](int step) {
      return std::vector<float>(static_cast<size_t>(shape.elements()), static_cast<float>(step + 1));
    };
    backend.prefetch(batch_of(0).data(), places[0].tensor());
    for (int step = 0; step < kSteps; ++step) {
      backend.await_prefetched();
      if (step + 1 < kSteps) {
        backend.prefetch(batch_of(step + 1).data(), places[(step + 1) % 2].tensor());
      }
      const Tensor sum = sums.reshaped({1, kSteps * 7}).slice(step * 7, step * 7 + 7).reshaped({7});
      backend.column_sums(places[step % 2].tensor(), {sum, Accumulate::overwrite});
    }
    std::vector<float> found(kSteps * 7);
    backend.download(sums, found.data());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], static_cast<float>((i / 7 + 1) * 18)) << "step " << i / 7;
    }
    EXPECT_TRUE(places[0].guards_intact() && places[1].guards_intact());
  }
}

// Steps whose numbers change give what they would give by themselves, and one that throws leaves the backend usable.
void check_run_step(Backend& backend) {
  const Tensor x = backend.new_tensor("test", {4, 5});
  const Tensor y = backend.new_tensor("test", {4, 5});
  float expected = 0;
  backend.fill(0, y);
  for (int step = 0; step < 4; ++step) {
    const auto factor = static_cast<float>(step);
    const std::vector<float> host(20, factor + 1);
    if (step == 2) {
      EXPECT_THROW(backend.run_step(1,
                                    [&] {
                                      backend.fill(1000, x);
                                      fail(ErrorCode::data, "test");
                                    }),
                   Error);
    }
    backend.run_step(1, [&] {
      backend.upload(host.data(), x);
      backend.scale(factor, x, {y, Accumulate::add});
    });
    expected += factor * (factor + 1);
  }
  std::vector<float> found(20);
  backend.download(y, found.data());
  EXPECT_EQ(found, std::vector<float>(20, expected));
}

void check_description(Backend& backend) {
  const std::string text = backend.description();
  if (backend.device().kind == Device::Kind::cuda) {
    EXPECT_EQ(text.rfind("cuda:0, ", 0), 0U) << text;
    return;
  }
  EXPECT_NE(text.find("2 threads"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("cpu, ", 0), 0U) << text;
}

void check_synchronise(Backend& backend) {
  const Tensor x = backend.new_tensor("test", {1});
  backend.fill(3, x);
  backend.synchronise();
  float value = 0;
  backend.download(x, &value);
  EXPECT_EQ(value, 3);
}

void check_labels_now(Backend& backend, const Placed& labels, int64_t classes) {
  backend.check_labels(labels.tensor(), classes);
  backend.synchronise();
}

void check_label_check(Backend& backend) {
  Array labels(Shape{5}, {0, 3, 6, 2, 1});
  const Placed placed(backend, labels, Layout::dense, DType::i32);
  EXPECT_NO_THROW(check_labels_now(backend, placed, 7));
  EXPECT_THROW(check_labels_now(backend, placed, 6), Error);
  EXPECT_NO_THROW(check_labels_now(backend, placed, 7)) << "thrown twice";
  labels[4] = -1;
  const Placed negative(backend, labels, Layout::dense, DType::i32);
  try {
    check_labels_now(backend, negative, 7);
    FAIL() << "a negative label passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data);
    EXPECT_NE(std::string(error.what()).find("-1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sample 4"), std::string::npos) << error.what();
  }
}

// Each element in turn, among them the last of each vector and of the tail; beside a slice is a NaN that must not
// count.
void check_all_finite(Backend& backend) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  for (const Shape& shape : {Shape{1}, Shape{5, 17}, Shape{2, 3, 2, 33}}) {
    for (const Layout layout : {Layout::dense, Layout::slice}) {
      if (layout == Layout::slice && shape.rank() == 1) {
        continue;
      }
      Array values = Draw(5).array(shape);
      values[0] = std::numeric_limits<float>::max();
      Placed placed(backend, values, layout);
      EXPECT_TRUE(backend.all_finite(placed.tensor()));
      for (int64_t i = 0; i < values.size(); ++i) {
        Array spoilt = values;
        spoilt[i] = bad[i % 3];
        placed.write(spoilt.values);
        ASSERT_FALSE(backend.all_finite(placed.tensor())) << name_of(shape) << " element " << i;
      }
    }
  }
  Array large = Draw(6).array({400, 700});
  EXPECT_TRUE(backend.all_finite(Placed(backend, large, Layout::dense).tensor()));
  large[large.size() - 1] = bad[0];
  EXPECT_FALSE(backend.all_finite(Placed(backend, large, Layout::dense).tensor()));
}

}  // namespace

void add_transfer_kernels(std::vector<Kernel>& to) {
  to.push_back({"upload", {}, check_transfer});
  to.push_back({"download", {}, check_transfer});
  to.push_back({"synchronise", {}, check_synchronise});
  to.push_back({"prefetch", {}, check_prefetch});
  to.push_back({"await_prefetched", {}, check_prefetch});
  to.push_back({"run_step", {}, check_run_step});
  to.push_back({"description", {}, check_description});
  to.push_back({"check_labels", {}, check_label_check});
  to.push_back({"all_finite", {}, check_all_finite});
}

}  // namespace gle::test
