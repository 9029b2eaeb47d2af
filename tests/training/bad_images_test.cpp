// Pictures that cannot be read, in training and in evaluations.
#include <algorithm>

#include "tests/training/small_run.h"

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::error_of;

class BadImages : public SmallTrainer {
 protected:
  // A picture that cannot be read; write_small_data() mends it.
  void damage(const std::string& picture) const { folder_.write("data/" + picture, "<html>"); }
  std::string bad_images(const std::string& run) const { return text_of(folder_.path(run) / "bad_images.csv"); }
};

TEST_F(BadImages, EvaluationsGoWithoutPicturesThatCannotBeRead) {
  config_.phase2.steps = 4;
  config_.data.max_bad = 0.1;
  const auto backend = make_cpu_backend({.threads = 1});
  const auto data = training_data(config_);
  Learner learner(*backend, config_, data->train_classes);
  learner.network().initialise(*backend, 1);
  const auto embedded = [&] {
    const auto list = std::make_shared<data::BadImageList>(*data, config_.data.max_bad);
    Evaluator evaluator(*backend, data, evaluation_options(config_, 1, nullptr, list));
    return *evaluator.embed(learner.network(), data->gallery_items(), {});
  };
  EmbeddedItems expected = embedded();
  ASSERT_EQ(expected.items.size(), 24U);
  damage("test/c9/2.bmp");
  const EmbeddedItems found = embedded();
  const auto bad =
      std::ranges::find_if(expected.items, [&](uint32_t item) { return data->items[item].path.ends_with("c9/2.bmp"); });
  ASSERT_NE(bad, expected.items.end());
  const auto values = expected.values.begin() + (bad - expected.items.begin()) * expected.dimensions;
  expected.values.erase(values, values + expected.dimensions);
  expected.labels.erase(expected.labels.begin() + (bad - expected.items.begin()));
  expected.items.erase(bad);
  EXPECT_EQ(found.items, expected.items);
  EXPECT_EQ(found.labels, expected.labels);
  EXPECT_EQ(found.values, expected.values);

  // Both phases: training, evaluations on either set, distances of the hard classes.
  damage("train/c0/0.bmp");
  std::string warnings;
  {
    const RunFolder folder(folder_.path("run"), RunFolder::Begin::fresh);
    const auto warn = [&](const std::string& text) { warnings += text + "\n"; };
    const Outcome outcome = Trainer(*backend, config_, data, &folder, {.threads = 1, .warn = warn}).run();
    ASSERT_TRUE(outcome.last.has_value());
    EXPECT_EQ(outcome.last->queries, 23);
  }
  for (const char* picture : {"test/c9/2.bmp", "train/c0/0.bmp"}) {
    EXPECT_NE(bad_images("run").find(picture), std::string::npos) << bad_images("run");
    const size_t told = warnings.find(picture);
    ASSERT_NE(told, std::string::npos) << warnings;
    EXPECT_EQ(warnings.find(picture, told + 1), std::string::npos) << warnings;
  }
  config_.data.max_bad = 0.02;
  EXPECT_NE(error_of(ErrorCode::data, [&] { run_small(config_, folder_.path("budget")); })
                .find("2 images cannot be read; the budget is 1 of 72"),
            std::string::npos);
  write_small_data(folder_);
  damage("test/c9/2.bmp");
  config_.data.on_bad = "error";
  EXPECT_NE(error_of(ErrorCode::data, [&] { run_small(config_, folder_.path("error")); }).find("c9/2.bmp"),
            std::string::npos);
}

TEST_F(BadImages, ACheckpointIsThereBeforeAnEvaluation) {
  config_.phase2.steps = 4;
  config_.data.on_bad = "error";
  run_small(config_, folder_.path("whole"));
  damage("test/c9/2.bmp");
  error_of(ErrorCode::data, [&] { run_small(config_, folder_.path("run")); });
  {
    const RunFolder folder(folder_.path("run"), RunFolder::Begin::resume);
    const auto checkpoint = folder.newest([](const std::string&) {});
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->state().position.step, 4);
    EXPECT_TRUE(checkpoint->state().position.evaluation_due);
  }
  write_small_data(folder_);
  run_small(config_, folder_.path("run"), {.resume = true});
  expect_same_end(folder_.path("whole"), folder_.path("run"));
}

