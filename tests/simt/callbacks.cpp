// What the compiler calls at the accesses of instrumented code, defined here instead of in libtsan and libubsan.

#include <cstddef>
#include <cstdint>

#include "simt/checker.h"

using simt::AccessKind;

#define SIMT_PC reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define SIMT_CALLBACK(name, bytes, kind) \
  extern "C" void __tsan_##name##bytes(void* address) { simt::check_access(address, bytes, AccessKind::kind, SIMT_PC); }
#define SIMT_CALLBACKS(bytes)                  \
  SIMT_CALLBACK(read, bytes, read)             \
  SIMT_CALLBACK(write, bytes, write)           \
  SIMT_CALLBACK(unaligned_read, bytes, read)   \
  SIMT_CALLBACK(unaligned_write, bytes, write) \
  SIMT_CALLBACK(volatile_read, bytes, read)    \
  SIMT_CALLBACK(volatile_write, bytes, write)

SIMT_CALLBACKS(1)
SIMT_CALLBACKS(2)
SIMT_CALLBACKS(4)
SIMT_CALLBACKS(8)
SIMT_CALLBACKS(16)

extern "C" {

void __tsan_read_range(void* address, size_t bytes) { simt::check_access(address, bytes, AccessKind::read, SIMT_PC); }
void __tsan_write_range(void* address, size_t bytes) { simt::check_access(address, bytes, AccessKind::write, SIMT_PC); }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Of reference counts in the host code of a kernel file.
int __tsan_atomic32_fetch_add(volatile int* at, int value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}
int __tsan_atomic32_load(const volatile int* at, int) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
long __tsan_atomic64_fetch_add(volatile long* at, long value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}
long __tsan_atomic64_load(const volatile long* at, int) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
char __tsan_atomic8_load(const volatile char* at, int) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

struct UbsanPlace {
  const char* file;
  uint32_t line;
  uint32_t column;
};

struct UbsanTypeMismatch {
  UbsanPlace place;
  const void* type;
  unsigned char log_alignment;
  unsigned char kind;
};

void __ubsan_handle_type_mismatch_v1(UbsanTypeMismatch* data, uintptr_t address) {
  simt::check_alignment(reinterpret_cast<void*>(address), size_t{1} << data->log_alignment, data->place.file,
                        static_cast<int>(data->place.line));
}

}  // extern "C"
