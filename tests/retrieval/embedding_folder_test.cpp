#include "retrieval/embedding_folder.h"

#include <cstdlib>
#include <fstream>

#include "models/files/crc32c.h"
#include "models/files/file.h"
#include "tests/expect_error.h"
#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

namespace fs = std::filesystem;

class EmbeddingFolderTest : public testing::Test {
 protected:
  EmbeddingFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "gle-embeddings-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    EmbeddingWriter writer(folder, R"({"model": "x"})", items, 3, false);
    writer.append(rows.view());
    writer.finish();
    meta = read_file((folder / "meta.json").string());
    embeddings = read_file((folder / "embeddings.npy").string());
    ids = read_file((folder / "ids.csv").string());
  }
  ~EmbeddingFolderTest() override { fs::remove_all(folder); }

  void write(const char* name, const std::string& text) const { std::ofstream(folder / name) << text; }
  // A meta.json whose checksums are those of these contents.
  static std::string meta_of(const std::string& embeddings, const std::string& ids) {
    return R"({"embeddings": )" + std::to_string(crc32c(bytes_of(embeddings))) + R"(, "ids": )" +
           std::to_string(crc32c(bytes_of(ids))) + "}";
  }
  static Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
  std::string array() const { return {reinterpret_cast<const char*>(embeddings.data()), embeddings.size()}; }
  static EmbeddingFolder parse(const std::string& embeddings, const std::string& ids) {
    const std::string meta = meta_of(embeddings, ids);
    return EmbeddingFolder::parse({bytes_of(meta), bytes_of(embeddings), bytes_of(ids)}, "folder");
  }

  const std::vector<EmbeddedItem> items = {
      {.path = "a, \"b\".jpg", .class_name = "one", .label = 0, .camera = 3, .query = false},
      {.path = "c.jpg", .class_name = "two", .label = 1}};
  const Matrix rows = random_matrix(2, 3, 1);
  fs::path folder;
  std::vector<std::byte> meta, embeddings, ids;
};

TEST_F(EmbeddingFolderTest, WhatIsWrittenReadsBack) {
  const EmbeddingFolder back = EmbeddingFolder::read(folder);
  ASSERT_EQ(back.items.size(), 2U);
  EXPECT_EQ(back.items[0].path, items[0].path);
  EXPECT_EQ(back.items[0].camera, 3);
  EXPECT_FALSE(back.items[0].query);
  EXPECT_EQ(back.items[1].label, 1);
  EXPECT_EQ(back.array.floats(), rows.values);
  EXPECT_EQ(back.job, R"({"model":"x"})");
}

TEST_F(EmbeddingFolderTest, EveryTruncationAndFlipIsRefused) {
  const auto refuses = [&](const EmbeddingFiles& files) {
    try {
      const EmbeddingFolder accepted = EmbeddingFolder::parse(files, "folder");
      return accepted.array.floats() == rows.values && accepted.items.size() == 2;  // damage beside all that counts
    } catch (const Error& error) {
      return error.code() == ErrorCode::data;
    }
  };
  for (std::vector<std::byte>* file : {&meta, &embeddings, &ids}) {
    const std::vector<std::byte> whole = *file;
    for (size_t size = 0; size < whole.size(); ++size) {
      file->resize(size);
      ASSERT_TRUE(refuses({meta, embeddings, ids})) << size;
      *file = whole;
    }
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      (*file)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      ASSERT_TRUE(refuses({meta, embeddings, ids})) << bit;
      *file = whole;
    }
  }
}

TEST_F(EmbeddingFolderTest, FilesThatDoNotFitTogetherAreRefused) {
  const std::string header = "row,path,label,class,camera,query,gallery\n";
  const std::string row = "0,a.jpg,0,x,-1,1,1\n";
  EXPECT_EQ(parse(array(), header + row + row).items.size(), 2U);
  EXPECT_ERROR(parse(array(), header + row), ErrorCode::data, {"folder", "do not fit together"});
  EXPECT_ERROR(parse(array(), "row,path\n0,a\n"), ErrorCode::data, {"ids.csv", "no column 'label'"});
  EXPECT_ERROR(parse(array(), header + row + "1,b.jpg,4294967296,x,-1,1,1\n"), ErrorCode::data,
               {"ids.csv:3", "4294967296 is too large"});
  EXPECT_ERROR(parse("no array", header + row), ErrorCode::data, {"embeddings.npy"});
}

TEST_F(EmbeddingFolderTest, WhatIsMissingIsNamed) {
  fs::remove(folder / "ids.csv");
  EXPECT_ERROR(EmbeddingFolder::read(folder), ErrorCode::data, {"ids.csv is missing"});
  write("meta.json", "[]");
  write("ids.csv", "");
  EXPECT_ERROR(EmbeddingFolder::read(folder), ErrorCode::data, {"meta.json: is not a JSON object"});
  fs::remove(folder / "meta.json");
  EXPECT_ERROR(EmbeddingFolder::read(folder), ErrorCode::data, {"has no meta.json", "gle-embed's"});
}

TEST_F(EmbeddingFolderTest, NonsenseInAFolderThatWasBegunIsNoReasonToStop) {
  write("meta.json", R"({"job": {"model": "x"}, "ids": "text"})");
  EXPECT_ERROR(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, false), ErrorCode::usage, {"another job"});
  fs::remove(folder / "meta.json");
  EXPECT_EQ(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, true).rows(), 0);
  const std::vector<std::byte> noted = read_file((folder / "progress.json").string());
  std::string progress(reinterpret_cast<const char*>(noted.data()), noted.size());
  progress.replace(progress.find("\"rows\": 0"), 9, "\"rows\": \"all\"");
  write("progress.json", progress);
  EXPECT_EQ(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, false).rows(), 0);
}

TEST_F(EmbeddingFolderTest, WhatAnotherJobHasBegunIsKept) {
  fs::remove(folder / "meta.json");
  EXPECT_ERROR(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, false), ErrorCode::usage,
               {"an embeddings.npy of another job"});
  fs::remove(folder / "embeddings.npy");
  EXPECT_EQ(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, false).rows(), 0);
  EXPECT_ERROR(EmbeddingWriter(folder, R"({"model": "y"})", items, 3, false), ErrorCode::usage, {"another job"});
  EXPECT_EQ(EmbeddingWriter(folder, R"({"model": "x"})", items, 3, false).rows(), 0);
}

TEST_F(EmbeddingFolderTest, WhatDiffersInAnotherJobIsNamed) {
  const auto again = [&](const char* job, const std::vector<EmbeddedItem>& of) {
    EmbeddingWriter(folder, job, of, 3, false);
  };
  EXPECT_ERROR(again(R"({"model": "y"})", items), ErrorCode::usage,
               {R"(differs in model ("x" there, "y" here); choose another folder)"});
  EXPECT_ERROR(again(R"({"model": "x", "flip": true, "files": [{"crc32c": 7}]})", items), ErrorCode::usage,
               {R"(differs in files/0/crc32c, flip (none there, true here); choose)"});
  EXPECT_ERROR(again(R"({"model": "x"})", {items[0]}), ErrorCode::usage, {"differs in the list of pictures;"});
}

}  // namespace
}  // namespace gle::test
