#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gle {

// Points of the plane in nested squares, each with the number and the mean of what is in it.
class QuadTree {
 public:
  // map [points,2], finite. Keeps its memory from one call to the next.
  void build(std::span<const float> map);

  // Sums over all other points j of q and of q^2 (y - y_j), with q = 1 / (1 + |y - y_j|^2); squares that look smaller
  // than theta from y count as so many points at their mean. y is one of the points.
  struct Sums {
    double q = 0;
    double x = 0, y = 0;
  };
  Sums repulsion(float x, float y, double theta) const;

 private:
  static constexpr int kMostDepth = 40;
  struct Cell {
    double x = 0, y = 0;  // sum of the points, then their mean
    double side = 0;
    double left = 0, top = 0;
    int32_t count = 0;
    int32_t first_child = -1;  // of four; -1: a leaf
  };
  void insert(double x, double y);
  void split(int32_t cell);
  static int quadrant(const Cell& cell, double x, double y);

  std::vector<Cell> cells_;
};

}  // namespace gle
