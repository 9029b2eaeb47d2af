#pragma once

#include <iosfwd>

namespace gle {

struct Device {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;

  bool operator==(const Device&) const = default;
};

std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace gle
