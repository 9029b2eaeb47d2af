// gle.h on a GPU: the embeddings of the CPU, and errors that say what there is.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/cpu/cpu.h"
#include "fake_cuda/fake_cuda.h"
#include "models/model_file.h"
#include "retrieval/c_api/gle.h"
#include "simt/simt.h"
#include "tests/device_watch.h"

namespace gle {

namespace {

class CudaCApiTest : public testing::Test {
 protected:
  CudaCApiTest() : path_(std::filesystem::path(testing::TempDir()) / "gle_cuda_c_api.safetensors") {
    test::watch_device();
    fake_cuda::reset({});
    simt::set_options({.order = simt::Order::random, .check = false});
    const auto backend = make_cpu_backend();
    Network network(*backend, {.name = "densenet_tiny", .head = {.classes = 4}});
    network.initialise(*backend, 3);
    const std::vector<std::byte> bytes = format_model(*backend, network, {.height = 32, .width = 32});
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~CudaCApiTest() override {
    simt::set_options({.order = simt::Order::random});
    fake_cuda::reset({});
    std::filesystem::remove(path_);
  }

  gle_status open(const char* device, gle_model*& model) const {
    gle_model_options options;
    gle_model_defaults(&options);
    options.device = device;
    return gle_model_open(path_.c_str(), &options, &model);
  }

  std::vector<float> embed(const char* device) const {
    gle_model* model = nullptr;
    EXPECT_EQ(open(device, model), GLE_OK) << gle_last_error();
    std::vector<uint8_t> rgb(size_t{40} * 36 * 3);
    for (size_t i = 0; i < rgb.size(); ++i) {
      rgb[i] = static_cast<uint8_t>(i * 7919 >> 3U);
    }
    std::vector<float> embedding(static_cast<size_t>(gle_model_dimensions(model)));
    EXPECT_EQ(gle_embed_pixels(model, rgb.data(), 40, 36, size_t{40} * 3, embedding.data()), GLE_OK)
        << gle_last_error();
    gle_model_close(model);
    return embedding;
  }

  const std::filesystem::path path_;
};

TEST_F(CudaCApiTest, EmbedsOnTheDeviceThatIsAskedFor) {
  const std::vector<float> expected = embed("cpu");
  float largest = 0;
  for (const float value : expected) {
    largest = std::max(largest, std::abs(value));
  }
  ASSERT_GT(largest, 0);
  for (const char* device : {"cuda", "cuda:1", "auto"}) {
    const uint64_t before = fake_cuda::statistics().kernels;
    const std::vector<float> found = embed(device);
    EXPECT_GT(fake_cuda::statistics().kernels, before) << device;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-5F * largest) << device << ", " << i;
    }
  }
}

TEST_F(CudaCApiTest, ADeviceThatIsNotThereIsAnError) {
  gle_model* model = nullptr;
  EXPECT_EQ(open("cuda:2", model), GLE_USAGE);
  EXPECT_NE(std::string(gle_last_error()).find("2 GPUs"), std::string::npos) << gle_last_error();
  EXPECT_EQ(open("gpu", model), GLE_USAGE);
  EXPECT_NE(std::string(gle_last_error()).find("expected auto, cpu, cuda or cuda:1"), std::string::npos);
  fake_cuda::reset({.device_count_status = cudaErrorNoDevice});
  EXPECT_EQ(open("cuda", model), GLE_RUNTIME);
  EXPECT_NE(std::string(gle_last_error()).find("no NVIDIA GPU"), std::string::npos) << gle_last_error();
  EXPECT_EQ(model, nullptr);
  EXPECT_FALSE(embed("auto").empty());
}

}  // namespace

}  // namespace gle
