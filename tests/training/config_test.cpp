#include "training/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "engine/error.h"
#include "tests/data/support.h"
#include "tools/cli/config_file.h"
#include "training/recipe.h"

namespace gle::test {

namespace {

using data::test::error_of;
using tools::read_config;

std::string usage_error(const std::string& toml) {
  return error_of(ErrorCode::usage, [&] {
    TrainingConfig config;
    read_config(config, toml, "run.toml");
  });
}

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' does not say '" << part << "'";
}

// Another value of the same type that the key allows.
ConfigValue another(const TrainingConfig& config, const ConfigKey& key) {
  ConfigValue value = value_of(config, key);
  if (auto* flag = std::get_if<bool>(&value)) {
    *flag = !*flag;
  } else if (auto* whole = std::get_if<int64_t>(&value)) {
    *whole = static_cast<double>(*whole + 1) <= key.most ? *whole + 1 : *whole - 1;
  } else if (auto* real = std::get_if<double>(&value)) {
    *real = *real / 2 + 1e-3 >= key.least && *real != *real / 2 + 1e-3 ? *real / 2 + 1e-3 : 0.25;
  } else if (auto* text = std::get_if<std::string>(&value)) {
    *text = key.choices.empty()           ? "a \"quoted\"\\\n\x01 text"
            : key.choices.back() == *text ? key.choices[0]
                                          : key.choices.back();
  } else {
    value = std::vector<double>{2, 5.5};
  }
  return value;
}

TEST(Config, EveryKeyGoesThroughAFile) {
  TrainingConfig config;
  std::set<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " is there twice";
    EXPECT_FALSE(key.meaning.empty() || key.meaning.find('|') != std::string::npos)
        << key.name << ": a line for a table";
    set_value(config, key, another(config, key), "test");
  }
  TrainingConfig read;
  read_config(read, toml_of(config, Comments::meanings), "run.toml");
  const TrainingConfig defaults;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_EQ(value_of(read, key), value_of(config, key)) << key.name;
    EXPECT_NE(value_of(read, key), value_of(defaults, key)) << key.name;
  }
  EXPECT_EQ(toml_of(read, Comments::none), toml_of(config, Comments::none));
}

TEST(Config, EveryKeyGoesThroughTextAndEnvironment) {
  TrainingConfig from_text;
  TrainingConfig from_environment;
  for (const ConfigKey& key : config_keys()) {
    const ConfigValue value = another({}, key);
    const auto* text = std::get_if<std::string>(&value);
    const std::string written = text ? *text : toml_of(value);
    set_text(from_text, key, written, "--set");
    ASSERT_EQ(::setenv(environment_name(key).c_str(), written.c_str(), 1), 0);
    tools::read_config_environment(from_environment);
    ::unsetenv(environment_name(key).c_str());
    EXPECT_EQ(value_of(from_text, key), value) << key.name;
    EXPECT_EQ(value_of(from_environment, key), value) << key.name;
  }
}

TEST(Config, MistakesAreNamedWithTheirPlace) {
  expect_says(usage_error("[phase2]\nlearning_rat = 1"),
              "run.toml:2: there is no key 'phase2.learning_rat'; did you "
              "mean 'phase2.learning_rate'?");
  expect_says(usage_error("[phase3]\nepochs = 1"), "did you mean 'phase1.epochs'?");
  expect_says(usage_error("[fase1]"), "there is no key 'fase1.'");
  expect_says(usage_error("seed = 1"), "'seed' stands outside of any section");
  expect_says(usage_error("[phase1]\n\nepochs = \"ten\""),
              "run.toml:3: phase1.epochs is \"ten\"; expected a whole number");
  expect_says(usage_error("[phase1]\nepochs = 1.5"), "expected a whole number");
  expect_says(usage_error("[phase1]\nepochs = -1"), "phase1.epochs is -1; expected 0 to 1e+09");
  expect_says(usage_error("[phase1]\nbeta2 = 1"), "phase1.beta2 is 1; expected 0 to 0.999999999");
  expect_says(usage_error("[phase1]\nbeta2 = 0.9999999999"), "phase1.beta2 is 0.9999999999; expected");
  expect_says(usage_error("[phase1]\nlearning_rate = true"), "phase1.learning_rate is true; expected a number");
  expect_says(usage_error("[phase1]\nlearning_rate = nan"), "phase1.learning_rate is nan");
  expect_says(usage_error("[phase1]\naugment = 1"), "expected true or false");
  expect_says(usage_error("[phase1]\ndrops = 3"), "expected a list of numbers");
  expect_says(usage_error("[phase1]\ndrops = [1, \"x\"]"), "expected a list of numbers");
  expect_says(usage_error("[phase1]\noptimiser = \"radm\""),
              "expected one of radam, adam, adamw, sgd (did you mean "
              "'radam'?)");
  expect_says(usage_error("[phase1]\nepochs = 1979-05-27"), "phase1.epochs");
  expect_says(usage_error("[phase1\n"), "run.toml:1");
  TrainingConfig config;
  const auto setting = [&](const std::string& text) {
    return error_of(ErrorCode::usage, [&] { tools::read_config_settings(config, {text}); });
  };
  expect_says(setting("phase1.epochs"), "expected section.key=value");
  expect_says(setting("phase1.epochs=x"), "--set: phase1.epochs is 'x'; expected a whole number");
  expect_says(setting("phase1.drops=1,x"), "expected a list of numbers");
  expect_says(setting("phase1.drps=1"), "did you mean 'phase1.drops'?");
  expect_says(error_of(ErrorCode::usage, [&] { tools::read_config_file(config, "nosuch.toml"); }), "nosuch.toml");
}

