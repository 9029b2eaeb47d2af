// The loader on a disk that is slow or does not answer: this program's read(2) waits for it.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "data/loader.h"
#include "tests/data/support.h"

namespace {

using namespace std::chrono_literals;

std::atomic<bool> stuck = false;                     // files named stuck.* do not answer
std::atomic<int> waiting = 0;                        // reads of them
std::atomic<std::chrono::milliseconds> delay = 0ms;  // of every picture

bool is_named(int file, std::string_view part) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return length > 0 && std::string_view(path, static_cast<size_t>(length)).find(part) != std::string_view::npos;
}

}  // namespace

extern "C" ssize_t read(int file, void* to, size_t bytes) {
  static const auto real = reinterpret_cast<ssize_t (*)(int, void*, size_t)>(::dlsym(RTLD_NEXT, "read"));
  if (stuck && is_named(file, "/stuck.")) {
    ++waiting;
    while (stuck) {
      std::this_thread::sleep_for(1ms);
    }
    --waiting;
  }
  if (delay.load() > 0ms && is_named(file, ".bmp")) {
    std::this_thread::sleep_for(delay.load());
  }
  return real(file, to, bytes);
}

namespace gle::data::test {

namespace {

using Clock = std::chrono::steady_clock;

class SlowDisk : public testing::Test {
 protected:
  SlowDisk() {
    for (const char* name : {"a", "b", "c", "stuck", "x", "y", "z"}) {
      folder.write(std::string("class/") + name + ".bmp", bmp_picture(20, 30, 1));
    }
    data = std::make_shared<const Dataset>(load_dataset(folder.path(), {.train_classes = ClassRange{0, 1}}));
    plan = plan_in_order(data->train_items(), 2);
  }
  ~SlowDisk() override { answer(); }

  void answer() {
    stuck = false;
    delay = 0ms;
    while (waiting > 0) {
      std::this_thread::sleep_for(1ms);
    }
  }

  LoaderOptions options_with(int workers) const {
    LoaderOptions options;
    options.workers = workers;
    options.patience = 1s;
    options.transform.size = {8, 8};
    return options;
  }
  int64_t images_of_an_epoch(Loader& loader) {
    loader.start(plan, 0);
    for (Batch batch; loader.next(batch);) {
    }
    return loader.statistics().images;
  }

  TempFolder folder;
  std::shared_ptr<const Dataset> data;
  EpochPlan plan;
};

TEST_F(SlowDisk, AFileThatDoesNotAnswerEndsTheRunAndIsNamed) {
  for (const int workers : {1, 3}) {
    stuck = true;
    Clock::time_point gone;
    {
      Loader loader(data, options_with(workers));
      const Clock::time_point begin = Clock::now();
      const std::string error = error_of(ErrorCode::io, [&] { images_of_an_epoch(loader); });
      EXPECT_NE(error.find("no image was read for 1 s; waiting for "), std::string::npos) << error;
      EXPECT_NE(error.find("class/stuck.bmp"), std::string::npos) << error;
      EXPECT_GE(Clock::now() - begin, 1s);
      EXPECT_LT(Clock::now() - begin, 10s);
      EXPECT_NE(error_of(ErrorCode::io, [&] { loader.start(plan, 1); }).find("class/stuck.bmp"), std::string::npos);
      gone = Clock::now();
    }
    // The thread that hangs is left behind; nobody waits for it.
    EXPECT_LT(Clock::now() - gone, 900ms);
    EXPECT_EQ(waiting, 1);
    answer();
  }
}

TEST_F(SlowDisk, WhatComesAfterAllIsRead) {
  stuck = true;
  Loader loader(data, options_with(2));
  error_of(ErrorCode::io, [&] { images_of_an_epoch(loader); });
  answer();
  EXPECT_EQ(images_of_an_epoch(loader), 7);
}

TEST_F(SlowDisk, SlowIsNotStuck) {
  delay = 250ms;
  Loader loader(data, options_with(1));
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(images_of_an_epoch(loader), 7);
  EXPECT_GE(Clock::now() - begin, 7 * 250ms);
  EXPECT_TRUE(loader.bad_images().empty());
  EXPECT_GE(loader.statistics().seconds_waiting, 1.5);
}

}  // namespace

}  // namespace gle::data::test
