#include "data/loader.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "engine/cpu/cpu.h"
#include "tests/data/support.h"
#include "tests/expect_error.h"

namespace gle::data::test {

namespace {

// Eight classes of six pictures of different sizes.
void write_pictures(const TempFolder& folder) {
  for (uint32_t c = 0; c < 8; ++c) {
    for (uint32_t i = 0; i < 6; ++i) {
      folder.write("class" + std::to_string(c) + "/" + std::to_string(i) + ".bmp",
                   bmp_picture(static_cast<int>(20 + c), static_cast<int>(30 + i), c * 100 + i));
    }
  }
}

std::shared_ptr<const Dataset> dataset(const TempFolder& folder) {
  return std::make_shared<const Dataset>(load_dataset(folder.path(), {.train_classes = ClassRange{0, 8}}));
}

LoaderOptions options_with(int workers) {
  LoaderOptions options;
  options.workers = workers;
  options.seed = 11;
  options.max_bad = 1;
  options.transform.geometry = Geometry::random_resized_crop;
  options.transform.size = {17, 15};
  options.transform.mirror = 0.5;
  options.transform.erase = 0.5;
  options.transform.colours = kImageNetColours;
  return options;
}

// Everything that a batch is, as text and bytes.
std::string bytes_of_batch(const Batch& batch) {
  std::string all = std::to_string(batch.index);
  const auto add = [&](const void* data, size_t bytes) { all.append(static_cast<const char*>(data), bytes); };
  add(batch.labels.data(), batch.labels.size() * 4);
  add(batch.items.data(), batch.items.size() * 4);
  add(batch.images.data(), static_cast<size_t>(batch.images.elements()) * 4);
  return all;
}

std::vector<std::string> epoch_of(Loader& loader, const EpochPlan& plan, uint64_t epoch, int64_t first = 0) {
  std::vector<std::string> batches;
  loader.start(plan, epoch, first);
  for (Batch batch; loader.next(batch);) {
    batches.push_back(bytes_of_batch(batch));
  }
  return batches;
}

TEST(Loader, SameBitsWithAnyWorkersCacheAndResume) {
  TempFolder folder;
  write_pictures(folder);
  const auto data = dataset(folder);
  const ClassMembers members = train_members(*data);
  const auto plan_of = [&](uint64_t epoch) { return plan_classes(members, {4, 2}, 11, epoch); };
  Loader plain(data, options_with(0));
  const auto expected = epoch_of(plain, plan_of(3), 3);
  ASSERT_EQ(expected.size(), 6U);
  EXPECT_NE(expected, epoch_of(plain, plan_of(3), 4));
  for (const int workers : {0, 1, 3}) {
    for (const size_t cache : {size_t{0}, size_t{20000}, size_t{1} << 30}) {
      LoaderOptions options = options_with(workers);
      options.cache_bytes = cache;
      options.prefetch = 1 + workers;
      Loader loader(data, options);
      EXPECT_EQ(epoch_of(loader, plan_of(2), 2).size(), 6U);
      EXPECT_EQ(epoch_of(loader, plan_of(3), 3), expected) << workers << " workers, cache " << cache;
      for (size_t first = 0; first <= expected.size(); ++first) {
        const std::vector<std::string> rest(expected.begin() + static_cast<std::ptrdiff_t>(first), expected.end());
        EXPECT_EQ(epoch_of(loader, plan_of(3), 3, static_cast<int64_t>(first)), rest);
      }
      EXPECT_EQ(loader.statistics().cache_hits > 0, cache > 0);
      EXPECT_LE(loader.statistics().cached_bytes, cache);
    }
  }
}

// Mirrored, turned, padded, in either order of colours: what is left for the device gives the same bits.
TEST(Loader, PartsOfABatchAreWhatTheWholeHasThere) {
  TempFolder folder;
  write_pictures(folder);
  const auto data = dataset(folder);
  const EpochPlan plan = plan_classes(train_members(*data), {4, 2}, 11, 3);
  Loader whole(data, options_with(0));
  whole.start(plan, 3);
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int part = 0; part < 4; ++part) {
    LoaderOptions options = options_with(1);
    options.part = part;
    options.parts = 4;
    loaders.push_back(std::make_unique<Loader>(data, options));
    loaders.back()->start(plan, 3);
  }
  for (Batch all; whole.next(all);) {
    EXPECT_EQ(all.all_labels, all.labels);
    for (size_t part = 0; part < loaders.size(); ++part) {
      Batch own;
      ASSERT_TRUE(loaders[part]->next(own));
      EXPECT_EQ(own.all_labels, all.labels);
      ASSERT_EQ(own.items.size(), 2U);
      const auto elements = static_cast<size_t>(own.images.elements());
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(own.items[i], all.items[2 * part + i]);
        EXPECT_EQ(own.labels[i], all.labels[2 * part + i]);
      }
      EXPECT_EQ(std::memcmp(own.images.data(), all.images.data() + part * elements, elements * sizeof(float)), 0);
    }
  }
  LoaderOptions options = options_with(0);
  options.parts = 3;
  Loader thirds(data, options);
  EXPECT_ERROR(thirds.start(plan, 3), ErrorCode::usage, {"batches of 8", "3 equal parts"});
}

