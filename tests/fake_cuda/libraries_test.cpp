// The stand-ins of cuBLAS and cuDNN against loops in double, and what they refuse.

#include <cublas_v2.h>
#include <cudnn.h>

#include <cmath>
#include <random>

#include "fake_cuda/fake_cuda_testing.h"

namespace fake_cuda::test {

namespace {

std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(n);
  for (float& value : values) {
    value = uniform(random);
  }
  return values;
}

class Blas : public FakeCuda {
 protected:
  void SetUp() override {
    FakeCuda::SetUp();
    cublasCreate(&handle_);
  }
  void TearDown() override {
    cublasDestroy(handle_);
    FakeCuda::TearDown();
  }

  cublasHandle_t handle_ = nullptr;
};

TEST_F(Blas, GemmInAllTranspositions) {
  const int m = 5;
  const int n = 4;
  const int k = 9;
  const std::vector<float> a = random_floats(100, 1);
  const std::vector<float> b = random_floats(100, 2);
  const std::vector<float> c = random_floats(100, 3);
  DeviceFloats da(a);
  DeviceFloats db(b);
  const float alpha = 1.5F;
  for (const float beta : {0.0F, 0.5F}) {
    for (const auto op_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      for (const auto op_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
        const int lda = 10;
        const int ldb = 10;
        const int ldc = 7;
        DeviceFloats dc(c);
        ASSERT_EQ(cublasSgemm(handle_, op_a, op_b, m, n, k, &alpha, da.get(), lda, db.get(), ldb, &beta, dc.get(), ldc),
                  CUBLAS_STATUS_SUCCESS);
        const std::vector<float> result = download(dc, 100);
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < m; ++i) {
            double sum = 0.0;
            for (int p = 0; p < k; ++p) {
              const int at_a = op_a == CUBLAS_OP_N ? i + p * lda : p + i * lda;
              const int at_b = op_b == CUBLAS_OP_N ? p + j * ldb : j + p * ldb;
              sum += static_cast<double>(a[static_cast<size_t>(at_a)]) * b[static_cast<size_t>(at_b)];
            }
            const auto at = static_cast<size_t>(i + j * ldc);
            EXPECT_NEAR(result[at], alpha * sum + beta * c[at], 1e-5);
          }
        }
        EXPECT_EQ(result[5], c[5]);  // between the columns
      }
    }
  }
}

TEST_F(Blas, Tf32IsCoarserAndOnlyOnRequest) {
  DeviceFloats a(random_floats(64, 1));
  DeviceFloats b(random_floats(64, 2));
  DeviceFloats c(64);
  const float one = 1.0F;
  const float zero = 0.0F;
  const auto product = [&](cublasMath_t mode) {
    cublasSetMathMode(handle_, mode);
    cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a.get(), 8, b.get(), 8, &zero, c.get(), 8);
    return download(c, 64);
  };
  const std::vector<float> exact = product(CUBLAS_DEFAULT_MATH);
  const std::vector<float> coarse = product(CUBLAS_TF32_TENSOR_OP_MATH);
  float largest = 0.0F;
  for (size_t i = 0; i < exact.size(); ++i) {
    largest = std::max(largest, std::abs(exact[i] - coarse[i]));
  }
  EXPECT_GT(largest, 1e-5F);
  EXPECT_LT(largest, 1e-2F);
}

TEST_F(Blas, WrongArgumentsAreReported) {
  DeviceFloats a(random_floats(16, 1));
  DeviceFloats c(16);
  DeviceFloats fresh(16);
  const float one = 1.0F;
  const float zero = 0.0F;
  const auto gemm = [&](const float* x, int ld) {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, x, ld, a.get(), 4, &zero, c.get(), 4);
  };
  EXPECT_EQ(gemm(a.get(), 3), CUBLAS_STATUS_INVALID_VALUE);
  expect_report("leading dimension");
  EXPECT_EQ(gemm(a.get(), 5), CUBLAS_STATUS_EXECUTION_FAILED);
  expect_report("not in one allocation");
  EXPECT_EQ(gemm(&one, 4), CUBLAS_STATUS_EXECUTION_FAILED);
  expect_report("not in one allocation");
  EXPECT_EQ(gemm(fresh.get(), 4), CUBLAS_STATUS_SUCCESS);
  cudaDeviceSynchronize();
  EXPECT_FALSE(simt::take_reports().empty());
}

// A convolution through the backend API, as a program would do it.
class Dnn : public FakeCuda {
 protected:
  using Desc = cudnnBackendDescriptor_t;

  void SetUp() override {
    FakeCuda::SetUp();
    cudnnCreate(&handle_);
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    for (Desc descriptor : made_) {
      cudnnBackendDestroyDescriptor(descriptor);
    }
    cudnnDestroy(handle_);
    FakeCuda::TearDown();
  }

