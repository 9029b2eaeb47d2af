// Small trees in the layouts that the data sets are shipped in.
#include <sys/stat.h>

#include <cstdlib>

#include "data/check.h"
#include "data/dataset.h"
#include "data/images.h"
#include "tests/data/support.h"

namespace gle::data::test {

namespace {

bool warned(const Dataset& data, const std::string& text) {
  for (const std::string& warning : data.warnings) {
    if (warning.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::string load_error(const TempFolder& folder, const std::string& relative = "", const DatasetOptions& options = {}) {
  return error_of(ErrorCode::data, [&] { load_dataset(folder.path(relative), options); });
}

void write_empty(const TempFolder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    folder.write(name, "");
  }
}

TEST(Datasets, Cub) {
  TempFolder folder;
  folder.write("CUB_200_2011/images.txt", "1 001.A/a.jpg\n2 100.B/b.jpg\r\n3 101.C/c.jpg\n4 200.D/d.jpg\n");
  folder.write("CUB_200_2011/image_class_labels.txt", "1 1\n2 100\n3 101\n4 200\n");
  folder.write("CUB_200_2011/train_test_split.txt", "1 1\n2 0\n3 1\n4 0\n");
  for (const std::string at : {"", "CUB_200_2011"}) {
    const Dataset data = load_dataset(folder.path(at));
    EXPECT_EQ(data.name, "cub");
    EXPECT_EQ(data.train_items(), (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(data.query_items(), (std::vector<uint32_t>{2, 3}));
    EXPECT_EQ(data.gallery_items(), data.query_items());
    EXPECT_EQ(data.train_classes, 2);
    EXPECT_EQ(data.class_names, (std::vector<std::string>{"001.A", "100.B", "101.C", "200.D"}));
    EXPECT_TRUE(warned(data, "found 2 images to train on, published are 5864"));
  }
  const Dataset other = load_dataset(folder.path(), {.dataset = "cub-classification"});
  EXPECT_EQ(other.train_items(), (std::vector<uint32_t>{0, 2}));
}

TEST(Datasets, CubWithMalformedLists) {
  TempFolder folder;
  folder.write("image_class_labels.txt", "1 1\n2 2\n");
  folder.write("images.txt", "1 001.A/a.jpg\n2\n");
  EXPECT_NE(load_error(folder).find("images.txt:2: expected 'image path', found '2'"), std::string::npos);
  folder.write("images.txt", "x 001.A/a.jpg\n");
  EXPECT_NE(load_error(folder).find("images.txt:1: expected a whole number, found 'x'"), std::string::npos);
  folder.write("images.txt", "1 001.A/a.jpg\n3 001.A/b.jpg\n");
  EXPECT_NE(load_error(folder).find("image 3 of images.txt is missing"), std::string::npos);
  folder.write("images.txt", "1 ../../etc/passwd\n");
  EXPECT_NE(load_error(folder).find("images.txt:1: a path that climbs out by '..'"), std::string::npos);
  folder.write("images.txt", std::string_view("1 a\0b.jpg\n", 10));
  EXPECT_NE(load_error(folder).find("NUL"), std::string::npos);
  folder.write("images.txt", "1 " + std::string(5000, 'a') + "\n");
  EXPECT_NE(load_error(folder).find("a path of 50"), std::string::npos);
  folder.write("images.txt", "");
  EXPECT_NE(load_error(folder).find("no images found"), std::string::npos);
}

TEST(Datasets, CarsInAllThreeForms) {
  Bytes mat;
  const Folder fixtures(GLE_DATA_FIXTURES);
  TempFolder old;
  fixtures.read("cars_annos.mat", kMostListBytes, mat);
  old.write("cars_annos.mat", mat);
  const Dataset first = load_dataset(old.path());
  EXPECT_EQ(first.name, "cars");
  EXPECT_EQ(first.train_items().size(), 4U);
  EXPECT_EQ(first.query_items().size(), 3U);
  EXPECT_EQ(first.items[6].path, "car_ims/000007.jpg");
  EXPECT_EQ(first.class_names, (std::vector<std::string>{"1", "2", "98", "99", "196"}));
  EXPECT_TRUE(warned(first, "published are 8054"));

  TempFolder second;
  fixtures.read("cars_train_annos.mat", kMostListBytes, mat);
  second.write("devkit/cars_train_annos.mat", mat);
  fixtures.read("cars_test_annos_withlabels.mat", kMostListBytes, mat);
  second.write("cars_test_annos_withlabels.mat", mat);
  const Dataset joined = load_dataset(second.path());
  EXPECT_EQ(joined.train_items().size(), 2U);
  EXPECT_EQ(joined.query_items().size(), 3U);
  EXPECT_EQ(joined.items[2].path, "cars_test/00001.jpg");

  TempFolder third;
  for (int c = 1; c <= 100; ++c) {
    third.write("images/" + std::to_string(1000 + c) + "/x.jpg", "");
  }
  const Dataset folders = load_dataset(third.path("images"), {.dataset = "cars"});
  EXPECT_EQ(folders.train_classes, 98);
  EXPECT_EQ(folders.query_items().size(), 2U);
}

TEST(Datasets, StanfordOnlineProducts) {
  TempFolder folder;
  folder.write("Ebay_train.txt",
               "image_id class_id super_class_id path\n1 1 1 bicycle_final/1_0.JPG\n2 2 1 bicycle_final/2.JPG\n");
  folder.write("Ebay_test.txt", "image_id class_id super_class_id path\n3 11319 1 sofa_final/3_0.JPG\n");
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "sop");
  EXPECT_EQ(data.train_classes, 2);
  EXPECT_EQ(data.items[2].path, "sofa_final/3_0.JPG");
  EXPECT_TRUE(data.items[2].query && data.items[2].gallery && !data.items[2].train);
  folder.write("Ebay_test.txt", "image_id class_id super_class_id path\n3 11319 /abs/x.JPG\n");
  EXPECT_NE(load_error(folder).find("Ebay_test.txt:2"), std::string::npos);
  folder.write("Ebay_test.txt", "image_id class_id super_class_id path\n3 11319 1 /abs/x.JPG\n");
  EXPECT_NE(load_error(folder).find("an absolute path"), std::string::npos);
}

TEST(Datasets, InShop) {
  TempFolder folder;
  folder.write("Eval/list_eval_partition.txt",
               "3\nimage_name item_id evaluation_status\n"
               "img/WOMEN/Dresses/id_00000002/02_1_front.jpg   id_00000002 train\n"
               "img/a.jpg id_00000007  query   \nimg/b.jpg id_00000007 gallery\n");
  folder.write("Img/img/a.jpg", "");
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "inshop");
  EXPECT_EQ(data.query_items(), (std::vector<uint32_t>{1}));
  EXPECT_EQ(data.gallery_items(), (std::vector<uint32_t>{2}));
  EXPECT_EQ(data.items[1].path, "Img/img/a.jpg");
  EXPECT_EQ(data.items[1].label, data.items[2].label);
  EXPECT_EQ(data.class_names[0], "2");
  folder.write("Eval/list_eval_partition.txt", "3\nimage_name item_id evaluation_status\nimg/a.jpg id_1 val\n");
  EXPECT_NE(load_error(folder).find(":3: expected train, query or gallery, found 'val'"), std::string::npos);
}

TEST(Datasets, MarketAndItsKin) {
  TempFolder folder;
  folder.write("Market-1501-v15.09.15/bounding_box_train/0002_c1s1_000451_03.jpg", "");
  folder.write("Market-1501-v15.09.15/bounding_box_train/Thumbs.db", "");
  folder.write("Market-1501-v15.09.15/query/0001_c2s1_000001_00.jpg", "");
  folder.write("Market-1501-v15.09.15/bounding_box_test/-1_c1s1_000401_03.jpg", "");
  folder.write("Market-1501-v15.09.15/bounding_box_test/0000_c6s1_000001_00.jpg", "");
  folder.write("Market-1501-v15.09.15/bounding_box_test/0001_c3s1_000001_00.jpg", "");
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "market1501");
  ASSERT_EQ(data.items.size(), 4U);
  EXPECT_EQ(data.gallery_items().size(), 2U);
  EXPECT_EQ(data.items[0].camera, 0);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"2", "0", "1"}));
  ASSERT_EQ(data.notes.size(), 1U);
  EXPECT_NE(data.notes[0].find("1 junk"), std::string::npos);

