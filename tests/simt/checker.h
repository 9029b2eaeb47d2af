#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

enum class AccessKind : uint8_t { read, write, atomic };

// One access of the running thread; host code's are not looked at. `pc`: the address after the access's callback.
void check_access(const void* address, size_t bytes, AccessKind kind, uintptr_t pc);
void check_alignment(const void* address, size_t alignment, const char* file, int line);

// Around each kernel.
void begin_checking();
void end_checking();

}  // namespace simt
