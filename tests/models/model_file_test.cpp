#include "models/model_file.h"

#include <gtest/gtest.h>

#include "engine/cpu/cpu.h"
#include "models/files/checkpoint_file.h"
#include "models/files/file.h"
#include "models/files/safetensors.h"
#include "tests/expect_error.h"

namespace gle::test {
namespace {

const ModelDescription kModel{
    .network = {.name = "bn_inception",
                .head = {.classes = 7, .embedding = 5, .max_share = 0.25F},
                .norms = {.eps = 1e-4F}},
    .input = {.height = 64, .width = 48, .short_side = 72, .bgr = true, .scale = 1, .mean = {104, 117, 128}}};

TEST(ModelFile, DescriptionComesBack) {
  WeightFile file{.name = "a", .format = "safetensors", .tensors = {}, .left_out = {}, .metadata = metadata_of(kModel)};
  const ModelDescription found = description_of(file);
  EXPECT_EQ(found.network.name, "bn_inception");
  EXPECT_EQ(found.network.head.classes, 7);
  EXPECT_EQ(found.network.head.embedding, 5);
  EXPECT_EQ(found.network.head.max_share, 0.25F);
  EXPECT_EQ(found.network.norms.eps, 1e-4F);
  EXPECT_EQ(found.input, kModel.input);
}

TEST(ModelFile, NetworkOpensFromSafetensorsAndCheckpointAlike) {
  const auto backend = make_cpu_backend({.threads = 1});
  Network network(*backend, kModel.network);
  network.initialise(*backend, 3);
  const std::vector<std::byte> bytes = format_model(*backend, network, kModel.input);
  const std::string path = testing::TempDir() + "/model.gle";
  CheckpointWriter writer;
  writer.add(std::string(kWeightsSection), bytes);
  writer.write(path);
  const std::vector<WeightTensor> expected = network_weights(*backend, network);
  for (const WeightFile& file : {parse_weights(bytes, "model.safetensors"), read_weights(path)}) {
    const auto opened = open_network(*backend, file);
    const std::vector<WeightTensor> found = network_weights(*backend, *opened);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].values, expected[i].values) << found[i].name;
    }
  }
}

TEST(ModelFile, BareOrDamagedDescriptionsAreRefused) {
  WeightFile file{.name = "a.pth", .format = "pth (zip)", .tensors = {}, .left_out = {}};
  EXPECT_FALSE(has_description(file));
  EXPECT_ERROR(description_of(file), ErrorCode::weights, {"a.pth", "bare weights"});
  const std::string good = metadata_of(kModel).begin()->second;
  for (const auto& [from, to] : std::map<std::string, std::string>{{"bn_inception", "vgg"},
                                                                   {"\"classes\":7", "\"classes\":-1"},
                                                                   {"\"classes\":7", "\"classes\":1e300"},
                                                                   {"\"height\":64", "\"height\":0"},
                                                                   {"\"version\":1", "\"version\":2"},
                                                                   {"\"bgr\":true", "\"bgr\":3"},
                                                                   {"\"mean\":[", "\"mean\":[1,"},
                                                                   {"{\"version", "[\"version"}}) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), bad.npos) << from;
    bad.replace(bad.find(from), from.size(), to);
    file.metadata["gle"] = bad;
    EXPECT_ERROR(description_of(file), ErrorCode::weights, {"a.pth", "damaged"});
  }
}

}  // namespace
}  // namespace gle::test