  TempFolder duke;
  duke.write("bounding_box_train/0001_c2_f0046182.jpg", "");
  duke.write("query/0005_c2_f0046985.jpg", "");
  duke.write("bounding_box_test/0005_c1_f0046985.jpg", "");
  EXPECT_EQ(load_dataset(duke.path()).name, "dukemtmc");
  TempFolder np;
  np.write("bounding_box_train/0003_c1_21.png", "");
  np.write("query/0001_c1_22.png", "");
  np.write("bounding_box_test/0001_c2_23.png", "");
  EXPECT_EQ(load_dataset(np.path()).name, "cuhk03-np");
}

TEST(Datasets, Cuhk03ByMatAndByJson) {
  TempFolder folder;
  Bytes mat;
  Folder(GLE_DATA_FIXTURES).read("cuhk03_new_protocol_config_detected.mat", kMostListBytes, mat);
  folder.write("cuhk03_new_protocol_config_detected.mat", mat);
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "cuhk03-detected");
  EXPECT_EQ(data.train_items().size(), 4U);
  EXPECT_EQ(data.query_items().size(), 2U);
  EXPECT_EQ(data.gallery_items().size(), 4U);
  EXPECT_EQ(data.train_classes, 1);
  EXPECT_EQ(data.items[4].path, "images_detected/1_002_1_01.png");
  EXPECT_EQ(data.items[4].camera, 0);
  EXPECT_EQ(data.items[6].camera, 1);
  EXPECT_TRUE(warned(data, "published are 7365"));

  TempFolder json;
  json.write("splits_new_labeled.json",
             R"([{"train": [["/home/somebody/reid/cuhk03/images_labeled/1_001_1_01.png", 0, 0]],
                  "query": [["images_labeled/1_002_1_01.png", 0, 0]],
                  "gallery": [["images_labeled/1_002_2_01.png", 0, 1]]}])");
  const Dataset labeled = load_dataset(json.path());
  EXPECT_EQ(labeled.name, "cuhk03-labeled");
  EXPECT_EQ(labeled.items[0].path, "images_labeled/1_001_1_01.png");
  EXPECT_NE(labeled.items[0].label, labeled.items[1].label);
  EXPECT_EQ(labeled.items[1].label, labeled.items[2].label);
}

