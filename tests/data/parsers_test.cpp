// The parsers of lists and archives: what they read, and what they refuse.
#include "data/csv.h"
#include "data/mat5.h"
#include "data/split_json.h"
#include "data/tar.h"
#include "tests/data/support.h"

namespace gle::data::test {

namespace {

TEST(Csv, ReadsWhatRfc4180Has) {
  const CsvTable table = read_csv(bytes_of("\xEF\xBB\xBF"
                                           "label,path\r\n\r\n\"a, \"\"b\"\"\",x.jpg\n1,\"two\nlines\"\n,"),
                                  "t.csv");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.header, (std::vector<std::string>{"label", "path"}));
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"a, \"b\"", "x.jpg"}));
  EXPECT_EQ(table.rows[1].fields[1], "two\nlines");
  EXPECT_EQ(table.rows[1].line, 4);
  EXPECT_EQ(table.rows[2].fields, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(table.column("path"), 1U);
  EXPECT_FALSE(table.column("split"));
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST(Csv, SaysWhereItIsWrong) {
  const auto error = [](const char* text) {
    return error_of(ErrorCode::data, [&] { read_csv(bytes_of(text), "t.csv"); });
  };
  EXPECT_EQ(error(""), "t.csv: empty; expected a header line");
  EXPECT_EQ(error("a,b\n1\n"), "t.csv:2: 1 fields; the header has 2");
  EXPECT_EQ(error("a,b\n1,\"2\n"), "t.csv:2: a quote that is never closed");
  EXPECT_EQ(error("a,b\n1,\"2\"x\n"), "t.csv:2: text after a closing quote");
  EXPECT_EQ(error("a,a\n"), "t.csv: column 'a' is there twice");
}

std::vector<TarMember> index_of(const Bytes& tar) {
  return read_tar_index(
      [&](uint64_t offset, std::span<uint8_t> out) {
        if (offset > tar.size() || out.size() > tar.size() - offset) {
          return false;
        }
        std::copy_n(tar.data() + offset, out.size(), out.data());
        return true;
      },
      tar.size(), "t.tar");
}

TEST(Tar, ReadsMembersAndRefusesDamage) {
  const Bytes tar = tar_of({{"a/1.png", bytes_of("one")}, {"b/2.png", Bytes(1000)}});
  const auto members = index_of(tar);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].name, "b/2.png");
  EXPECT_EQ(members[1].offset, 1536U);
  EXPECT_EQ(members[1].size, 1000U);
  Bytes flipped = tar;
  flipped[124] ^= 1;
  EXPECT_EQ(error_of(ErrorCode::data, [&] { index_of(flipped); }), "t.tar: no valid tar header at byte 0");
  EXPECT_NE(error_of(ErrorCode::data, [&] { index_of(Bytes(tar.begin(), tar.begin() + 2048)); }).find("beyond the end"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::data, [&] { index_of(Bytes(tar.begin(), tar.begin() + 1100)); }).find("cut off"),
            std::string::npos);
  EXPECT_EQ(error_of(ErrorCode::data, [&] { index_of(Bytes(tar.begin(), tar.begin() + 2540)); }),
            "t.tar: cut off at byte 2540, in the padding of member 'b/2.png'; copy or make the archive again");
  EXPECT_EQ(index_of(Bytes(tar.begin(), tar.begin() + 2560)).size(), 2U);  // as some writers end it
  EXPECT_NE(error_of(ErrorCode::data,
                     [&] {
                       index_of(tar_of({{"../x.png", {}}}));
                     })
                .find("climbs out"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::data, [&] { index_of(tar_of({{"/x.png", {}}})); }).find("absolute"), std::string::npos);
  EXPECT_NE(error_of(ErrorCode::data, [&] { index_of({}); }).find("cut off"), std::string::npos);
}

