#include "models/weights.h"

#include <algorithm>
#include <cstring>

#include "engine/cpu/cpu.h"
#include "models/files/file.h"
#include "models/files/pickle.h"
#include "models/files/safetensors.h"
#include "models/files/sha256.h"
#include "models/files/zip.h"
#include "tests/models/files_testing.h"
#include "tests/models/formula.h"

namespace gle {
namespace {

using test::contains;
using test::error_of;
using test::fixture;

std::string weights_fixture(const std::string& name) { return fixture("weights/" + name); }

const WeightTensor& tensor(const WeightFile& file, const std::string& name) {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(), [&](const WeightTensor& t) { return t.name == name; });
  EXPECT_NE(found, file.tensors.end()) << name;
  return *found;
}

class Container : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Container, EveryTypeAndStrideReadsAsItWasSaved) {
  const WeightFile file = read_weights(weights_fixture(GetParam().first));
  EXPECT_EQ(file.format, GetParam().second);
  const std::vector<float>& conv = tensor(file, "conv.weight").values;
  EXPECT_EQ(tensor(file, "conv.weight").shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(tensor(file, "turned").shape, (std::vector<int64_t>{4, 2, 3}));
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(conv[i], static_cast<float>(i) / 8);
    EXPECT_EQ(tensor(file, "turned").values[i], static_cast<float>(i % 6 * 4 + i / 6));
  }
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(tensor(file, "half").values[i], static_cast<float>(i) / 4);
    EXPECT_EQ(tensor(file, "bfloat").values[i], static_cast<float>(i + 12));
    EXPECT_EQ(tensor(file, "double").values[i], static_cast<float>(static_cast<double>(i) / 3));
  }
  EXPECT_EQ(tensor(file, "part").values, (std::vector<float>{18, 22}));
  EXPECT_EQ(tensor(file, "scalar").values, (std::vector<float>{0.5F}));
  EXPECT_TRUE(tensor(file, "scalar").shape.empty());
  EXPECT_EQ(tensor(file, "empty").shape, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(file.left_out.size(), 1U);
}
INSTANTIATE_TEST_SUITE_P(Formats, Container,
                         testing::Values(std::pair("zip.pth", "pth (zip)"), std::pair("legacy.pth", "pth (legacy)"),
                                         std::pair("tensors.safetensors", "safetensors"),
                                         std::pair("arrays.npz", "npz")));

TEST(Weights, AHashIsThatOfTheStandard) {
  const auto of = [](const std::string& text) { return sha256_digits(std::as_bytes(std::span(text))); };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Weights, AHashInTheNameMustBeTheFiles) {
  const std::vector<std::byte> bytes = read_file(weights_fixture("zip.pth"));
  const std::string right = sha256_digits(bytes).substr(0, 8);
  for (const std::string& name : {"a-" + right + ".pth", std::string("a-20250101.pth"), std::string("a-0000000x.pth"),
                                  std::string("a-00000abc.tar")}) {
    EXPECT_EQ(parse_weights(bytes, name).format, "pth (zip)") << name;
  }
  const std::string message = error_of(ErrorCode::weights, [&] { (void)parse_weights(bytes, "a-00000abc.pth"); });
  EXPECT_TRUE(contains(message, "SHA-256 is " + right) && contains(message, "not 00000abc")) << message;
}

TEST(Weights, WrappersAroundAStateDictAreUnpacked) {
  for (const auto& [file, weight] : {std::pair("checkpoint.pth.tar", "module.weight"),
                                     std::pair("parameter.pth", "weight"), std::pair("script.pt", "inner.weight")}) {
    const WeightFile found = read_weights(weights_fixture(file));
    EXPECT_EQ(found.tensors.size(), 2U) << file;
    EXPECT_EQ(tensor(found, weight).values, (std::vector<float>{0, 0.5F, 1, 2, 2.5F, 3})) << file;
  }
  EXPECT_EQ(read_weights(weights_fixture("script.pt")).format, "torchscript");
}