TEST(Datasets, Msmt17) {
  TempFolder folder;
  folder.write("list_train.txt", "0000/0000_000_01_0303morning_0008_0.jpg 0\n");
  folder.write("list_val.txt", "0001/0001_000_05_0303morning_0008_0.jpg 1\n");
  folder.write("list_query.txt", "0000/0000_000_01_0113morning_0033_1.jpg 0\n");
  folder.write("list_gallery.txt", "0000/0000_001_14_0113morning_0033_1.jpg 0\n");
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "msmt17");
  EXPECT_EQ(data.train_classes, 2);
  EXPECT_EQ(data.class_names.size(), 3U);
  EXPECT_EQ(data.items[3].camera, 14);
  EXPECT_EQ(data.items[3].path, "test/0000/0000_001_14_0113morning_0033_1.jpg");
}

TEST(Datasets, ClassFolders) {
  TempFolder folder;
  for (const char* name : {"b/1.jpg", "a/2.PNG", "a/1.bmp", "c/1.webp", "c/2.jpeg", "c/notes.txt"}) {
    folder.write(name, "");
  }
  const Dataset data = load_dataset(folder.path(), {.train_classes = ClassRange{1, 3}});
  EXPECT_EQ(data.name, "folders");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(data.train_items().size(), 2U);
  EXPECT_TRUE(warned(data, "1 files with the extensions"));
  EXPECT_TRUE(warned(load_dataset(folder.path()), "no split given"));
  EXPECT_NE(error_of(ErrorCode::usage,
                     [&] {
                       load_dataset(folder.path(), {.train_classes = ClassRange{0, 4}});
                     })
                .find("within 0:3"),
            std::string::npos);

  TempFolder split;
  split.write("train/x/1.jpg", "");
  split.write("test/y/1.jpg", "");
  const Dataset parts = load_dataset(split.path());
  EXPECT_TRUE(parts.items[1].train);
  EXPECT_TRUE(parts.items[0].query && parts.items[0].gallery);
  EXPECT_NE(error_of(ErrorCode::usage, [&] { load_dataset(split.path(), {.dataset = "imagenet"}); }).find("known are"),
            std::string::npos);
  EXPECT_NE(load_error(split, "nowhere").find("No such file"), std::string::npos);
}

