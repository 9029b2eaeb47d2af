#include "simt/fiber.h"

#include <sys/mman.h>

#include <new>

extern "C" void simt_switch(void** save, void* load);

asm(R"(
.text
.globl simt_switch
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch, .-simt_switch
)");

namespace simt {

namespace {

constexpr size_t kGuardBytes = 4096;
constexpr int kSavedRegisters = 6;

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  mprotect(memory, kGuardBytes, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kGuardBytes;
}

Fiber::~Fiber() { munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes); }

void Fiber::reset(void (*entry)()) {
  // As if entry() had been called: its return address (never used) lies 8 below a multiple of 16.
  void** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 2;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) {
    *--top = nullptr;
  }
  pointer_ = top;
}

void Fiber::resume() { simt_switch(&caller_, pointer_); }

void Fiber::pause() { simt_switch(&pointer_, caller_); }

}  // namespace simt
