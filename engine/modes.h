#pragma once

namespace gle {

// How a gradient reaches its place: the first writer overwrites whatever is there, later ones add.
enum class Accumulate { overwrite, add };

enum class Transpose { no, yes };

}  // namespace gle