  Desc make(cudnnBackendDescriptorType_t type) {
    Desc descriptor = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &descriptor), CUDNN_STATUS_SUCCESS);
    made_.push_back(descriptor);
    return descriptor;
  }
  template <class T>
  static void set(Desc on, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
    EXPECT_EQ(cudnnBackendSetAttribute(on, name, type, static_cast<int64_t>(values.size()), values.data()),
              CUDNN_STATUS_SUCCESS);
  }
  // N C H W sizes, channels innermost.
  Desc tensor(int64_t id, const std::vector<int64_t>& d) {
    Desc made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set<cudnnDataType_t>(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
    set<int64_t>(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, d);
    set<int64_t>(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]});
    set<int64_t>(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {id});
    set<int64_t>(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, {16});
    EXPECT_EQ(cudnnBackendFinalize(made), CUDNN_STATUS_SUCCESS);
    return made;
  }
  Desc shape() {
    Desc made = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set<int64_t>(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, {2});
    set<cudnnDataType_t>(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
    set<cudnnConvolutionMode_t>(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                                {CUDNN_CROSS_CORRELATION});
    set<int64_t>(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, {1, 0});
    set<int64_t>(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, {1, 0});
    set<int64_t>(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, {2, 1});
    set<int64_t>(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, {1, 1});
    EXPECT_EQ(cudnnBackendFinalize(made), CUDNN_STATUS_SUCCESS);
    return made;
  }
  // 0 forward, 1 data, 2 weights.
  Desc operation(int direction, int64_t rows_out) {
    const cudnnBackendDescriptorType_t types[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                                  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                                  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    const cudnnBackendAttributeName_t names[][4] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}};
    const auto& name = names[direction];
    Desc made = make(types[direction]);
    set<Desc>(made, name[0], CUDNN_TYPE_BACKEND_DESCRIPTOR, {tensor(1, {2, 3, 6, 5})});
    set<Desc>(made, name[1], CUDNN_TYPE_BACKEND_DESCRIPTOR, {tensor(2, {4, 3, 3, 2})});
    set<Desc>(made, name[2], CUDNN_TYPE_BACKEND_DESCRIPTOR, {tensor(3, {2, 4, rows_out, 4})});
    set<Desc>(made, name[3], CUDNN_TYPE_BACKEND_DESCRIPTOR, {shape()});
    return made;
  }
  std::vector<Desc> configurations(Desc finalised_operation, cudnnBackendHeurMode_t mode) {
    Desc graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set<Desc>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, {finalised_operation});
    EXPECT_EQ(cudnnBackendFinalize(graph), CUDNN_STATUS_SUCCESS);
    Desc heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set<Desc>(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, {graph});
    set<cudnnBackendHeurMode_t>(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {mode});
    EXPECT_EQ(cudnnBackendFinalize(heuristic), CUDNN_STATUS_SUCCESS);
    int64_t count = 0;
    cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                             nullptr);
    std::vector<Desc> results;
    for (int64_t i = 0; i < count; ++i) {
      results.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    }
    EXPECT_EQ(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                       &count, results.data()),
              CUDNN_STATUS_SUCCESS);
    return results;
  }
  Desc plan(Desc configuration) {
    Desc made = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set<Desc>(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, {configuration});
    EXPECT_EQ(cudnnBackendFinalize(made), CUDNN_STATUS_SUCCESS);
    return made;
  }
  static int64_t workspace_of(Desc plan) {
    int64_t bytes = -1;
    int64_t count = 0;
    cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes);
    return bytes;
  }
  cudnnStatus_t execute(Desc plan, const std::vector<void*>& pointers, void* workspace) {
    Desc pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, {1, 2, 3});
    set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    if (workspace != nullptr) {
      set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace});
    }
    EXPECT_EQ(cudnnBackendFinalize(pack), CUDNN_STATUS_SUCCESS);
    return cudnnBackendExecute(handle_, plan, pack);
  }

  cudnnHandle_t handle_ = nullptr;
  std::vector<Desc> made_;
};

// x[2,6,5,3], w[4,3,2,3], y[2,3,4,4]; padding 1,0, stride 2,1.
std::vector<double> reference(int direction, const std::vector<float>& x, const std::vector<float>& w,
                              const std::vector<float>& y) {
  std::vector<double> result((direction == 0 ? y : direction == 1 ? x : w).size(), 0.0);
  for (int n = 0; n < 2; ++n) {
    for (int p = 0; p < 3; ++p) {
      for (int q = 0; q < 4; ++q) {
        for (int k = 0; k < 4; ++k) {
          for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 2; ++s) {
              const int row = 2 * p - 1 + r;
              const int column = q + s;
              if (row < 0 || row >= 6) {
                continue;
              }
              for (int c = 0; c < 3; ++c) {
                const auto ix = static_cast<size_t>(((n * 6 + row) * 5 + column) * 3 + c);
                const auto iw = static_cast<size_t>(((k * 3 + r) * 2 + s) * 3 + c);
                const auto iy = static_cast<size_t>(((n * 3 + p) * 4 + q) * 4 + k);
                const double vx = x[ix];
                const double vw = w[iw];
                const double vy = y[iy];
                (direction == 0   ? result[iy]
                 : direction == 1 ? result[ix]
                                  : result[iw]) += direction == 0   ? vx * vw
                                                   : direction == 1 ? vy * vw
                                                                    : vx * vy;
              }
            }
          }
        }
      }
    }
  }
  return result;
}

