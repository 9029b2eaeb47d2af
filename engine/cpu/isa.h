#pragma once

// Files that include this header are compiled once per instruction set, each time with its flags and with GLE_ISA
// naming the namespace they fill. Such a file may define nothing outside that namespace: a shared inline function
// compiled with AVX-512 could be the copy that the linker keeps for every machine (tests/isa_objects_test.sh).

#ifndef GLE_ISA
#error "compile this file through gle_add_isa_sources()"
#endif

#define GLE_INLINE inline __attribute__((always_inline))
