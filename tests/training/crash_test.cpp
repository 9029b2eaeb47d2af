// gle-train as a process that is killed, or whose every write, sync and rename may fail: there is always a checkpoint
// to go on from, and the run ends in the same bits.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "tests/training/small_run.h"

extern char** environ;

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::TempFolder;

// A started gle-train; its output goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
          const fs::path& output) {
    std::vector<std::string> variables;
    for (char** e = environ; *e; ++e) {
      variables.emplace_back(*e);
    }
    for (const auto& [name, value] : environment) {
      variables.push_back(name + "=" + value);
    }
    std::vector<char*> argv = {const_cast<char*>(GLE_TRAIN)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& variable : variables) {
      envp.push_back(variable.data());
    }
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(posix_spawn(&process_, GLE_TRAIN, &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  // The exit code, or 128 + the signal.
  int wait() const {
    int status = 0;
    waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill(int signal) const { ::kill(process_, signal); }

 private:
  pid_t process_ = 0;
};

class Crash : public testing::Test {
 protected:
  void SetUp() override {
    write_small_data(folder_);
    config_ = small_config(folder_);
    config_.run.checkpoint_steps = 1;
    folder_.write("config.toml", toml_of(config_, Comments::none));
    ASSERT_EQ(train("whole"), 0) << output();
  }
  std::vector<std::string> arguments(const std::string& run) const {
    return {"--config",  folder_.path("config.toml").string(),
            "--out",     folder_.path(run).string(),
            "--resume",  "auto",
            "--threads", "1",
            "--quiet"};
  }
  Process start(const std::string& run, const std::map<std::string, std::string>& environment = {}) const {
    return {arguments(run), environment, folder_.path("output")};
  }
  int train(const std::string& run, const std::map<std::string, std::string>& environment = {}) const {
    return start(run, environment).wait();
  }
  std::map<std::string, std::string> faults(const std::string& run, const std::string& kind, long at) const {
    return {{"LD_PRELOAD", GLE_FAULTS},
            {"GLE_FAULT_FOLDER", folder_.path(run).string()},
            {"GLE_FAULT_ERRNO", kind},
            {"GLE_FAULT_AT", std::to_string(at)},
            {"GLE_FAULT_COUNT", folder_.path("count").string()}};
  }
  std::string output() const { return text_of(folder_.path("output")); }
  void copy(const std::string& from, const std::string& to) const {
    fs::remove_all(folder_.path(to));
    fs::copy(folder_.path(from), folder_.path(to), fs::copy_options::recursive);
  }

  TempFolder folder_;
  TrainingConfig config_;
};

TEST_F(Crash, KilledAtRandomMoments) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(train("timed"), 0);
  const auto length = std::chrono::steady_clock::now() - begin;
  std::mt19937 random(1);
  int killed = 0;
  for (int i = 0; i < 200 && killed < 25; ++i) {
    const Process process = start("killed");
    std::this_thread::sleep_for(length * (random() % 1000) / 1000);
    process.kill(SIGKILL);
    killed += process.wait() == 128 + SIGKILL ? 1 : 0;
    if (fs::exists(folder_.path("killed/checkpoints/last.gle")) && random() % 4 == 0) {
      // From the beginning again, so that the kills reach all parts of a run.
      ASSERT_EQ(train("killed"), 0) << output();
      expect_same_end(folder_.path("whole"), folder_.path("killed"));
      fs::remove_all(folder_.path("killed"));
    }
  }
  EXPECT_EQ(killed, 25);
  ASSERT_EQ(train("killed"), 0) << output();
  expect_same_end(folder_.path("whole"), folder_.path("killed"));
}

TEST_F(Crash, KilledBeforeTheLastCheckpointHadItsName) {
  fs::remove(folder_.path("whole/checkpoints/last.gle"));
  ASSERT_EQ(train("whole"), 0) << output();
  ASSERT_EQ(train("other"), 0) << output();
  expect_same_end(folder_.path("other"), folder_.path("whole"));
}

TEST_F(Crash, KilledInsideASave) {
  ASSERT_EQ(train("counted", faults("counted", "kill", 0)), 0);
  const long calls = std::stol(text_of(folder_.path("count")));
  ASSERT_GT(calls, 400);
  std::mt19937 random(2);
  int torn = 0;
  for (int i = 0; i < 12; ++i) {
    fs::remove_all(folder_.path("killed"));
    ASSERT_EQ(train("killed", faults("killed", "kill", 1 + static_cast<long>(random()) % calls)), 128 + SIGKILL);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path("killed"))) {
      torn += entry.path().extension() == ".tmp" ? 1 : 0;
    }
    ASSERT_EQ(train("killed"), 0) << output();
    expect_same_end(folder_.path("whole"), folder_.path("killed"));
  }
  EXPECT_GT(torn, 3) << "too few kills met a half-written file";
}

TEST_F(Crash, AFaultAtAnyCallLeavesAWholeCheckpoint) {
  // From a run that has three steps left: saves, logs, the last evaluation, a new best.
  config_.run.checkpoint_steps = 1;
  run_small(config_, folder_.path("stopped"), {.stop_after = 37});
  copy("stopped", "counted");
  ASSERT_EQ(train("counted", faults("counted", "5", 0)), 0) << output();
  const long calls = std::stol(text_of(folder_.path("count")));
  ASSERT_GT(calls, 60);
  ASSERT_LT(calls, 400);
  const std::string kinds[] = {std::to_string(ENOSPC), std::to_string(EIO), "short", std::to_string(EDQUOT)};
  int failed = 0;
  for (long at = 1; at <= calls; ++at) {
    const std::string& kind = kinds[at % 4];
    copy("stopped", "run");
    const int code = train("run", faults("run", kind, at));
    ASSERT_TRUE(code == 0 || code == 6) << "call " << at << " with " << kind << " ended in " << code << ": "
                                        << output();
    failed += code == 6 ? 1 : 0;
    const RunFolder run(folder_.path("run"), RunFolder::Begin::resume);
    const auto checkpoint = run.newest([](const std::string&) {});
    ASSERT_TRUE(checkpoint);
    ASSERT_GE(checkpoint->state().position.step, 37);
    if (at % 5 == 0) {
      const auto backend = make_cpu_backend({.threads = 1});
      Trainer trainer(*backend, config_, training_data(config_), &run, {.threads = 1});
      trainer.resume(*checkpoint);
      trainer.run();
      expect_same_end(folder_.path("whole"), folder_.path("run"));
    }
  }
  EXPECT_GT(failed, calls / 3);
}

}  // namespace

}  // namespace gle::test
