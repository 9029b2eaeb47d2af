#include "simt/checker.h"

#include <link.h>

#include <bit>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "simt/cells.h"
#include "simt/emulator.h"
#include "simt/memory.h"
#include "simt/reports.h"
#include "simt/shared_memory.h"

extern "C" const char __executable_start;

namespace simt {

namespace {

Cells& device_cells() {
  static Cells& cells = *new Cells(kDeviceCells);
  return cells;
}

Cells& shared_cells() {
  static Cells& cells = *new Cells(number_of_shared_cells());
  return cells;
}

Traffic traffic;
std::map<std::tuple<std::string, std::string>, Traffic>& traffic_by_kernel() {
  static auto& all = *new std::map<std::tuple<std::string, std::string>, Traffic>;
  return all;
}

uint32_t relative(uintptr_t pc) { return static_cast<uint32_t>(pc - reinterpret_cast<uintptr_t>(&__executable_start)); }

uintptr_t absolute(uint32_t pc) { return pc + reinterpret_cast<uintptr_t>(&__executable_start); }

const char* verb(AccessKind kind) {
  return kind == AccessKind::read ? "read" : kind == AccessKind::write ? "write" : "atomic";
}

void report_race(const Access& old, AccessKind kind, bool shared, uintptr_t pc) {
  if (!first_time(Kind::race, pc)) {
    return;
  }
  const bool other_block = old.block != running.block;
  report(Kind::race,
         where() + (shared ? "shared " : "device ") + verb(kind) + " at " + line_of(pc) + who(*running.thread) +
             " is not ordered with the " + verb(old.kind) + " at " + line_of(absolute(old.pc)) + " by thread number " +
             std::to_string(old.thread) +
             (other_block ? " of block number " + std::to_string(old.block) : std::string(" of the block")));
}

void report_bounds(AccessKind kind, const char* what, uintptr_t pc) {
  if (first_time(Kind::bounds, pc)) {
    report(Kind::bounds, where() + verb(kind) + " " + what + " at " + line_of(pc) + who(*running.thread));
  }
}

void check_cell(CellState& state, Cells& cells, Cell& cell, uint8_t bytes, AccessKind kind, bool shared, uintptr_t pc) {
  if ((state.live & bytes) != bytes) {
    report_bounds(kind, shared ? "outside of the shared arrays" : "outside of live device memory", pc);
    return;
  }
  if (kind != AccessKind::write && (state.written & bytes) != bytes && first_time(Kind::uninitialised, pc)) {
    report(Kind::uninitialised, where() + (shared ? "shared" : "device") + " memory that nobody wrote is read at " +
                                    line_of(pc) + who(*running.thread));
  }
  if (kind != AccessKind::read) {
    state.written = (state.written | bytes) & 0xfU;
  }
  const Thread& self = *running.thread;
  const Access now{running.block,
                   running.epoch,
                   self.clocks[static_cast<size_t>(self.lane)],
                   relative(pc),
                   static_cast<uint16_t>(self.number),
                   bytes,
                   kind};
  if (const Access* old = cells.add(cell, now)) {
    report_race(*old, kind, shared, pc);
  }
}

void count(Cell& cell, uint8_t bytes, AccessKind kind) {
  const auto distinct = [bytes](uint8_t& touched) {
    const auto fresh = static_cast<uint64_t>(std::popcount(static_cast<unsigned>(bytes & ~touched)));
    touched |= bytes;
    return fresh;
  };
  const auto all = static_cast<uint64_t>(std::popcount(static_cast<unsigned>(bytes)));
  if (kind != AccessKind::write) {
    traffic.loaded += all;
    traffic.distinct_loaded += distinct(cell.read);
  }
  if (kind != AccessKind::read) {
    traffic.stored += all;
    traffic.distinct_stored += distinct(cell.written);
  }
}

// Constants of the program: what its pages forbid to write.
bool is_constant(const void* address) {
  static const auto ranges = [] {
    std::vector<std::pair<uintptr_t, uintptr_t>> found;
    dl_iterate_phdr(
        [](dl_phdr_info* module, size_t, void* to) {
          for (int i = 0; i < module->dlpi_phnum; ++i) {
            const auto& segment = module->dlpi_phdr[i];
            if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0) {
              const uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
              static_cast<decltype(found)*>(to)->emplace_back(begin, begin + segment.p_memsz);
            }
          }
          return 0;
        },
        &found);
    return found;
  }();
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const auto& [begin, end] : ranges) {
    if (at >= begin && at < end) {
      return true;
    }
  }
  return false;
}

bool is_argument(const void* address) {
  const char* const begin = static_cast<const char*>(running.call->arguments.get());
  const char* const at = static_cast<const char*>(address);
  // The body reads itself and the arguments.
  const char* const call = reinterpret_cast<const char*>(running.call);
  return (at >= begin && at < begin + running.call->argument_bytes) || (at >= call && at < call + sizeof(KernelCall));
}

}  // namespace

void check_access(const void* address, size_t bytes, AccessKind kind, uintptr_t pc) {
  Thread* const self = running.thread;
  if (self == nullptr || !options().check || self->fiber.owns(address)) {
    return;
  }
  const char* at = static_cast<const char*>(address);
  const bool shared = in_shared(at);
  const int device = device_of(at);
  if (!shared && device != running.device) {
    if (kind == AccessKind::read && (is_constant(at) || is_argument(at))) {
      return;
    }
    report_bounds(kind, device >= 0 ? "in the memory of another device" : "of memory that is not the device's", pc);
    abandon_kernel();
  }
  const char* const end = at + bytes;
  while (at < end) {
    const size_t offset = reinterpret_cast<uintptr_t>(at) % kCellBytes;
    const size_t length = std::min<size_t>(kCellBytes - offset, static_cast<size_t>(end - at));
    const auto mask = static_cast<uint8_t>(((1U << length) - 1U) << offset);
    if (shared) {
      check_cell(shared_state_of(at), shared_cells(), shared_cells().at(shared_cell_number(at), running.block_serial),
                 mask, kind, true, pc);
    } else {
      Cell& cell = device_cells().at(cell_number(at), running.launch);
      check_cell(state_of(at), device_cells(), cell, mask, kind, false, pc);
      count(cell, mask, kind);
    }
    at += length;
  }
}

void check_alignment(const void* address, size_t alignment, const char* file, int line) {
  if (running.thread == nullptr || !first_time(Kind::misaligned, Site{file, line})) {
    return;
  }
  report(Kind::misaligned, where() + "an access that needs " + std::to_string(alignment) + "-byte alignment is " +
                               std::to_string(reinterpret_cast<uintptr_t>(address) % alignment) + " bytes off at " +
                               line_of(Site{file, line}) + who(*running.thread));
}

void note_atomic(const void* at, size_t bytes) {
  check_access(at, bytes, AccessKind::atomic, reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

void begin_checking() {
  traffic = {};
  device_cells().clear();
  shared_cells().clear();
}

void end_checking() {
  if (!options().check) {
    return;
  }
  Traffic& sum = traffic_by_kernel()[{running.call->op, function_name(running.call->function)}];
  ++sum.launches;
  sum.loaded += traffic.loaded;
  sum.stored += traffic.stored;
  sum.distinct_loaded += traffic.distinct_loaded;
  sum.distinct_stored += traffic.distinct_stored;
}

std::vector<Traffic> take_traffic() {
  std::vector<Traffic> all;
  for (auto& [key, sum] : std::exchange(traffic_by_kernel(), {})) {
    sum.op = std::get<0>(key);
    sum.kernel = std::get<1>(key);
    all.push_back(sum);
  }
  return all;
}

}  // namespace simt