TEST(Tar, ReadsLongNames) {
  const std::string name = std::string(150, 'd') + "/" + std::string(90, 'f') + ".png";
  Bytes gnu = tar_of({{"@long", bytes_of(name)}, {"short.png", bytes_of("x")}});
  gnu[156] = 'L';
  const std::string record = " path=" + name + "\n";
  Bytes pax = tar_of({{"@pax", bytes_of(std::to_string(record.size() + 3) + record)}, {"short.png", bytes_of("x")}});
  pax[156] = 'x';
  for (Bytes* tar : {&gnu, &pax}) {
    // The kind of the member is part of the check sum.
    const int more = (*tar)[156] - '0';
    unsigned sum = static_cast<unsigned>(std::stoi(std::string(tar->begin() + 148, tar->begin() + 154), nullptr, 8));
    std::snprintf(reinterpret_cast<char*>(tar->data()) + 148, 8, "%06o", sum + static_cast<unsigned>(more));
    const auto members = index_of(*tar);
    ASSERT_EQ(members.size(), 1U);
    EXPECT_EQ(members[0].name, name);
    EXPECT_EQ(members[0].size, 1U);
  }
}

TEST(Mat5, ReadsStructuresCellsAndNumbers) {
  Bytes file;
  Folder(GLE_DATA_FIXTURES).read("cars_annos.mat", kMostListBytes, file);
  const auto variables = read_mat5(file, "cars_annos.mat");
  ASSERT_EQ(variables.size(), 2U);
  const MatArray& annotations = variables[0];
  EXPECT_EQ(annotations.name, "annotations");
  EXPECT_EQ(annotations.elements(), 7);
  EXPECT_EQ(annotations.at(6, "relative_im_path")->text, "car_ims/000007.jpg");
  EXPECT_EQ(annotations.at(5, "class")->numbers, std::vector<double>{196});
  EXPECT_EQ(annotations.at(0, "bbox_y2")->numbers, std::vector<double>{4});
  EXPECT_EQ(annotations.at(0, "wheels"), nullptr);
  EXPECT_EQ(variables[1].cells.size(), 196U);
  EXPECT_EQ(variables[1].cells[195].text, "Car 196");
}

TEST(Mat5, RefusesDamage) {
  for (const char* name : {"cars_annos.mat", "cars_train_annos.mat"}) {
    Bytes file;
    Folder(GLE_DATA_FIXTURES).read(name, kMostListBytes, file);
    int refused = 0;
    for (size_t length = 0; length < file.size(); length += 7) {
      try {
        read_mat5(std::span(file).first(length), name);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::data);
        ++refused;
      }
    }
    EXPECT_GT(refused, 50) << name;
  }
  EXPECT_NE(error_of(ErrorCode::data, [] { read_mat5(bytes_of("MATLAB 7.3 MAT-file"), "cuhk-03.mat"); }).find("HDF5"),
            std::string::npos);
}

TEST(SplitJson, ReadsTheFirstSplit) {
  const auto entries =
      read_split_json(bytes_of(R"([{"train": [["a.png", 0, 1], ["b.png", 0, 0]], "query": [["c.png", 7, 1]],
                   "gallery": [], "num_train_pids": 1},
                  {"train": [["z.png", 5, 5]], "query": [], "gallery": []}])"),
                      "s.json");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].path, "b.png");
  EXPECT_EQ(entries[2].id, 7);
  EXPECT_EQ(entries[2].camera, 1);
  EXPECT_EQ(static_cast<int>(entries[2].role), static_cast<int>(SplitEntry::Role::query));
}

TEST(SplitJson, RefusesOtherJson) {
  const auto error = [](const char* text) {
    return error_of(ErrorCode::data, [&] { read_split_json(bytes_of(text), "s.json"); });
  };
  EXPECT_EQ(error("[{\"train\": [}"), "s.json: not valid JSON at byte 13");
  EXPECT_EQ(error("[]"), "s.json: holds no split");
  EXPECT_NE(error("{}").find("not a split file"), std::string::npos);
  EXPECT_NE(error("[[1]]").find("not a split file"), std::string::npos);
  EXPECT_NE(error(R"([{"train": [["a", "b", 1]], "query": [], "gallery": []}])").find("not a split"),
            std::string::npos);
  EXPECT_NE(error(R"([{"train": [], "train": [], "query": [], "gallery": []}])").find("twice"), std::string::npos);
  EXPECT_NE(error(R"([{"train": []}])").find("no list 'query'"), std::string::npos);
}

}  // namespace

}  // namespace gle::data::test
