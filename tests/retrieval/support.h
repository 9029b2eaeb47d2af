#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/cpu/cpu.h"
#include "engine/math/philox.h"
#include "engine/thread_pool.h"
#include "models/files/npy.h"
#include "retrieval/embeddings.h"

namespace gle::test {

inline Npz fixture(const char* name) { return Npz::read(std::string(GLE_FIXTURES) + "/" + name); }

// Embeddings that own their memory.
struct Matrix {
  std::vector<float> values;
  int64_t rows = 0, dimensions = 0;

  Embeddings view() const { return {values.data(), rows, dimensions}; }
};

inline Matrix matrix(const NpyArray& array) { return {array.floats(), array.shape.at(0), array.shape.at(1)}; }

inline Matrix random_matrix(int64_t rows, int64_t dimensions, uint64_t seed) {
  Matrix m{std::vector<float>(static_cast<size_t>(rows * dimensions)), rows, dimensions};
  for (size_t i = 0; i < m.values.size(); ++i) {
    m.values[i] = uniform(RandomKey{.seed = seed, .stream = 0}, i) - 0.5F;
  }
  return m;
}

inline std::vector<int32_t> labels(const NpyArray& array) {
  const std::vector<int64_t> wide = array.integers();
  return {wide.begin(), wide.end()};
}

inline std::vector<int32_t> random_labels(int64_t count, int classes, uint64_t seed) {
  std::vector<int32_t> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<int32_t>(uniform(RandomKey{.seed = seed, .stream = 1}, i) * static_cast<float>(classes));
  }
  return result;
}

struct Machine {
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 2, .library = false});
  ThreadPool pool{2};
};

}  // namespace gle::test