TEST(Datasets, ImagesOutsideOfClassFoldersAreWarnedOf) {
  TempFolder folder;
  write_empty(folder, {"0.jpg", "a/1.png", "a/deep/er/2.png", "b/sub/1.png", "b/sub/2.png", "b/sub/.hidden/3.png",
                       "c/1.png", "d/notes.txt"});
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"a", "c"}));
  EXPECT_TRUE(warned(data, "1 images beside class folders are left out"));
  EXPECT_TRUE(warned(data, "3 images in folders below class folders are left out: a, b"));
  EXPECT_TRUE(warned(data, "2 class folders without an image are left out: b, d"));

  TempFolder split;
  write_empty(split, {"0.jpg", "train/0.jpg", "train/x/1.jpg", "train/y/sub/1.jpg", "test/z/1.jpg"});
  const Dataset parts = load_dataset(split.path());
  EXPECT_TRUE(warned(parts, "2 images beside class folders"));
  EXPECT_TRUE(warned(parts, "1 images in folders below class folders are left out: train/y"));
  EXPECT_TRUE(warned(parts, "1 class folders without an image are left out: train/y"));
}

TEST(Datasets, ManyClassFoldersWithoutImagesAreNotAllNamed) {
  TempFolder folder;
  folder.write("z/1.png", "");
  for (int i = 1; i <= 8; ++i) {
    folder.write(std::to_string(i) + "/notes.txt", "");
  }
  EXPECT_TRUE(
      warned(load_dataset(folder.path()), "8 class folders without an image are left out: 1, 2, 3, 4, 5 and 3 more"));
}

TEST(Datasets, HiddenFoldersAreNeitherSplitsNorClasses) {
  TempFolder split;
  write_empty(split, {"train/x/1.jpg", "train/.cache/1.jpg", "train/x/.thumbnails/1.jpg", "test/y/1.jpg", ".cache/t"});
  const Dataset parts = load_dataset(split.path());
  EXPECT_EQ(parts.class_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(parts.train_classes, 1);
  EXPECT_TRUE(parts.warnings.empty());

  TempFolder pictures;
  write_empty(pictures, {"1.jpg", "2.jpg", ".thumbnails/1.jpg"});
  const Dataset plain = load_images_or_dataset(pictures.path());
  EXPECT_EQ(plain.name, "images");
  EXPECT_EQ(plain.items.size(), 2U);
  EXPECT_TRUE(plain.warnings.empty());
}

TEST(Datasets, NoImagesInClassFoldersSaysWhereTheyAre) {
  TempFolder split;
  write_empty(split, {"train/x/1.jpg", "test/y/1.jpg", "extra/notes.txt"});
  const std::string mixed = load_error(split);
  EXPECT_NE(mixed.find("no images found for data set 'folders'; expected class/name.jpg"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("2 images in folders below class folders"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("test, train would be splits, but not beside folders that are none: extra"), std::string::npos)
      << mixed;
  TempFolder flat;
  write_empty(flat, {"1.jpg", "2.jpg"});
  EXPECT_NE(load_error(flat).find("2 images beside class folders"), std::string::npos);

  // A class may be named as a split is.
  TempFolder vehicles;
  write_empty(vehicles, {"bus/1.jpg", "train/1.jpg"});
  const Dataset data = load_dataset(vehicles.path(), {.train_classes = ClassRange{0, 1}});
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"bus", "train"}));
  EXPECT_TRUE(data.warnings.empty());
}

