#include "engine/thread_count.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/cpu/cpu.h"
#include "tests/expect_error.h"

namespace gle {
namespace {

class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"GLE_NUM_THREADS", "OMP_NUM_THREADS", "GLE_ISA"}) {
      unsetenv(name);
    }
  }
  void TearDown() override { SetUp(); }
};

TEST_F(EnvironmentTest, WantedThreadsWin) {
  setenv("GLE_NUM_THREADS", "5", 1);
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_EQ(thread_count(1024), 1024);
}

TEST_F(EnvironmentTest, OwnVariableComesBeforeOpenMps) {
  setenv("OMP_NUM_THREADS", "7", 1);
  EXPECT_EQ(thread_count(0), 7);
  setenv("GLE_NUM_THREADS", "5", 1);
  EXPECT_EQ(thread_count(0), 5);
  setenv("GLE_NUM_THREADS", "", 1);
  EXPECT_EQ(thread_count(0), 7);
}

TEST_F(EnvironmentTest, FirstOfAnOpenMpListCounts) {
  setenv("OMP_NUM_THREADS", "4,2", 1);
  EXPECT_EQ(thread_count(0), 4);
}

TEST_F(EnvironmentTest, WithoutVariablesThereIsAtLeastOneThread) {
  EXPECT_GE(thread_count(0), 1);
  EXPECT_LE(thread_count(0), 1024);
}

TEST_F(EnvironmentTest, BadNumbersAreErrors) {
  for (const char* text : {"0", "-1", "many", "3x", "1025", "99999999999", " 2", "1.5", "2,1"}) {
    setenv("GLE_NUM_THREADS", text, 1);
    EXPECT_ERROR(thread_count(0), ErrorCode::usage, {"GLE_NUM_THREADS", text, "1 to 1024"});
  }
  EXPECT_ERROR(thread_count(-1), ErrorCode::usage, {"threads", "-1"});
  EXPECT_ERROR(thread_count(1025), ErrorCode::usage, {"threads", "1025"});
}

TEST_F(EnvironmentTest, BackendTakesThreadsAndInstructionSetFromIt) {
  setenv("GLE_NUM_THREADS", "3", 1);
  setenv("GLE_ISA", "baseline", 1);
  const std::string text = make_cpu_backend()->description();
  EXPECT_NE(text.find("3 threads"), std::string::npos) << text;
  EXPECT_NE(text.find("baseline"), std::string::npos) << text;
}

TEST_F(EnvironmentTest, UnknownInstructionSetIsAnError) {
  setenv("GLE_ISA", "mmx", 1);
  EXPECT_ERROR(make_cpu_backend(), ErrorCode::usage, {"GLE_ISA=mmx", "baseline, avx2 or avx512"});
}

TEST_F(EnvironmentTest, InstructionSetTheMachineLacksIsAnError) {
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (cpu::supported(isa)) {
      EXPECT_NE(std::string(make_cpu_backend({.isa = isa})->description()).find(cpu::name_of(isa)), std::string::npos);
    } else {
      EXPECT_ERROR(make_cpu_backend({.isa = isa}), ErrorCode::usage, {"this machine cannot run", cpu::name_of(isa)});
      setenv("GLE_ISA", cpu::name_of(isa), 1);
      EXPECT_ERROR(cpu::chosen_isa(), ErrorCode::usage, {"this machine cannot run", cpu::name_of(isa)});
    }
  }
}

}  // namespace
}  // namespace gle
