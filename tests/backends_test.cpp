#include "engine/backends.h"

#include <gtest/gtest.h>

#include "engine/cuda/cuda.h"
#include "engine/error.h"

namespace gle {

namespace {

std::string description_of(const std::string& device) { return make_backend({.device = device})->description(); }

TEST(Backends, CpuIsTheCpu) {
  EXPECT_EQ(make_backend({.device = "cpu"})->device(), Device{});
  EXPECT_EQ(description_of("cpu").find('('), std::string::npos) << "no excuse where the CPU was asked for";
}

TEST(Backends, LimitAndThreadsReachTheBackend) {
  const auto backend = make_backend({.device = "cpu", .memory_limit = 1 << 20, .threads = 1});
  EXPECT_EQ(backend->allocator().limit(), size_t{1} << 20);
  EXPECT_NE(std::string(backend->description()).find("1 thread,"), std::string::npos);
}

TEST(Backends, AutoTakesTheGpuOrSaysWhyNot) {
  const cuda::Report report = cuda::report();
  const std::string description = description_of("auto");
  if (report.devices.empty()) {
    EXPECT_EQ(description.rfind("cpu, ", 0), 0U) << description;
    EXPECT_NE(description.find("(" + report.missing + ")"), std::string::npos) << description;
  } else {
    EXPECT_EQ(description.rfind("cuda:0, ", 0), 0U) << description;
  }
}

TEST(Backends, CudaWithoutGpuSaysHowToGoOn) {
  if (!cuda::report().devices.empty()) {
    EXPECT_EQ(make_backend({.device = "cuda"})->device(), (Device{Device::Kind::cuda, 0}));
    return;
  }
  try {
    (void)make_backend({.device = "cuda"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::runtime);
    EXPECT_NE(std::string(e.what()).find("--device cpu"), std::string::npos) << e.what();
  }
}

TEST(Backends, NoSuchDevice) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda1", "CPU", "cuda:99999999999"}) {
    SCOPED_TRACE(name);
    try {
      (void)make_backend({.device = name});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
    }
  }
}

}  // namespace

}  // namespace gle