TEST_F(Dnn, ConvolvesInThreeDirectionsOnEveryEngine) {
  const std::vector<float> values[] = {random_floats(2 * 6 * 5 * 3, 1), random_floats(4 * 3 * 2 * 3, 2),
                                       random_floats(2 * 3 * 4 * 4, 3)};
  const size_t output_of[] = {2, 0, 1};
  for (int direction = 0; direction < 3; ++direction) {
    Desc conv = operation(direction, 3);
    ASSERT_EQ(cudnnBackendFinalize(conv), CUDNN_STATUS_SUCCESS);
    std::vector<Desc> all = configurations(conv, CUDNN_HEUR_MODE_A);
    ASSERT_EQ(all.size(), 4U);
    for (Desc configuration : configurations(conv, CUDNN_HEUR_MODE_FALLBACK)) {
      all.push_back(configuration);
    }
    const std::vector<double> expected = reference(direction, values[0], values[1], values[2]);
    for (Desc configuration : all) {
      Desc engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      int64_t count = 0;
      ASSERT_EQ(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                         &count, &engine),
                CUDNN_STATUS_SUCCESS);
      cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
      const bool tensor_core = count > 0 && notes[0] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      Desc planned = plan(configuration);
      const int64_t bytes = workspace_of(planned);
      if (bytes > 1 << 20) {
        continue;
      }
      std::vector<void*> pointers;
      std::vector<std::unique_ptr<DeviceFloats>> memory;
      for (size_t i = 0; i < 3; ++i) {
        memory.push_back(i == output_of[direction] ? std::make_unique<DeviceFloats>(values[i].size())
                                                   : std::make_unique<DeviceFloats>(values[i]));
        pointers.push_back(memory.back()->get());
      }
      DeviceFloats workspace(static_cast<size_t>(bytes) / sizeof(float) + 1);
      ASSERT_EQ(execute(planned, pointers, workspace.get()), CUDNN_STATUS_SUCCESS);
      const std::vector<float> result = download(*memory[output_of[direction]], expected.size());
      double largest = 0.0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(result[i] - expected[i]));
      }
      EXPECT_LT(largest, tensor_core ? 1e-2 : 1e-5);
      EXPECT_TRUE(!tensor_core || largest > 1e-5);
    }
  }
}

TEST_F(Dnn, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(cudnnBackendFinalize(operation(0, 4)), CUDNN_STATUS_BAD_PARAM);
  char text[200];
  cudnnGetLastErrorString(text, sizeof text);
  EXPECT_NE(std::string(text).find("output size"), std::string::npos) << text;
}

TEST_F(Dnn, RefusesAttributesOfTheWrongKind) {
  Desc made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t one = 1;
  EXPECT_NE(cudnnBackendSetAttribute(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, &one),
            CUDNN_STATUS_SUCCESS);
  EXPECT_NE(cudnnBackendSetAttribute(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &one),
            CUDNN_STATUS_SUCCESS);
  EXPECT_NE(cudnnBackendFinalize(made), CUDNN_STATUS_SUCCESS);
}

TEST_F(Dnn, RefusesAMissingOrSmallWorkspace) {
  Desc conv = operation(0, 3);
  ASSERT_EQ(cudnnBackendFinalize(conv), CUDNN_STATUS_SUCCESS);
  Desc planned = plan(configurations(conv, CUDNN_HEUR_MODE_A)[3]);
  DeviceFloats x(random_floats(180, 1));
  DeviceFloats w(random_floats(72, 2));
  DeviceFloats y(96);
  DeviceFloats small(4);
  ASSERT_GT(workspace_of(planned), 16);
  EXPECT_NE(execute(planned, {x.get(), w.get(), y.get()}, nullptr), CUDNN_STATUS_SUCCESS);
  expect_report("workspace");
  EXPECT_NE(execute(planned, {x.get(), w.get(), y.get()}, small.get()), CUDNN_STATUS_SUCCESS);
  expect_report("workspace");
  Desc without = plan(configurations(conv, CUDNN_HEUR_MODE_FALLBACK)[0]);
  EXPECT_NE(execute(without, {x.get() + 1, w.get(), y.get()}, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_FALSE(simt::take_reports().empty());
  EXPECT_EQ(execute(without, {x.get(), w.get(), y.get()}, nullptr), CUDNN_STATUS_SUCCESS);
}

}  // namespace

}  // namespace fake_cuda::test
