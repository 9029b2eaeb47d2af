#include "retrieval/quad_tree.h"

#include <algorithm>
#include <cmath>

namespace gle {

void QuadTree::build(std::span<const float> map) {
  double low[2] = {map[0], map[1]};
  double high[2] = {map[0], map[1]};
  for (size_t i = 0; i < map.size(); ++i) {
    low[i % 2] = std::min<double>(low[i % 2], map[i]);
    high[i % 2] = std::max<double>(high[i % 2], map[i]);
  }
  const double side = std::max({high[0] - low[0], high[1] - low[1], 1e-30});
  cells_.clear();
  cells_.push_back({.side = side, .left = low[0], .top = low[1]});
  for (size_t i = 0; i < map.size(); i += 2) {
    insert(map[i], map[i + 1]);
  }
  for (Cell& cell : cells_) {
    if (cell.count > 0) {
      cell.x /= cell.count;
      cell.y /= cell.count;
    }
  }
}

int QuadTree::quadrant(const Cell& cell, double x, double y) {
  return (x >= cell.left + cell.side / 2 ? 1 : 0) + (y >= cell.top + cell.side / 2 ? 2 : 0);
}

void QuadTree::split(int32_t index) {
  const auto first = static_cast<int32_t>(cells_.size());
  const Cell parent = cells_[static_cast<size_t>(index)];
  const double half = parent.side / 2;
  for (int q = 0; q < 4; ++q) {
    cells_.push_back({.side = half, .left = parent.left + (q % 2 ? half : 0), .top = parent.top + (q / 2 ? half : 0)});
  }
  cells_[static_cast<size_t>(index)].first_child = first;
}

void QuadTree::insert(double x, double y) {
  int32_t at = 0;
  for (int depth = 0;; ++depth) {
    // Points in one place share a leaf: they would be split for ever.
    if (cells_[static_cast<size_t>(at)].first_child == -1 && cells_[static_cast<size_t>(at)].count > 0 &&
        depth < kMostDepth) {
      split(at);
      const Cell& parent = cells_[static_cast<size_t>(at)];
      const double count = parent.count;
      Cell& child =
          cells_[static_cast<size_t>(parent.first_child + quadrant(parent, parent.x / count, parent.y / count))];
      child.x = parent.x;
      child.y = parent.y;
      child.count = parent.count;
    }
    Cell& cell = cells_[static_cast<size_t>(at)];
    cell.x += x;
    cell.y += y;
    ++cell.count;
    if (cell.first_child == -1) {
      return;
    }
    at = cell.first_child + quadrant(cell, x, y);
  }
}

QuadTree::Sums QuadTree::repulsion(float x, float y, double theta) const {
  Sums sums;
  std::array<int32_t, 3 * (kMostDepth + 1) + 1> stack;
  size_t height = 0;
  stack[height++] = 0;
  while (height > 0) {
    const Cell& cell = cells_[static_cast<size_t>(stack[--height])];
    if (cell.count == 0) {
      continue;
    }
    const double dx = x - cell.x;
    const double dy = y - cell.y;
    const double squared = dx * dx + dy * dy;
    if (cell.first_child == -1 || cell.side * cell.side < theta * theta * squared) {
      const double q = 1 / (1 + squared);
      sums.q += cell.count * q;
      sums.x += cell.count * q * q * dx;
      sums.y += cell.count * q * q * dy;
      continue;
    }
    for (int q = 3; q >= 0; --q) {
      stack[height++] = cell.first_child + q;
    }
  }
  // The point itself was among them, with q = 1 and no force.
  sums.q -= 1;
  return sums;
}

}  // namespace gle
