#include "models/files/checkpoint_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "engine/error.h"
#include "models/files/crc32c.h"

namespace gle::test {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class CheckpointFileTest : public testing::Test {
 protected:
  CheckpointFileTest() {
    std::string pattern = (fs::temp_directory_path() / "gle-checkpoint-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "a.gle";
  }
  ~CheckpointFileTest() override { fs::remove_all(folder_); }

  void save(const std::string& weights) const {
    CheckpointWriter writer;
    writer.add("meta", bytes(meta_));
    writer.add("weights", bytes(weights));
    writer.add("empty", {});
    writer.write(path_);
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  fs::path folder_, path_;
  std::string meta_ = "{\"step\": 7}";
};

TEST(Crc32c, KnownAnswersByInstructionAndByTables) {
  for (const auto sum : {crc32c, crc32c_by_tables}) {
    EXPECT_EQ(sum(bytes("123456789"), 0), 0xE3069283U);
    EXPECT_EQ(sum(bytes(std::string(32, '\0')), 0), 0x8A9136AAU);
    EXPECT_EQ(sum(bytes("6789"), sum(bytes("12345"), 0)), 0xE3069283U);
  }
}

TEST_F(CheckpointFileTest, GivesBackWhatWasSaved) {
  const std::string weights(1000, 'w');
  save(weights);
  const CheckpointFile file(path_);
  ASSERT_EQ(file.sections().size(), 3U);
  EXPECT_EQ(file["weights"].size(), weights.size());
  EXPECT_TRUE(std::ranges::equal(file["meta"], bytes(meta_)));
  EXPECT_TRUE(file["empty"].empty());
  EXPECT_THROW(file["moments"], Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CheckpointFileTest, RefusesEveryTruncationAndEveryFlippedBit) {
  save(std::string(200, 'w'));
  const std::string good = content();
  const auto refused = [&](const std::string& text) {
    put(text);
    try {
      const CheckpointFile file(path_);
      return false;
    } catch (const Error& e) {
      return e.code() == ErrorCode::weights && std::string(e.what()).find("a.gle") != std::string::npos;
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(refused(good.substr(0, size))) << "cut at " << size;
  }
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(static_cast<unsigned char>(bad[bit / 8]) ^ (1U << (bit % 8)));
    EXPECT_TRUE(refused(bad)) << "bit " << bit;
  }
  EXPECT_TRUE(refused(good + "x"));
}

TEST_F(CheckpointFileTest, NamesTheDamagedSection) {
  save(std::string(200, 'w'));
  std::string bad = content();
  bad[bad.size() - 3] = 'x';
  put(bad);
  try {
    const CheckpointFile file(path_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("section 'weights' is damaged"), std::string::npos) << e.what();
  }
}

TEST_F(CheckpointFileTest, AWriteThatFailsLeavesTheOldFile) {
  save("old");
  const std::string before = content();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  try {
    save(std::string(100000, 'n'));
    ADD_FAILURE() << "100 kB written in 4 kB";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(content(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CheckpointFileTest, MissingFolderAndMissingFile) {
  CheckpointWriter writer;
  writer.add("a", bytes(meta_));
  try {
    writer.write(folder_ / "nowhere" / "b.gle");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
  try {
    const CheckpointFile file(folder_ / "nothing.gle");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
}

}  // namespace
}  // namespace gle::test