TEST(Loader, BytesBecomeTheSameNumbers) {
  TempFolder folder;
  write_pictures(folder);
  const auto data = dataset(folder);
  const auto backend = make_cpu_backend({.threads = 1});
  for (const Colours& colours : {kImageNetColours, kBnInceptionColours}) {
    for (const int pad : {0, 3}) {
      LoaderOptions options = options_with(1);
      options.transform.colours = colours;
      options.transform.pad = pad;
      options.transform.turn = pad;
      options.transform.erase_value = 0.25F;
      Loader numbers(data, options);
      options.pixels = Pixels::bytes;
      Loader bytes(data, options);
      const EpochPlan plan = plan_classes(train_members(*data), {4, 2}, 11, 2);
      numbers.start(plan, 2);
      bytes.start(plan, 2);
      for (Batch expected, batch; numbers.next(expected);) {
        ASSERT_TRUE(bytes.next(batch));
        ASSERT_EQ(batch.images.type(), DType::u8);
        EXPECT_EQ(batch.items, expected.items);
        const Tensor found = backend->new_tensor("test", batch.images.shape());
        backend->images_from_bytes(batch.images, options.transform.scale(), batch.erased, found);
        ASSERT_EQ(std::memcmp(found.data(), expected.images.data(), static_cast<size_t>(found.elements()) * 4), 0);
      }
      options.transform.erase = 0;
      Loader whole(data, options);
      whole.start(plan, 2);
      Batch batch;
      ASSERT_TRUE(whole.next(batch));
      EXPECT_FALSE(batch.erased);
    }
  }
}

TEST(Loader, StartInTheMiddleOfAnEpochDropsTheRest) {
  TempFolder folder;
  write_pictures(folder);
  const auto data = dataset(folder);
  const EpochPlan plan = plan_classes(train_members(*data), {4, 2}, 1, 0);
  Loader loader(data, options_with(3));
  Loader plain(data, options_with(0));
  const auto expected = epoch_of(plain, plan, 0);
  for (int i = 0; i < 20; ++i) {
    loader.start(plan, 5);
    Batch batch;
    ASSERT_TRUE(loader.next(batch));
    EXPECT_EQ(epoch_of(loader, plan, 0), expected);
  }
}

