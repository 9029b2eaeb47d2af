#include "models/files/npy.h"

#include <limits>

#include "tests/models/files_testing.h"

namespace gle {
namespace {

using test::contains;
using test::error_of;
using test::fixture;

class NpzFixture : public testing::TestWithParam<const char*> {};

TEST_P(NpzFixture, EveryTypeReadsAsNumPyWroteIt) {
  const Npz file = Npz::read(fixture(GetParam()));
  EXPECT_EQ(file.at("f4").floats(), (std::vector<float>{0, 0.25F, 0.5F, 0.75F, 1, 1.25F}));
  EXPECT_EQ(file.at("f4").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.at("f8").doubles(), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(file.at("i4").integers(), (std::vector<int64_t>{INT32_MIN, INT32_MAX}));
  EXPECT_EQ(file.at("i4").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.at("i8").integers(), (std::vector<int64_t>{INT64_MIN, 7, INT64_MAX}));
  EXPECT_EQ(file.at("u1").integers(), (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(file.at("b1").integers(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(file.at("b1").floats(), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(file.at("text").strings(), (std::vector<std::string>{"zero", "one", "drei\u00df", ""}));
  EXPECT_EQ(file.at("scalar").scalar(), 0.125);
  EXPECT_TRUE(file.at("scalar").shape.empty());
  EXPECT_EQ(file.at("word").text(), "paper");
  EXPECT_EQ(file.at("empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(file.at("empty").elements(), 0U);
  const std::vector<float> values = file.at("long").floats();
  ASSERT_EQ(values.size(), 3000U);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i * i % 251));
  }
}
INSTANTIATE_TEST_SUITE_P(Npz, NpzFixture, testing::Values("stored.npz", "deflated.npz"));

TEST(Npz, LongRunsAndNoiseInflate) {
  const Npz stored = Npz::read(fixture("stored.npz"));
  const Npz deflated = Npz::read(fixture("deflated.npz"));
  EXPECT_EQ(deflated.at("zeros").floats(), std::vector<float>(20000));
  EXPECT_EQ(deflated.at("random").integers(), stored.at("random").integers());
}

TEST(Npz, AMissingArrayIsNamedWithThoseThereAre) {
  const Npz file = Npz::read(fixture("stored.npz"));
  EXPECT_FALSE(file.has("logits"));
  const std::string message = error_of(ErrorCode::weights, [&] { (void)file.at("logits"); });
  EXPECT_TRUE(contains(message, "stored.npz: no array 'logits'; there are: b1, empty")) << message;
}

TEST(Npy, FortranOrderIsTurned) {
  const NpyArray array = read_npy(fixture("fortran.npy"));
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 4}));
  const std::vector<float> values = array.floats();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(i));
  }
}

TEST(Npy, WhatIsWrittenReadsBackAndIsAlignedAsNumPyAligns) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<std::byte> file = format_npy(npy_of(std::span(values), {3, 2}));
  EXPECT_EQ((file.size() - values.size() * 4) % 64, 0U);
  const NpyArray back = parse_npy(file, "array");
  EXPECT_EQ(back.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(back.floats(), values);
  const std::vector<int64_t> labels = {-1, 1};
  EXPECT_EQ(parse_npy(format_npy(npy_of(std::span(labels), {2})), "labels").integers(), labels);
  const std::vector<double> scalar = {0.5};
  EXPECT_EQ(parse_npy(format_npy(npy_of(std::span(scalar), {})), "scalar").scalar(), 0.5);
  // The very bytes that NumPy writes.
  const Npz numpy = Npz::read(fixture("stored.npz"));
  const std::vector<std::byte> archive = read_file(fixture("stored.npz"));
  for (const auto& [name, array] : numpy.arrays()) {
    const std::vector<std::byte> ours = format_npy(array);
    EXPECT_NE(std::search(archive.begin(), archive.end(), ours.begin(), ours.end()), archive.end()) << name;
  }
}

TEST(Npy, HalvesAreNumbers) {
  const uint16_t bits[] = {0x3C00, 0xC000, 0x0001, 0x3555};
  const Bytes bytes = std::as_bytes(std::span(bits));
  const NpyArray halves{
      .name = "halves", .kind = 'f', .item_bytes = 2, .shape = {2, 2}, .data = {bytes.begin(), bytes.end()}};
  const NpyArray back = parse_npy(format_npy(halves), "halves.npy");
  EXPECT_EQ(back.floats(), (std::vector<float>{1, -2, 0x1p-24F, 0.333251953125F}));
  EXPECT_EQ(back.doubles(), (std::vector<double>{1, -2, 0x1p-24, 0.333251953125}));
}

std::vector<std::byte> with_header(const std::string& header, size_t data) {
  std::string file = "\x93NUMPY\1";
  file += '\0';
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  file += header + std::string(data, '\0');
  const Bytes bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

TEST(Npy, HostileHeadersAreRefused) {
  const auto message = [](const std::string& header, size_t data = 8) {
    return error_of(ErrorCode::weights, [&] { parse_npy(with_header(header, data), "x.npy"); });
  };
  const auto header = [](const std::string& type, const std::string& shape) {
    return "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  };
  EXPECT_TRUE(contains(message(header("<f4", "3,")), "needs 12 bytes of data, the file has 8"));
  EXPECT_TRUE(contains(message(header("<f8", "4294967296, 4294967296")), "absurd"));
  EXPECT_TRUE(contains(message(header("<f4", "9223372036854775808,")), "header"));
  EXPECT_TRUE(contains(message(header("<f4", "-1,")), "header"));
  EXPECT_TRUE(contains(message(header(">f4", "2,")), "'>f4'"));
  EXPECT_TRUE(contains(message(header("<f16", "1,")), "astype(\"float32\")"));
  EXPECT_TRUE(contains(message(header("|O", "2,")), "'|O'"));
  EXPECT_TRUE(contains(message(header("<U999999999", "2,")), "not read"));
  EXPECT_TRUE(contains(message("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), "records"));
  EXPECT_TRUE(contains(message("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), "header"));
  EXPECT_TRUE(contains(message("{'descr': '<f4', 'shape': (2,)}"), "header"));
  EXPECT_TRUE(contains(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"), "header"));
  EXPECT_TRUE(contains(message(""), "header"));
}

TEST(Npy, NumbersThatDoNotFitAreRefused) {
  const Npz file = Npz::read(fixture("stored.npz"));
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)file.at("f4").integers(); }), "not whole numbers"));
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)file.at("text").floats(); }), "not numbers"));
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)file.at("f4").strings(); }), "not text"));
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)file.at("f4").scalar(); }), "one number expected"));
  NpyArray big{.name = "big", .kind = 'u', .item_bytes = 8, .shape = {1}, .data = std::vector(8, std::byte{0xFF})};
  EXPECT_TRUE(contains(error_of(ErrorCode::weights, [&] { (void)big.integers(); }), "does not fit"));
}

TEST(Npy, EveryTruncationIsRefusedAndNoFlipCrashes) {
  const std::vector<std::byte> file = read_file(fixture("fortran.npy"));
  const auto parse = [](Bytes bytes) { (void)parse_npy(bytes, "cut.npy").floats(); };
  EXPECT_EQ(test::try_truncations(file, parse).accepted, 0);
  EXPECT_GT(test::try_bit_flips(file, parse, 5000).refused, 0);
}

TEST(Npy, WhatIsNoFileIsAnErrorOfInputAndOutput) {
  EXPECT_TRUE(contains(error_of(ErrorCode::io, [] { (void)read_npy(fixture("absent.npy")); }), "absent.npy"));
  EXPECT_TRUE(contains(error_of(ErrorCode::io, [] { (void)read_npy(GLE_FIXTURES); }), "not a regular file"));
  const std::vector<float> one = {1};
  EXPECT_TRUE(contains(error_of(ErrorCode::io, [&] { write_npy("/nowhere/x.npy", npy_of(std::span(one), {1})); }),
                       "/nowhere/x.npy"));
}

}  // namespace
}  // namespace gle