TEST(Weights, PicklesThatWantToRunSomethingAreRefusedByName) {
  const std::vector<std::byte> bytes = read_file(weights_fixture("malicious.zip"));
  ZipArchive archive(bytes, "malicious.zip");
  EXPECT_GE(archive.entries().size(), 60U);
  for (const ZipEntry& entry : archive.entries()) {
    ByteReader in(archive.read(entry), "hostile.pth");
    const std::string message = error_of(ErrorCode::weights, [&] { Pickle(in, Pickle::Names::tensors); });
    EXPECT_TRUE(contains(message, "hostile.pth")) << entry.name;
    const size_t space = entry.name.find(' ');
    const std::string kind = entry.name.substr(0, space);
    if (kind == "call" || kind == "stack_global" || kind == "newobj" || kind == "unused") {
      const std::string name = entry.name.substr(space + 1);
      if (name.find("of a") == std::string::npos && name != "a dictionary") {
        EXPECT_TRUE(contains(message, name)) << entry.name << ": " << message;
      }
    }
  }
}

TEST(Weights, TensorsThatLieAboutTheirStorageAreRefused) {
  const std::vector<std::byte> bytes = read_file(weights_fixture("lies.zip"));
  ZipArchive archive(bytes, "lies.zip");
  for (const ZipEntry& entry : archive.entries()) {
    const Bytes file = archive.read(entry);
    if (entry.name == "sound") {
      EXPECT_EQ(parse_weights(file, "x.pth").tensors[0].values, std::vector<float>(6));
    } else {
      const std::string message = error_of(ErrorCode::weights, [&] { parse_weights(file, "x.pth"); });
      EXPECT_TRUE(contains(message, "tensor")) << entry.name << ": " << message;
    }
  }
}

TEST(Weights, EveryTruncationIsRefusedAndNoFlipCrashes) {
  for (const char* name :
       {"zip.pth", "legacy.pth", "script.pt", "tensors.safetensors", "arrays.npz", "checkpoint.pth.tar"}) {
    const std::vector<std::byte> file = read_file(weights_fixture(name));
    const auto parse = [](Bytes bytes) { (void)parse_weights(bytes, "x"); };
    EXPECT_EQ(test::try_truncations(file, parse).accepted, 0) << name;
    const test::Damage damage = test::try_bit_flips(file, parse, 4000);
    EXPECT_EQ(damage.refused + damage.accepted, 4000) << name;
    EXPECT_GT(damage.refused, 0) << name;
  }
}

TEST(Safetensors, WhatIsWrittenReadsBack) {
  const std::vector<WeightTensor> tensors = {{"a \"quoted\" \\ name", {2, 2}, {1, 2, 3, 4}}, {"b", {}, {5}}};
  const std::vector<std::byte> file = format_safetensors(tensors, {{"key", "value\n"}});
  uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  EXPECT_EQ(header % 8, 0U);
  const WeightFile back = parse_safetensors(file, "x");
  ASSERT_EQ(back.tensors.size(), 2U);
  EXPECT_EQ(back.tensors[0].name, tensors[0].name);
  EXPECT_EQ(back.tensors[0].values, tensors[0].values);
  EXPECT_EQ(back.tensors[1].shape, tensors[1].shape);
}

TEST(Safetensors, AHeaderWhoseLengthLooksLikeAPickleIsRead) {
  const std::vector<WeightTensor> tensors = {{"a", {1}, {1}}};
  std::vector<std::byte> file;
  for (size_t padding = 0; file.empty() || file[0] != std::byte{0x80}; ++padding) {
    file = format_safetensors(tensors, {{"padding", std::string(padding, 'x')}});
  }
  EXPECT_EQ(parse_weights(file, "x").tensors.size(), 1U);
  file[8] = std::byte{'x'};
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)parse_weights(file, "x"); }), "a bare pickle"));
}

TEST(Weights, WhatIsNoFileOfThemIsSaidToBeNone) {
  for (const std::string text : {"[run]\nseed = 1\n# and more", "\x93NUMPY and more", "short", ""}) {
    const std::string message =
        error_of(ErrorCode::weights, [&] { (void)parse_weights(std::as_bytes(std::span(text)), "mine.toml"); });
    EXPECT_TRUE(contains(message, "mine.toml: is not a file of weights; read are .gle, .safetensors, .pth")) << message;
  }
}