TEST(Loader, QuarantineReplacesAndLists) {
  TempFolder folder;
  write_pictures(folder);
  folder.write("class0/0.bmp", "<html>");
  folder.write("class0/1.bmp", "");
  const Bytes cut = bmp_picture(20, 30, 1);
  folder.write("class2/3.bmp", std::span(cut).first(500));
  std::filesystem::remove(folder.path("class5/5.bmp"));
  ASSERT_EQ(::mkfifo(folder.path("class5/5.bmp").c_str(), 0600), 0);
  const auto data = dataset(folder);
  ASSERT_EQ(data->items.size(), 48U);
  // Gone between the scan and the read.
  std::filesystem::remove(folder.path("class7/0.bmp"));
  const EpochPlan plan = plan_in_order(data->train_items(), 8);
  std::vector<std::string> expected;
  for (const int workers : {0, 1, 3}) {
    TempFolder out;
    LoaderOptions options = options_with(workers);
    options.bad_images = out.path("bad_images.csv");
    Loader loader(data, options);
    const auto batches = epoch_of(loader, plan, 1);
    expected = expected.empty() ? batches : expected;
    EXPECT_EQ(batches, expected);
    EXPECT_EQ(epoch_of(loader, plan, 1), expected);
    ASSERT_EQ(loader.bad_images().size(), 5U);
    EXPECT_NE(loader.bad_images()[0].reason.find("a web page"), std::string::npos);
    EXPECT_NE(loader.bad_images()[3].reason.find("not a regular file"), std::string::npos);
    EXPECT_NE(loader.bad_images()[4].reason.find("cannot be opened"), std::string::npos);
    std::ifstream list(options.bad_images);
    std::string line;
    std::getline(list, line);
    EXPECT_EQ(line, "path,reason");
    std::getline(list, line);
    EXPECT_TRUE(line.starts_with("class0/0.bmp,")) << line;
    loader.start(plan, 1);
    Batch batch;
    ASSERT_TRUE(loader.next(batch));
    EXPECT_EQ(batch.items[0], 2U);  // the next good one of its class
    EXPECT_EQ(batch.items[1], 2U);
    EXPECT_EQ(batch.labels[0], 0);
  }
}

TEST(Loader, OverBudgetIsADataErrorWithTheList) {
  TempFolder folder;
  write_pictures(folder);
  folder.write("class3/0.bmp", "");
  const auto data = dataset(folder);
  for (const int workers : {0, 2}) {
    LoaderOptions options = options_with(workers);
    options.max_bad = 0.001;
    Loader loader(data, options);
    const std::string error =
        error_of(ErrorCode::data, [&] { epoch_of(loader, plan_in_order(data->train_items(), 8), 0); });
    EXPECT_NE(error.find("1 images cannot be read; the budget is 0 of 48"), std::string::npos) << error;
    EXPECT_NE(error.find("gle-data check DATA finds them all), or raise data.max_bad"), std::string::npos) << error;
    EXPECT_NE(error.find("class3/0.bmp: an empty file"), std::string::npos);
    options.on_bad = OnBad::error;
    Loader strict(data, options);
    EXPECT_NE(error_of(ErrorCode::data, [&] { epoch_of(strict, plan_in_order(data->train_items(), 8), 0); })
                  .find("class3/0.bmp: an empty file"),
              std::string::npos);
  }
}

TEST(Loader, AClassWithoutOneGoodImageIsAnError) {
  TempFolder folder;
  write_pictures(folder);
  for (int i = 0; i < 6; ++i) {
    folder.write("class1/" + std::to_string(i) + ".bmp", "");
  }
  const auto data = dataset(folder);
  Loader loader(data, options_with(2));
  const std::string error =
      error_of(ErrorCode::data, [&] { epoch_of(loader, plan_in_order(data->train_items(), 8), 0); });
  EXPECT_NE(error.find(".bmp: an empty file"), std::string::npos) << error;
  EXPECT_NE(error.find("; class 'class1' has no readable training image"), std::string::npos) << error;
}

TEST(Loader, CountsWhatItDoes) {
  TempFolder folder;
  write_pictures(folder);
  const auto data = dataset(folder);
  LoaderOptions options = options_with(2);
  Loader loader(data, options);
  const EpochPlan plan = plan_in_order(data->train_items(), 8);
  epoch_of(loader, plan, 0);
  EXPECT_EQ(loader.statistics().images, 48);
  EXPECT_GT(loader.statistics().bytes_read, 48 * 1000);
  EXPECT_NE(error_of(ErrorCode::usage, [&] { loader.start(plan, 0, 7); }).find("batch 7 of an epoch of 6"),
            std::string::npos);
}

}  // namespace

}  // namespace gle::data::test