TEST(Datasets, PlainPicturesWarnOfOthersLeftOut) {
  TempFolder folder;
  write_empty(folder, {"1.jpg", "2.jpg", "3.webp", "a/deep/1.jpg"});
  const Dataset data = load_images_or_dataset(folder.path());
  EXPECT_EQ(data.items.size(), 2U);
  EXPECT_TRUE(warned(data, "1 images in the folders below are left out"));
  EXPECT_TRUE(warned(data, "1 files with the extensions"));
  folder.write("a/1.jpg", "");
  const Dataset classes = load_images_or_dataset(folder.path());
  EXPECT_EQ(classes.items.size(), 1U);
  EXPECT_TRUE(warned(classes, "2 images beside class folders are left out"));
}

TEST(Files, CountingImagesEndsWithTheNames) {
  TempFolder folder;
  write_empty(folder, {"a/1.jpg", "a/b/2.jpg", "a/b/3.txt"});
  std::filesystem::create_directory_symlink(folder.path("a"), folder.path("a/b/around"));
  const Folder root(folder.path());
  ImageCount all;
  root.count_images("a", all);
  EXPECT_EQ(all.text(), "2");
  ImageCount few{.names_left = 3};
  root.count_images("a", few);
  EXPECT_EQ(few.names_left, 0U);
  EXPECT_TRUE(few.text().starts_with("at least "));
  ImageCount none;
  root.count_images("nowhere", none);
  EXPECT_EQ(none.text(), "0");
}

TEST(Datasets, ValidationBesideTestIsWarnedOf) {
  const std::string text = "2 validation images and 1 test images are both tested on";
  for (const std::string val : {"val", "validation"}) {
    TempFolder folder;
    write_empty(folder, {"train/x/1.jpg", val + "/y/1.jpg", val + "/y/2.jpg"});
    EXPECT_TRUE(load_dataset(folder.path()).warnings.empty());
    folder.write("test/z/1.jpg", "");
    const Dataset data = load_dataset(folder.path());
    EXPECT_EQ(data.query_items().size(), 3U);
    EXPECT_TRUE(warned(data, text));
  }

  TempFolder shards;
  shards.write("a.tar",
               tar_of({{"train/x/1.png", {}}, {"val/y/1.png", {}}, {"val/y/2.png", {}}, {"test/z/1.png", {}}}));
  EXPECT_TRUE(warned(load_dataset(shards.path()), text));

  TempFolder csv;
  const std::string rows =
      "label,path,split,is_query,is_gallery\n1,a.jpg,train,,\n2,b.jpg,validation,1,1\n2,c.jpg,validation,0,1\n";
  csv.write("df.csv", rows + "3,d.jpg,test,0,0\n");
  EXPECT_TRUE(load_dataset(csv.path()).warnings.empty());
  csv.write("df.csv", rows + "3,d.jpg,test,1,1\n");
  EXPECT_TRUE(warned(load_dataset(csv.path()), text));
}

TEST(Shards, OneThatEndsWithoutAnEmptyBlockIsAWarning) {
  Bytes tar = tar_of({{"x/1.png", bytes_of("one")}, {"y/1.png", bytes_of("two")}});
  const std::string text = "a.tar: has no empty block at its end";
  TempFolder shards;
  shards.write("a.tar", tar);
  EXPECT_FALSE(warned(load_dataset(shards.path()), text));
  tar.resize(2 * 1024);
  shards.write("a.tar", tar);
  EXPECT_TRUE(warned(load_dataset(shards.path()), text));
}

