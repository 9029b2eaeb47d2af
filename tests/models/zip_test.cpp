#include "models/files/zip.h"

#include <cstring>

#include "engine/bytes/inflate.h"
#include "models/files/npy.h"
#include "tests/models/files_testing.h"

namespace gle {
namespace {

using test::contains;
using test::error_of;
using test::fixture;

// A zip archive made by hand, so that every field can be made to lie.
struct Entry {
  std::string name;
  std::string data;
  std::string local_name = name;
  uint32_t crc = crc32({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  uint32_t size = static_cast<uint32_t>(data.size());
  uint32_t packed = static_cast<uint32_t>(data.size());
  uint16_t method = 0;
  uint16_t flags = 0;
  int64_t offset = -1;  // -1: where it is
};

class Writer {
 public:
  Writer& u16(uint64_t value) { return number(value, 2); }
  Writer& u32(uint64_t value) { return number(value, 4); }
  Writer& text(const std::string& value) {
    const Bytes bytes = std::as_bytes(std::span(value));
    file.insert(file.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::vector<std::byte> file;

 private:
  Writer& number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      file.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
    return *this;
  }
};

std::vector<std::byte> zip_of(const std::vector<Entry>& entries, int claimed = -1) {
  Writer out;
  std::vector<size_t> offsets;
  for (const Entry& e : entries) {
    offsets.push_back(out.file.size());
    out.u32(0x04034b50).u16(20).u16(e.flags).u16(e.method).u32(0).u32(e.crc).u32(e.packed).u32(e.size);
    out.u16(e.local_name.size()).u16(0).text(e.local_name).text(e.data);
  }
  const size_t directory = out.file.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    out.u32(0x02014b50).u32(20).u16(e.flags).u16(e.method).u32(0).u32(e.crc).u32(e.packed).u32(e.size);
    out.u16(e.name.size()).u16(0).u16(0).u16(0).u16(0).u32(0);
    out.u32(e.offset < 0 ? offsets[i] : static_cast<uint64_t>(e.offset)).text(e.name);
  }
  const size_t bytes = out.file.size() - directory;
  const uint64_t count = claimed < 0 ? entries.size() : static_cast<uint64_t>(claimed);
  out.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count).u32(bytes).u32(directory).u16(0);
  return out.file;
}

void read_all(Bytes bytes) {
  ZipArchive archive(bytes, "x.zip");
  for (const ZipEntry& entry : archive.entries()) {
    (void)archive.read(entry);
  }
}

std::string refusal(const std::vector<std::byte>& file) {
  return error_of(ErrorCode::weights, [&] { read_all(file); });
}

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(Zip, EntriesAreFoundByName) {
  const std::vector<std::byte> file = zip_of({{"b", "second"}, {"a/../../x", "first"}, {"empty", ""}});
  ZipArchive archive(file, "x.zip");
  EXPECT_EQ(archive.entries().size(), 3U);
  ASSERT_NE(archive.find("a/../../x"), nullptr);
  EXPECT_EQ(text_of(archive.read(*archive.find("a/../../x"))), "first");
  EXPECT_EQ(text_of(archive.read(*archive.find("b"))), "second");
  EXPECT_EQ(text_of(archive.read(*archive.find("empty"))), "");
  EXPECT_EQ(archive.find("c"), nullptr);
  EXPECT_TRUE(ZipArchive::looks_like_zip(file));
  EXPECT_FALSE(ZipArchive::looks_like_zip(std::span(file).subspan(1)));
}

TEST(Zip, StreamedEntriesZip64FieldsAndCommentsRead) {
  const std::vector<std::byte> file = read_file(fixture("streamed.zip"));
  ZipArchive archive(file, "streamed.zip");
  ASSERT_NE(archive.find("big.bin"), nullptr);
  const Bytes data = archive.read(*archive.find("big.bin"));
  ASSERT_EQ(data.size(), 256U * 40);
  for (size_t i = 0; i < data.size(); ++i) {
    ASSERT_EQ(data[i], static_cast<std::byte>(i));
  }
}

TEST(Zip, LiesAreRefused) {
  EXPECT_TRUE(contains(refusal({}), "only 0 bytes"));
  EXPECT_TRUE(contains(refusal(std::vector<std::byte>(100)), "no zip directory"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "1"}, {"a", "2"}})), "two entries have the name 'a'"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "12345678"}, {.name = "a2", .data = "", .local_name = "a", .offset = 0}})),
                       "disagree"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "1"}, {.name = "a", .data = "1", .offset = 0}})), "overlap"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .crc = 7}})), "CRC-32"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .size = 9}})), "claims 9 bytes in 1"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .size = 70, .packed = 70}})), "reaches into"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .size = 900, .packed = 900}})), "900 bytes wanted"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .size = 4000000, .method = 8}})), "claims 4000000"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .method = 12}})), "method 12"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .flags = 1}})), "encrypted"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .local_name = "b"}})), "disagree"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .offset = 5000}})), "beyond the end"));
  EXPECT_TRUE(contains(refusal(zip_of({{.name = "a", .data = "1", .offset = 0xFFFFFFFF}})), "beyond the end"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "1"}}, 2)), "claims 2 entries"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "1"}, {"b", "1"}}, 1)), "belong to no entry"));
  EXPECT_TRUE(contains(refusal(zip_of({{"a", "1"}}, 0xFFFF)), "zip64"));
}

TEST(Zip, EveryTruncationIsRefused) {
  for (const char* name : {"streamed.zip", "deflated.npz"}) {
    const test::Damage damage = test::try_truncations(read_file(fixture(name)), read_all);
    EXPECT_EQ(damage.accepted, 0) << name;
  }
}

TEST(Zip, NoFlipOfABitChangesWhatIsRead) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::vector<std::byte> file = read_file(fixture(name));
    const Npz whole = Npz::parse(file, name);
    const test::Damage damage = test::try_bit_flips(
        file,
        [&](Bytes bytes) {
          const Npz found = Npz::parse(bytes, name);
          for (const auto& [key, array] : found.arrays()) {
            EXPECT_EQ(array.data, whole.at(key).data) << name << " " << key;
          }
        },
        1500);
    EXPECT_GT(damage.refused, damage.accepted * 5) << name;
  }
}

}  // namespace
}  // namespace gle
