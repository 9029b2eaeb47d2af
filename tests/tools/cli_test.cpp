#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "engine/backends.h"
#include "engine/error.h"
#include "models/model_file.h"
#include "tests/expect_error.h"
#include "tools/cli/device.h"
#include "tools/cli/model.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signals.h"

namespace gle::tools::test {
namespace {

struct Outcome {
  int code;
  std::string out, error;
};

Outcome run(
    std::vector<std::string> arguments, const std::function<int()>& body = [] { return 0; }) {
  Program program("gle-test", "Tests the frame of a program.", "gle-test --number 3");
  int number = 7;
  std::string path;
  Verbosity verbosity;
  add_verbosity_options(program.options(), verbosity);
  program.options().add_option("--number", number, "a number")->option_text("N");
  program.options().add_option("PATH", path,
                               "a path whose description is so long that it has to go on in a second line");
  arguments.insert(arguments.begin(), "gle-test");
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = program.run(static_cast<int>(argv.size()), argv.data(), body);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Program, HelpFitsEightyColumnsAndEndsWithTheExampleAndExitCodes) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.error, "");
  const size_t example = help.out.find("example: gle-test --number 3");
  EXPECT_NE(example, std::string::npos);
  EXPECT_NE(help.out.find("\nexit codes: 0 done", example), std::string::npos);
  EXPECT_NE(help.out.find("--number N"), std::string::npos);
  EXPECT_NE(help.out.find("a number (7)"), std::string::npos);
  EXPECT_NE(help.out.find("--no-progress "), std::string::npos);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Program, ErrorsBecomeExitCodesAndOneLine) {
  EXPECT_EQ(run({"--version"}).code, 0);
  EXPECT_EQ(run({"--nosuch"}).code, 2);
  EXPECT_EQ(run({"--number", "x"}).code, 2);
  const Outcome data = run({}, []() -> int { fail(ErrorCode::data, "no images"); });
  EXPECT_EQ(data.code, 3);
  EXPECT_EQ(data.error, "gle-test: no images\n");
  EXPECT_EQ(run({}, []() -> int { throw std::bad_alloc(); }).code, 5);
  EXPECT_EQ(run({}, []() -> int { throw std::runtime_error("?"); }).code, 1);
  EXPECT_EQ(run({}, [] { return 75; }).code, 75);
}

TEST(Program, SizesInBytes) {
  EXPECT_EQ(parse_bytes("512"), 512U);
  EXPECT_EQ(parse_bytes("3KiB"), 3072U);
  EXPECT_EQ(parse_bytes("8GiB"), size_t{8} << 30U);
  for (const char* bad : {"", "GiB", "-1", "0", "1.5GiB", "8 GiB", "8GB", "99999999TiB"}) {
    EXPECT_ERROR(parse_bytes(bad), ErrorCode::usage, {bad});
  }
}

TEST(Progress, TellsTheEndInAPlainLine) {
  testing::internal::CaptureStderr();
  {
    Progress progress("embedding", 40, {});
    progress.update(40, "note");
  }
  Progress("silent", 3, {.quiet = true}).update(3);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("embedding: 100% 40/40"), std::string::npos) << text;
  EXPECT_NE(text.find("note"), std::string::npos) << text;
  EXPECT_EQ(text.find("silent"), std::string::npos) << text;
  EXPECT_EQ(clock_text(83), "01:23");
  EXPECT_EQ(clock_text(4000), "1:06:40");
}

TEST(StopSignals, TheFirstIsNotedAndTheSecondEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto raise_twice = [&] {
      watch_stop_signals();
      std::raise(signal);
      if (stop_signalled()) {
        std::raise(signal);
      }
    };
    EXPECT_EXIT(raise_twice(), testing::ExitedWithCode(128 + signal), "");
  }
}

TEST(StopSignals, AHangUpIsNotedHoweverOftenItComes) {
  const auto hang_up = [] {
    watch_stop_signals();
    std::raise(SIGHUP);
    std::raise(SIGHUP);
    std::_Exit(stop_signalled() ? kStoppedBySignal : 0);
  };
  EXPECT_EXIT(hang_up(), testing::ExitedWithCode(kStoppedBySignal), "");
}

TEST(StopSignals, UnderNohupAHangUpIsNone) {
  const auto hang_up = [] {
    std::signal(SIGHUP, SIG_IGN);
    watch_stop_signals();
    std::raise(SIGHUP);
    std::_Exit(stop_signalled() ? kStoppedBySignal : 0);
  };
  EXPECT_EXIT(hang_up(), testing::ExitedWithCode(0), "");
}

// --input for a model whose pictures are resized and then cut: the margin keeps its share.
TEST(OpenModel, AnotherInputSizeKeepsTheMargin) {
  const auto backend = make_backend(DeviceRequest{.device = "cpu"});
  Network network(*backend, {.name = "densenet_tiny", .head = {.classes = 2}});
  network.initialise(*backend, 1);
  const std::string path = testing::TempDir() + "margin.safetensors";
  const auto sizes = [&](const InputDescription& input) {
    const std::vector<std::byte> bytes = format_model(*backend, network, input);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return open_model(*backend, path, {.network = "", .input = "64x96"}).transform;
  };
  const data::TransformOptions stretched = sizes({.height = 32, .width = 32, .square = 40});
  EXPECT_EQ(stretched.size.width, 120);
  EXPECT_EQ(stretched.crop_size.height, 64);
  EXPECT_EQ(sizes({.height = 32, .width = 32, .short_side = 36}).short_side, 72);
  EXPECT_EQ(sizes({.height = 32, .width = 32}).size.width, 96);
  std::remove(path.c_str());
}

TEST(StopSignals, ACheckpointIsAskedForOnce) {
  watch_checkpoint_signal();
  EXPECT_FALSE(take_checkpoint_signal());
  std::raise(SIGUSR1);
  EXPECT_TRUE(take_checkpoint_signal());
  EXPECT_FALSE(take_checkpoint_signal());
}

}  // namespace
}  // namespace gle::tools::test