TEST(Config, KeysThatContradictEachOther) {
  const auto check_text = [](const std::string& toml) {
    TrainingConfig config;
    read_config(config, "[data]\npath = \"x\"\n" + toml, "run.toml");
    check(config);
  };
  const auto error = [&](const std::string& toml) { return error_of(ErrorCode::usage, [&] { check_text(toml); }); };
  expect_says(error("[phase1]\nepochs = 0\n[phase2]\nepochs = 0"), "there is nothing to do");
  expect_says(error("[phase2]\nsampler = \"shuffled\""), "group_loss compares pictures of a class");
  const std::string head_alone = "[phase2]\nloss = \"triplet_hard\"\nbackbone_rate = 0\n";
  expect_says(error(head_alone), "nothing would learn");
  EXPECT_NO_THROW(check_text(head_alone + "[loss]\ncross_entropy_weight = 1"));
  expect_says(error("[phase1]\nbackbone_rate = 0\n[phase2]\nfresh_optimiser = false"), "needs moments of the backbone");
  expect_says(error("[phase2]\ndrops = [3]"), "drops go with decay");
  expect_says(error("[phase2]\nreload_best_at_drop = true"), "needs drops");
  expect_says(error("[input]\nresize_to = 100"), "smaller than the input");
  expect_says(error("[input]\nresize = \"short_side\""), "needs resize_to");
  expect_says(error("[augment]\ngeometry = \"random_resized_crop\"\npad = 4"), "pad goes with");
  expect_says(error_of(ErrorCode::usage, [] { check(TrainingConfig{}); }), "data: path is empty");
}

TEST(Config, AResumedRunKeepsWhatMatters) {
  const TrainingConfig before;
  TrainingConfig config = before;
  config.data.workers = 7;
  config.phase2.epochs = 99;
  EXPECT_NO_THROW(require_resumable(config, before, 1));
  config.phase1.epochs = 98;
  EXPECT_NO_THROW(require_resumable(config, before, 0));
  expect_says(error_of(ErrorCode::usage, [&] { require_resumable(config, before, 1); }), "phase1.epochs is 98 here");
  config.phase2.learning_rate = 0.5;
  expect_says(error_of(ErrorCode::usage, [&] { require_resumable(config, before, 0); }),
              "phase2.learning_rate is 0.5 here and 2e-04 in the run");
}

TEST(Config, TheShippedOnesMakeSense) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GLE_CONFIGS)) {
    if (entry.path().extension() != ".toml" || entry.path().filename().string().starts_with("tune-")) {
      continue;  // search_test has those
    }
    TrainingConfig config;
    tools::read_config_file(config, entry.path());
    config.data.path = "somewhere";
    EXPECT_NO_THROW(check(config)) << entry.path();
    EXPECT_NO_THROW(network_options(config, 10));
    ++count;
  }
  EXPECT_EQ(count, 17);
  TrainingConfig paper;
  tools::read_config_file(paper, std::string(GLE_CONFIGS) + "/cub-paper.toml");
  EXPECT_EQ(test_transform(paper).output(), (data::Size{227, 227}));
  EXPECT_EQ(batch_size(paper.phase2), 54);
  const Schedule schedule = schedule_of(paper.phase2, 100, 6000);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 2999), 2e-4F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 3000), 2e-5F);
  const GroupLossOptions loss = loss_settings(paper).group;
  EXPECT_EQ(loss.refinement.temperature, 24);
  EXPECT_EQ(loss.anchors_per_class, 2);
}

TEST(Config, VariantsOfRunsMakeSense) {
  const std::string folder = std::string(GLE_CONFIGS) + "/runs/";
  std::ifstream file(folder + "variants.txt");
  std::map<std::string, TrainingConfig> before;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("#")) {
      continue;
    }
    std::istringstream words(line);
    std::string name, base;
    words >> name >> base;
    std::vector<std::string> settings{std::istream_iterator<std::string>(words), {}};
    EXPECT_FALSE(settings.empty()) << name;
    std::erase_if(settings, [&](const std::string& setting) {
      const bool start = setting.starts_with("from=");
      EXPECT_TRUE(!start || setting == "from=scratch" || before.contains(setting.substr(5)))
          << name << " begins with a run that is not above it";
      return start;
    });
    TrainingConfig config;
    if (before.contains(base)) {
      config = before[base];
    } else {
      tools::read_config_file(config, folder + base + ".toml");
    }
    tools::read_config_settings(config, settings);
    config.data.path = "somewhere";
    EXPECT_NO_THROW(check(config)) << name;
    EXPECT_TRUE(before.emplace(name, config).second) << name << " is there twice";
  }
  EXPECT_FALSE(before.empty());
}

}  // namespace

}  // namespace gle::test