TEST(Datasets, ListsOfPicturesLeadOutOnlyIfAllowed) {
  TempFolder folder;
  folder.write("o.jpg", "o");
  folder.write("set/in/i.jpg", "i");
  folder.write("set/absolute.txt", folder.path("o.jpg").string() + "\nin/i.jpg\n");
  folder.write("set/around.txt", "in/i.jpg\n../o.jpg\n");
  const auto error = [&](const std::string& list) {
    return error_of(ErrorCode::data, [&] { load_images_or_dataset(folder.path("set/" + list)); });
  };
  EXPECT_NE(error("absolute.txt").find("absolute.txt:1: an absolute path"), std::string::npos);
  EXPECT_NE(error("around.txt").find("around.txt:2: a path that climbs out by '..'"), std::string::npos);
  for (const std::string list : {"absolute.txt", "around.txt"}) {
    const Dataset data = load_images_or_dataset(folder.path("set/" + list), {.outside = Outside::allow});
    std::string read;
    for (const Item& item : data.items) {
      Bytes bytes;
      data.read(item, bytes);
      read.append(bytes.begin(), bytes.end());
    }
    EXPECT_EQ(read, list == "absolute.txt" ? "oi" : "io");
  }
}

TEST(Datasets, CamerasAreRangeChecked) {
  TempFolder folder;
  const auto write = [&](const std::string& camera) {
    folder.write("df.csv", "label,path,split,is_query,is_gallery,camera\n1,a.jpg,train,,," + camera + "\n");
  };
  const auto camera = [&](const std::string& text) {
    write(text);
    return load_dataset(folder.path()).items[0].camera;
  };
  EXPECT_EQ(camera(""), -1);
  EXPECT_EQ(camera("-1"), -1);
  EXPECT_EQ(camera("2147483647"), 2147483647);
  for (const std::string bad : {"2147483648", "4294967297", "-2"}) {
    write(bad);
    const std::string error = load_error(folder);
    EXPECT_NE(error.find("df.csv:2: found camera " + bad + "; expected -1 (none) to 2147483647"), std::string::npos)
        << error;
  }
  TempFolder json;
  json.write("splits_new_labeled.json",
             R"([{"train": [["images_labeled/1.png", 0, 4294967297]], "query": [], "gallery": []}])");
  EXPECT_NE(load_error(json).find("splits_new_labeled.json:1: found camera 4294967297"), std::string::npos);
}

TEST(Datasets, WhatAStrayFileMadeOfClassFoldersIsSaid) {
  TempFolder folder;
  write_empty(folder, {"a/1.jpg", "b/1.jpg"});
  folder.write("ids.csv", "row,path,label,class\n0,a/1.jpg,0,a\n");
  const std::string csv = load_error(folder);
  EXPECT_NE(csv.find("no column 'split'"), std::string::npos) << csv;
  EXPECT_NE(csv.find("is taken for data set 'csv' because of its ids.csv; --dataset folders"), std::string::npos)
      << csv;
  EXPECT_EQ(load_dataset(folder.path(), {.dataset = "folders"}).items.size(), 2U);
  folder.write("more.csv", "");
  const std::string several = load_error(folder);
  EXPECT_NE(several.find("2 CSV files, ids.csv and others; name the one to use; --dataset folders"), std::string::npos)
      << several;
  folder.write("Ebay_train.txt", "");
  const std::string sop = load_error(folder);
  EXPECT_NE(sop.find("is taken for data set 'sop' because of its Ebay_train.txt"), std::string::npos) << sop;
}

TEST(Datasets, ARangeOfClassesIsNotEmpty) {
  EXPECT_FALSE(parse_class_range("5"));
  EXPECT_FALSE(parse_class_range("-1:5"));
  EXPECT_EQ(parse_class_range("5:6")->end, 6);
  for (const char* text : {"5:5", "6:5"}) {
    const std::string error = error_of(ErrorCode::usage, [&] { parse_class_range(text); });
    EXPECT_NE(error.find(std::string(text) + ": the range is empty"), std::string::npos) << error;
  }
}