std::string refusal(const std::string& header, size_t data, uint64_t claimed = 0) {
  const uint64_t size = claimed != 0 ? claimed : header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &size, 8);
  file += header + std::string(data, '\0');
  return error_of(ErrorCode::weights, [&] { (void)parse_safetensors(std::as_bytes(std::span(file)), "x"); });
}

TEST(Safetensors, TheRulesOfTheFormatAreHeld) {
  const auto tensor = [](const std::string& name, const std::string& type, const std::string& shape,
                         const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]}";
  };
  const std::string a = tensor("a", "F32", "2", "0,8");
  EXPECT_TRUE(contains(refusal("{" + a + "," + a + "}", 8), "the key 'a' twice"));
  EXPECT_TRUE(contains(refusal("{" + a + "," + tensor("b", "F32", "1", "4,8") + "}", 8), "the one before ends at 8"));
  EXPECT_TRUE(contains(refusal("{" + a + "," + tensor("b", "F32", "1", "12,16") + "}", 16), "begins at 12"));
  EXPECT_TRUE(contains(refusal("{" + a + "}", 12), "the file's data at 12"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "3", "0,8") + "}", 8), "do not give"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "4611686018427387904,4", "0,0") + "}", 0), "do not give"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F31", "2", "0,8") + "}", 8), "unknown type 'F31'"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "-2", "0,8") + "}", 8), "negative number"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "2.0", "0,8") + "}", 8), "fraction"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "2", "8,0") + "}", 8), "lacks"));
  EXPECT_TRUE(contains(refusal("{" + tensor("a", "F32", "2", "0,8,8") + "}", 8), "lacks"));
  EXPECT_TRUE(contains(refusal("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4), "lacks"));
  EXPECT_TRUE(contains(refusal("{\"a\":{\"b\":{}}}", 0), "object"));
  EXPECT_TRUE(contains(refusal("{\"a\":[[[[", 0), "a list"));
  EXPECT_TRUE(contains(refusal(" {}", 0), "does not start with '{'"));
  EXPECT_TRUE(contains(refusal("{\"a\":", 0), "no JSON"));
  EXPECT_TRUE(contains(refusal("{}", 0, uint64_t{1} << 40U), "header of 1099511627776 bytes"));
  EXPECT_TRUE(contains(refusal("{}", 0, 100), "100 bytes wanted"));
}

class Loading : public testing::Test {
 protected:
  Loading() : backend(make_cpu_backend({.threads = 1})) {}
  std::unique_ptr<Network> make(const char* name, int64_t classes) {
    auto network = std::make_unique<Network>(*backend, NetworkOptions{.name = name, .head = {.classes = classes}});
    network->initialise(*backend, 1);
    return network;
  }
  std::unique_ptr<Backend> backend;
};

TEST_F(Loading, OldNamesPrefixesAndRowVectorsAreTaken) {
  const auto network = make("densenet121", 7);
  WeightFile file = test::formula_weights(*backend, *network);
  for (WeightTensor& t : file.tensors) {
    for (const char* part : {"norm1", "norm2", "conv1", "conv2"}) {
      const size_t at = t.name.find("denselayer") == std::string::npos ? std::string::npos : t.name.find(part);
      if (at != std::string::npos) {
        t.name.insert(at + 4, 1, '.');
      }
    }
    if (t.shape.size() == 1) {
      t.shape.insert(t.shape.begin(), 1);
    }
    t.name.insert(0, std::string("module.model."));
  }
  file.tensors.push_back({"module.model.features.norm0.num_batches_tracked", {}, {1}});
  const LoadReport report = load_weights(*backend, *network, file);
  EXPECT_EQ(report.loaded.size(), file.tensors.size() - 1);
  EXPECT_TRUE(report.complete());
  for (const WeightTensor& t : network_weights(*backend, *network)) {
    ASSERT_EQ(t.values, test::formula_values(t.name, t.shape)) << t.name;
  }
}

TEST_F(Loading, AClassifierOfOtherClassesIsSkippedAndSaid) {
  const auto thousand = make("bn_inception", 20);
  const auto ten = make("bn_inception", 10);
  WeightFile file{"imagenet.pth", "pth", network_weights(*backend, *thousand), {}};
  const LoadReport report = load_weights(*backend, *ten, file);
  ASSERT_EQ(report.skipped.size(), 2U);
  EXPECT_EQ(report.skipped[0], "last_linear.weight: the file has [20,1024], the network [10,1024]");
  EXPECT_TRUE(contains(report.text(), "skipped 2: last_linear.weight"));
}

TEST_F(Loading, AFileWithoutAClassifierLeavesTheNetworksOwn) {
  const auto headless = make("densenet_tiny", 0);
  const auto network = make("densenet_tiny", 10);
  const Parameter* classifier = network->parameters().find("classifier.weight");
  const auto values = [&] { return test::values_of(*backend, classifier->value); };
  const auto before = values();
  const LoadReport report =
      load_weights(*backend, *network, {"trunk.pth", "pth", network_weights(*backend, *headless), {}});
  EXPECT_TRUE(report.complete());
  ASSERT_EQ(report.skipped.size(), 1U);
  EXPECT_EQ(report.skipped[0], "classifier: the file has none");
  EXPECT_EQ(values(), before);
}

TEST_F(Loading, StrictRefusesWhatDoesNotFitAndChangesNothing) {
  const auto network = make("bn_inception", 10);
  const std::vector<WeightTensor> before = network_weights(*backend, *network);
  WeightFile file = test::formula_weights(*backend, *network);
  file.name = "bad.pth";
  file.tensors[0].shape = {64, 3, 7, 6};
  file.tensors[1].name = "surprise";
  const std::string message = error_of(ErrorCode::weights, [&] { load_weights(*backend, *network, file); });
  EXPECT_TRUE(contains(message, "bad.pth: does not fit bn_inception"));
  EXPECT_TRUE(contains(message, "missing 1: conv1_7x7_s2.bias"));
  EXPECT_TRUE(contains(message, "unexpected 1: surprise"));
  EXPECT_TRUE(contains(message, "mismatched 1: conv1_7x7_s2.weight: the file has [64,3,7,6], the network [64,3,7,7]"));
  EXPECT_TRUE(contains(message, "To take what fits: gle-train --set network.strict=false, gle-model --no-strict"));
  const std::vector<WeightTensor> after = network_weights(*backend, *network);
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(after[i].values, before[i].values);
  }
  const LoadReport report = load_weights(*backend, *network, file, Strictness::lenient);
  EXPECT_EQ(report.loaded.size(), file.tensors.size() - 2);
  EXPECT_TRUE(
      contains(error_of(ErrorCode::weights,
                        [&] {
                          load_weights(*backend, *network, {"none", "npz", {{"x", {1}, {1}}}, {}}, Strictness::lenient);
                        }),
               "nothing in it belongs to bn_inception"));
}

TEST_F(Loading, InceptionOf2015IsTakenByPlace) {
  const auto network = make("inception_v3_2015", 0);
  WeightFile file{"of2015.pt", "torchscript", {}, {}};
  for (const Step& step : network->graph().steps) {
    if (step.kind == StepKind::conv_norm) {
      const std::string old = "net.layers.unit" + std::to_string(file.tensors.size());
      const Shape& s = step.unit.conv.weight->shape;
      const std::vector<int64_t> shape = {s[0], s[3], s[1], s[2]};
      file.tensors.push_back({old + ".weight", shape, test::formula_values(step.name, shape)});
      for (const char* part : {".beta", ".mean", ".var"}) {
        file.tensors.push_back({old + part, {s[0]}, test::formula_values(step.name + part, {s[0]})});
      }
    }
  }
  ASSERT_EQ(file.tensors.size(), 94U * 4);
  const LoadReport report = load_weights(*backend, *network, file);
  EXPECT_EQ(report.loaded.size(), 94U * 5);
  const Parameter* gamma = network->parameters().find("Mixed_7c.branch3x3_2b.bn.weight");
  EXPECT_EQ(test::values_of(*backend, gamma->value), std::vector<float>(384, 1.0F));
  const Parameter* beta = network->parameters().find("Mixed_7c.branch_pool.bn.bias");
  EXPECT_EQ(test::values_of(*backend, beta->value), test::formula_values("Mixed_7c.branch_pool.conv.beta", {192}));
}

}  // namespace
}  // namespace gle
