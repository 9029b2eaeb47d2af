#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "tests/distributed/ranks.h"
#include "tests/values.h"
#include "training/learner.h"

namespace gle::test {

inline constexpr int64_t kClasses = 6;

// A batch that every number of ranks up to four divides: `rows` pictures of three classes, other ones in each step. A
// class is a pattern with some noise, so that similarities are clearly positive or negative: near zero, where the Group
// Loss clamps them, the last bit would decide.
struct TestBatch {
  std::vector<float> pixels;
  std::vector<int32_t> labels;
  int64_t rows, side;

  TestBatch(int64_t rows, int64_t side, int step) : rows(rows), side(side) {
    for (int64_t i = 0; i < rows; ++i) {
      const auto label = static_cast<int32_t>((i * 3 / rows + step) % kClasses);
      labels.push_back(label);
      const auto slope = static_cast<float>(label + 1);
      const auto noise = static_cast<float>(17 * step + i);
      for (int64_t p = 0; p < side * side * 3; ++p) {
        const auto y = static_cast<float>(p / (3 * side)), x = static_cast<float>(p / 3 % side);
        pixels.push_back(std::sin(0.2F * slope * x + 1.3F * slope) + std::cos(0.3F * slope * y + 0.4F * x) +
                         0.2F * std::sin(static_cast<float>(p) * (1.7F + 0.01F * noise)));
      }
    }
  }

  // The rows of one rank, or all.
  Tensor part(Backend& backend, const Comm* comm) const {
    const int64_t own = rows / (comm ? comm->size() : 1);
    const int64_t first = comm ? comm->rank() * own : 0;
    Tensor images = backend.new_tensor("images", {own, side, side, 3});
    backend.upload(pixels.data() + first * side * side * 3, images);
    return images;
  }
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<float> weights, state;

  bool operator==(const Trained&) const = default;
};

// Batch-norms that scale and shift by channel, as trained ones do: of channels that are all alike nothing but small
// differences would be left for the correlations.
inline void vary_norms(Backend& backend, ParameterSet& parameters) {
  for (Parameter& parameter : parameters.parameters()) {
    if (parameter.shape.rank() == 1) {
      std::vector<float> values = read(backend, parameter.value);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] += 0.5F * std::sin(static_cast<float>(i) * 2.3F);
      }
      backend.upload(values.data(), parameter.value);
    }
  }
}

struct Training {
  TrainingConfig config;
  const Trained* start = nullptr;  // weights to begin with instead of random ones
  int64_t rows = 12;
  int64_t side = 32;
  int steps = 20;
  float learning_rate = 1e-3F;
};

// As one process without a comm, else as one of its ranks.
inline Trained train(const Training& training, Comm* comm) {
  Backend& backend = rank_backend();
  Learner learner(backend, training.config, kClasses, comm);
  ParameterSet& parameters = learner.network().parameters();
  if (training.start) {
    backend.upload(training.start->weights.data(), parameters.values());
    backend.upload(training.start->state.data(), parameters.state_values());
  } else {
    learner.network().initialise(backend, 5);
    vary_norms(backend, parameters);
  }
  learner.begin_phase(training.config.phase1, Learner::Moments::reset);
  Trained result;
  const int64_t parts = training.config.phase1.accumulate;
  for (int step = 0; step < training.steps; ++step) {
    for (int64_t part = 0; part < parts; ++part) {
      const int number = step * static_cast<int>(parts) + static_cast<int>(part);
      const TestBatch batch(training.rows, training.side, number);
      learner.add(batch.part(backend, comm), batch.labels, static_cast<uint64_t>(number), parts);
    }
    const StepResult measured = learner.measure();
    result.losses.push_back(measured.loss);
    result.norms.push_back(measured.gradient_norm);
    learner.step(training.learning_rate);
  }
  learner.agree_on_statistics();
  result.weights = read(backend, parameters.values());
  result.state = read(backend, parameters.state_values());
  return result;
}

// What the first rank has alone, for all: only one has to find it out.
template <class Make>
Trained of_first_rank(Comm& comm, const Make& make) {
  Trained result;
  if (comm.rank() == 0) {
    result = make();
  }
  const auto share = [&](auto& list) {
    using Number = typename std::decay_t<decltype(list)>::value_type;
    const auto* begin = reinterpret_cast<const std::byte*>(list.data());
    std::vector<std::byte> bytes(begin, begin + list.size() * sizeof(Number));
    comm.broadcast(bytes, 0);
    const auto* numbers = reinterpret_cast<const Number*>(bytes.data());
    list.assign(numbers, numbers + bytes.size() / sizeof(Number));
  };
  share(result.losses);
  share(result.norms);
  share(result.weights);
  share(result.state);
  return result;
}

template <class Number>
double largest_difference(const std::vector<Number>& a, const std::vector<Number>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = difference <= largest ? largest : difference;  // NaN is larger than all
  }
  return largest;
}

inline Training small_training() {
  Training training;
  training.config.network.name = "densenet_tiny";
  training.config.input = {.height = 32, .width = 32, .colours = "imagenet"};
  training.config.phase1.loss = "group_loss";
  training.steps = 3;
  return training;
}

inline Training bn_inception_training() {
  Training training;
  training.config.network.name = "bn_inception";
  training.config.input = {.height = 64, .width = 64, .colours = "bgr255"};
  training.config.phase1.loss = "group_loss";
  training.config.group_loss.temperature = 10;
  training.side = 64;
  return training;
}

class DistributedTraining : public testing::Test {
 protected:
  Comm& comm_ = all_ranks();

  Trained alone(const Training& training) {
    return of_first_rank(comm_, [&] { return train(training, nullptr); });
  }
  // Every rank ends with the same bits.
  Trained together(const Training& training) {
    const Trained own = train(training, &comm_);
    EXPECT_EQ(own, of_first_rank(comm_, [&] { return own; }));
    return own;
  }
  void expect_same(const Trained& a, const Trained& b, double tolerance) {
    EXPECT_LT(largest_difference(a.losses, b.losses), tolerance * (1 + b.losses[0]))
        << testing::PrintToString(a.losses) << " and " << testing::PrintToString(b.losses);
    EXPECT_LT(largest_difference(a.weights, b.weights), tolerance);
    EXPECT_LT(largest_difference(a.state, b.state), tolerance);
  }
  // What the weights went from their start, however little that is.
  void expect_same_way(const Trained& a, const Trained& b, const Trained& start, double tolerance) {
    EXPECT_LT(largest_difference(a.weights, b.weights), tolerance * largest_difference(b.weights, start.weights));
  }
};

}  // namespace gle::test