TEST(Datasets, Csv) {
  TempFolder folder;
  const std::string header = "label,path,split,is_query,is_gallery,x_1,x_2,y_1,y_2\n";
  folder.write("df.csv",
               header + "3,a.jpg,train,,,1,11,2,22\n5,b.jpg,validation,True,False,,,,\n5,c.jpg,validation,0,1,,,,\n");
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "csv");
  EXPECT_EQ(data.items[0].box, (Region{1, 2, 10, 20}));
  EXPECT_TRUE(data.items[1].query && !data.items[1].gallery);
  EXPECT_TRUE(data.items[2].gallery && !data.items[2].query);
  const auto error = [&](const std::string& text) {
    folder.write("df.csv", text);
    return load_error(folder, "df.csv");
  };
  EXPECT_NE(error("label,path\n").find("no column 'split'"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,train,,,1,11,2,\n").find("df.csv:2: expected a box"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,train,,,11,1,2,9\n").find("x_1 < x_2"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,test,yes,,,,,\n").find("True, False"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,dev,,,,,,\n").find("split train or validation"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,test,1,0,,,,\n").find("label '3' is a query"), std::string::npos);
  EXPECT_NE(error(header + "3,a.jpg,train,,,,,,\n,b.jpg,train,,,,,,\n").find("df.csv:3: the label is empty"),
            std::string::npos);
  EXPECT_NE(error(header + "3,/etc/passwd,train,,,,,,\n").find("df.csv:2: an absolute path"), std::string::npos);
}

TEST(Datasets, Shards) {
  TempFolder folder;
  folder.write("a.tar", tar_of({{"train/x/1.png", bytes_of("1")}, {"test/y/1.png", bytes_of("22")}}));
  folder.write("b.tar", tar_of({{"train/x/2.png", bytes_of("333")}}));
  const Dataset data = load_dataset(folder.path());
  EXPECT_EQ(data.name, "shards");
  ASSERT_EQ(data.items.size(), 3U);
  Bytes bytes;
  data.read(data.items[2], bytes);
  EXPECT_EQ(bytes, bytes_of("333"));
  EXPECT_EQ(load_dataset(folder.path("b.tar")).items.size(), 1U);

  TempFolder web;
  web.write("s.tar", tar_of({{"0001.jpg", bytes_of("1")}, {"0001.cls", bytes_of("7\n")}, {"0002.jpg", bytes_of("1")}}));
  EXPECT_NE(load_error(web, "s.tar").find("'0002.jpg' has no class"), std::string::npos);
  web.write("s.tar", tar_of({{"0001.jpg", bytes_of("1")}, {"0001.cls", bytes_of("7\n")}}));
  EXPECT_EQ(load_dataset(web.path("s.tar")).class_names[0], "7");
}

TEST(Datasets, Omniglot) {
  const Dataset data = load_dataset(GLE_OMNIGLOT);
  EXPECT_EQ(data.train_items().size(), 2720U);
  EXPECT_EQ(data.query_items().size(), 2120U);
  EXPECT_EQ(data.train_classes, 136);
  EXPECT_EQ(data.class_names.size(), 242U);
  EXPECT_TRUE(data.warnings.empty());
  const CheckReport report = check_files(data, {});
  EXPECT_TRUE(report.broken.empty());
  EXPECT_EQ(report.png, 4840U);
  EXPECT_EQ(report.most_width, 105);
}

TEST(Datasets, RealCub) {
  const char* root = std::getenv("GLE_TEST_CUB");
  if (!root) {
    GTEST_SKIP() << "GLE_TEST_CUB is not set to the folder CUB_200_2011";
  }
  const Dataset data = load_dataset(root);
  EXPECT_EQ(data.train_items().size(), 5864U);
  EXPECT_EQ(data.query_items().size(), 5924U);
  EXPECT_TRUE(data.warnings.empty());
}

TEST(Datasets, RealMarket) {
  const char* root = std::getenv("GLE_TEST_MARKET");
  if (!root) {
    GTEST_SKIP() << "GLE_TEST_MARKET is not set to the folder of Market-1501";
  }
  const Dataset data = load_dataset(root);
  EXPECT_EQ(data.train_items().size(), 12936U);
  EXPECT_EQ(data.train_classes, 751);
  EXPECT_EQ(data.query_items().size(), 3368U);
  EXPECT_EQ(data.gallery_items().size(), 19732U - 3819U);
  EXPECT_TRUE(data.warnings.empty());
  ASSERT_EQ(data.notes.size(), 1U);
  EXPECT_NE(data.notes[0].find("3819 junk"), std::string::npos);
}

// What a name in a list can lead to.
TEST(Files, OnlyRegularFilesInsideTheFolder) {
  TempFolder outside;
  outside.write("secret.jpg", "s");
  TempFolder root;
  root.write("in/x.jpg", "x");
  std::filesystem::create_symlink(outside.path("secret.jpg"), root.path("link.jpg"));
  std::filesystem::create_symlink(outside.path(), root.path("folder"));
  std::filesystem::create_symlink(root.path("in/x.jpg"), root.path("inner.jpg"));
  std::filesystem::create_symlink("nowhere.jpg", root.path("dangling.jpg"));
  std::filesystem::create_directory(root.path("dir.jpg"));
  ASSERT_EQ(::mkfifo(root.path("fifo.jpg").c_str(), 0600), 0);
  const Folder folder(root.path());
  Bytes bytes;
  const auto error = [&](const std::string& name) {
    return error_of(ErrorCode::data, [&] { folder.read(name, 10, bytes); });
  };
  EXPECT_NE(error("link.jpg").find("leads out of the data set's folder"), std::string::npos);
  EXPECT_NE(error("folder/secret.jpg").find("leads out"), std::string::npos);
  EXPECT_NE(error("../x").find("climbs out"), std::string::npos);
  EXPECT_NE(error("in/../../x").find("climbs out"), std::string::npos);
  EXPECT_NE(error("/etc/passwd").find("absolute"), std::string::npos);
  EXPECT_NE(error("fifo.jpg").find("not a regular file"), std::string::npos);
  EXPECT_NE(error("dir.jpg").find("not a regular file"), std::string::npos);
  EXPECT_NE(error("gone.jpg").find("cannot be opened"), std::string::npos);
  EXPECT_NE(error("dangling.jpg").find("cannot be opened"), std::string::npos);
  EXPECT_NE(error("a\nb.jpg").find("control characters"), std::string::npos);
  folder.read("inner.jpg", 10, bytes);
  EXPECT_EQ(bytes, bytes_of("x"));
  EXPECT_NE(error_of(ErrorCode::data, [&] { folder.read("in/x.jpg", 0, bytes); }).find("limit"), std::string::npos);
  Folder(root.path(), Outside::allow).read("link.jpg", 10, bytes);
  EXPECT_EQ(bytes, bytes_of("s"));
}

TEST(Check, FindsBrokenAndDuplicateFiles) {
  TempFolder folder;
  folder.write("train/a/1.bmp", bmp_picture(8, 9, 1));
  folder.write("train/b/2.jpg", bmp_picture(8, 9, 1));
  folder.write("test/c/3.bmp", bmp_picture(8, 9, 1));
  folder.write("test/c/4.bmp", bmp_picture(20, 5, 2));
  folder.write("test/c/5.jpg", "<html>");
  const Dataset data = load_dataset(folder.path());
  const CheckReport report = check_files(data, {});
  ASSERT_EQ(report.broken.size(), 1U);
  EXPECT_NE(report.broken[0].reason.find("a web page"), std::string::npos);
  ASSERT_EQ(report.duplicates.size(), 1U);
  EXPECT_EQ(report.duplicates[0].items.size(), 3U);
  EXPECT_TRUE(report.duplicates[0].labels_differ);
  EXPECT_TRUE(report.duplicates[0].across_split);
  EXPECT_EQ(report.misnamed, 1U);
  EXPECT_EQ(report.least_height, 5);
  EXPECT_EQ(report.most_width, 20);
}

}  // namespace

}  // namespace gle::data::test