TEST_F(BadImages, BadPicturesStayListedOverPhasesAndResumptions) {
  config_.data.max_bad = 1;
  config_.evaluation.on = "none";
  config_.phase1.steps = 4;  // an epoch
  config_.phase2 = {.steps = 1, .classes = 2, .samples = 2};
  config_.phase2.sampler = "classes";
  const auto damage_others = [&] {
    for (int c = 1; c < 8; ++c) {
      for (int i = 0; i < 5; ++i) {
        damage("train/c" + std::to_string(c) + "/" + std::to_string(i) + ".bmp");
      }
    }
  };
  damage("train/c0/0.bmp");
  run_small(config_, folder_.path("parts"), {.stop_after = 4});
  damage_others();
  run_small(config_, folder_.path("parts"), {.resume = true});

  write_small_data(folder_);
  damage("train/c0/0.bmp");
  {
    const auto backend = make_cpu_backend({.threads = 1});
    const RunFolder folder(folder_.path("whole"), RunFolder::Begin::fresh);
    const auto after = [&](const StepReport& report) {
      if (report.position.step == 4) {
        damage_others();
      }
    };
    Trainer(*backend, config_, training_data(config_), &folder, {.threads = 1, .on_step = after}).run();
  }
  const std::string list = bad_images("whole");
  EXPECT_GE(std::ranges::count(list, '\n'), 3) << list;
  EXPECT_NE(list.find("train/c0/0.bmp"), std::string::npos) << list;
  EXPECT_EQ(bad_images("parts"), list);
}

TEST_F(BadImages, TheBudgetOfBadPicturesHoldsOverResumptionsUntilTheyAreMended) {
  const auto data = training_data(config_);
  const auto bad = [&](const std::string& picture) {
    const auto found = std::ranges::find_if(data->items, [&](const auto& item) { return item.path == picture; });
    EXPECT_NE(found, data->items.end()) << picture;
    return std::vector<data::BadImage>{
        {static_cast<uint32_t>(found - data->items.begin()), picture + ": bad, \"bad\""}};
  };
  const fs::path file = folder_.path("bad_images.csv");
  constexpr double kOne = 0.02;
  damage("train/c1/0.bmp");
  damage("train/c0/3.bmp");
  data::BadImageList(*data, kOne, file).add(bad("train/c1/0.bmp"));
  data::BadImageList resumed(*data, kOne, file);
  resumed.read_back({});
  ASSERT_EQ(resumed.count(), 1U);
  EXPECT_EQ(resumed.images()[0].item, bad("train/c1/0.bmp")[0].item);
  EXPECT_EQ(resumed.images()[0].reason, bad("train/c1/0.bmp")[0].reason);
  EXPECT_NO_THROW(resumed.add(bad("train/c1/0.bmp")));
  EXPECT_NE(error_of(ErrorCode::data, [&] { resumed.add(bad("train/c0/3.bmp")); })
                .find("2 images cannot be read; the budget is 1 of 72"),
            std::string::npos);
  data::BadImageList again(*data, kOne, file);
  again.read_back({});
  EXPECT_EQ(again.count(), 2U);
  error_of(ErrorCode::data, [&] { again.add(bad("train/c1/0.bmp")); });

  write_small_data(folder_);
  damage("train/c0/3.bmp");
  data::BadImageList mended(*data, kOne, file);
  mended.read_back({});
  EXPECT_EQ(mended.count(), 1U);
  EXPECT_NO_THROW(mended.add(bad("train/c0/3.bmp")));
  folder_.write("bad_images.csv", "some,thing\nelse,\n");
  EXPECT_NE(error_of(ErrorCode::data, [&] { mended.read_back({}); }).find("no columns path and reason"),
            std::string::npos);
}

}  // namespace

}  // namespace gle::test
