#pragma once

#include <string>
#include <vector>

#include "tools/report/markup.h"
#include "tools/report/run.h"

namespace gle::report {

// Colours 0 to 7, then again; the page's style sheet has them for light and dark.
inline constexpr size_t kColours = 8;

struct Series {
  std::string name;
  Curve points;
  size_t colour = 0;
  bool dashed = false;
  bool marks = false;  // a dot at every point
  bool line = true;
};

struct ChartOptions {
  std::string title;
  std::string x_label;
  bool percent = false;              // y is a share
  std::vector<double> x_lines = {};  // vertical lines
  bool log_x = false;                // x is above 0
};

// An SVG figure with a title, axes and, if there is more than one series, a legend. Long series are thinned to means.
// Points that are not finite are left out; nothing at all if none is left.
Markup line_chart(const ChartOptions& options, std::vector<Series> series);

struct Bar {
  std::string name;
  double share = 0;
  size_t colour = 0;
};
// Horizontal, with their names and percentages.
Markup bar_chart(const std::string& title, const std::vector<Bar>& bars);

// A table of squares, darker for more; NaN where there is none. values [rows, columns].
Markup heat_table(const std::string& title, const std::string& row_label, const std::string& column_label,
                  const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                  const std::vector<double>& shares);

}  // namespace gle::report
