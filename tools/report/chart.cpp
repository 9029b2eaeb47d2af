#include "tools/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gle::report {

namespace {

constexpr double kWidth = 440;
constexpr double kHeight = 250;
constexpr double kLeft = 54;
constexpr double kRight = 12;
constexpr double kTop = 10;
constexpr double kBottom = 38;
constexpr size_t kMostPoints = 400;

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks = {};
};

// Round numbers, about `wanted` of them. Whole numbers have whole ticks.
Axis axis_of(double low, double high, int wanted, bool stretch, bool whole = false) {
  if (high - low < 1e-12 * std::max(1.0, std::abs(high))) {
    const double pad = high == 0 ? 1 : std::abs(high) * 0.1;
    low -= pad;
    high += pad;
  }
  const double raw = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  step = whole ? std::max(1.0, std::ceil(step)) : step;
  Axis axis{low, high};
  if (stretch) {
    axis.low = std::floor(low / step + 1e-9) * step;
    axis.high = std::ceil(high / step - 1e-9) * step;
  }
  for (double index = std::ceil(axis.low / step - 1e-9); index * step <= axis.high + step * 1e-9; ++index) {
    axis.ticks.push_back(index * step + 0.0);  // no -0
  }
  return axis;
}

Curve finite(const Curve& curve) {
  Curve result;
  for (const Point& point : curve) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) {
      result.push_back(point);
    }
  }
  return result;
}

Curve thinned(const Curve& curve) {
  if (curve.size() <= kMostPoints) {
    return curve;
  }
  Curve result;
  for (size_t piece = 0; piece < kMostPoints; ++piece) {
    const size_t begin = piece * curve.size() / kMostPoints;
    const size_t end = (piece + 1) * curve.size() / kMostPoints;
    Point sum;
    for (size_t i = begin; i < end; ++i) {
      sum.x += curve[i].x;
      sum.y += curve[i].y;
    }
    result.push_back({sum.x / static_cast<double>(end - begin), sum.y / static_cast<double>(end - begin)});
  }
  return result;
}

// For the script that reads values off the picture.
std::string exact_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string tick_text(double value, bool percent) { return number_text(percent ? value * 100 : value); }

// Of ten.
std::string power_text(double exponent) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0e", std::pow(10, exponent));
  return text;
}

Markup legend(const std::vector<Series>& series) {
  Markup html;
  html << "<ul class=legend>";
  for (const Series& each : series) {
    html << "<li><svg viewBox=\"0 0 20 8\" aria-hidden=true><line x1=0 y1=4 x2=20 y2=4 class=\"line c"
         << each.colour % kColours;
    if (each.dashed) {
      html << " dashed";
    }
    html << "\"/></svg><bdi>" << each.name << "</bdi></li>";
  }
  html << "</ul>";
  return html;
}

}  // namespace

Markup line_chart(const ChartOptions& options, std::vector<Series> series) {
  for (Series& each : series) {
    each.points = thinned(finite(each.points));
    for (Point& point : each.points) {
      point.x = options.log_x ? std::log10(point.x) : point.x;
    }
  }
  std::erase_if(series, [](const Series& each) { return each.points.empty(); });
  if (series.empty()) {
    return {};
  }
  double range[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
  for (const Series& each : series) {
    for (const Point& point : each.points) {
      range[0] = std::min(range[0], point.x);
      range[1] = std::max(range[1], point.x);
      range[2] = std::min(range[2], point.y);
      range[3] = std::max(range[3], point.y);
    }
  }
  const bool whole = std::all_of(series.begin(), series.end(), [](const Series& each) {
    return std::all_of(each.points.begin(), each.points.end(),
                       [](const Point& point) { return point.x == std::floor(point.x); });
  });
  const Axis x = axis_of(range[0], range[1], 5, false, whole || options.log_x);
  const Axis y = axis_of(range[2], range[3], 4, true);
  const auto across = [&](double value) {
    return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight);
  };
  const auto down = [&](double value) {
    return kHeight - kBottom - (value - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };

  Markup svg;
  svg << "<figure class=chart><figcaption>" << options.title << "</figcaption><svg viewBox=\"0 0 " << kWidth << " "
      << kHeight << "\" role=img aria-label=\"" << options.title << "\" data-plot=\"" << kLeft << " " << kTop << " "
      << (kWidth - kRight) << " " << (kHeight - kBottom) << "\" data-range=\"" << exact_text(x.low) << " "
      << exact_text(x.high) << " " << exact_text(y.low) << " " << exact_text(y.high) << "\"";
  if (options.percent) {
    svg << " data-percent";
  }
  if (options.log_x) {
    svg << " data-log";
  }
  svg << ">";
  for (const double tick : y.ticks) {
    svg << "<line class=grid x1=" << kLeft << " x2=" << (kWidth - kRight) << " y1=" << down(tick)
        << " y2=" << down(tick) << " /><text class=tick text-anchor=end x=" << (kLeft - 6) << " y=" << (down(tick) + 4)
        << ">" << tick_text(tick, options.percent) << "</text>";
  }
  for (const double tick : x.ticks) {
    svg << "<text class=tick text-anchor=middle x=" << across(tick) << " y=" << (kHeight - kBottom + 16) << ">"
        << (options.log_x ? power_text(tick) : tick_text(tick, false)) << "</text>";
  }
  for (const double line : options.x_lines) {
    if (line > x.low && line < x.high) {
      svg << "<line class=mark x1=" << across(line) << " x2=" << across(line) << " y1=" << kTop
          << " y2=" << (kHeight - kBottom) << " />";
    }
  }
  svg << "<text class=tick text-anchor=middle x=" << (kLeft + (kWidth - kLeft - kRight) / 2) << " y=" << (kHeight - 5)
      << ">" << options.x_label << "</text>";
  for (const Series& each : series) {
    const size_t colour = each.colour % kColours;
    svg << "<polyline class=\"line c" << colour;
    if (each.dashed) {
      svg << " dashed";
    }
    if (!each.line) {
      svg << " hidden";
    }
    svg << "\" data-name=\"" << each.name << "\" points=\"";
    for (const Point& point : each.points) {
      svg << across(point.x) << "," << down(point.y) << " ";
    }
    svg << "\"/>";
    if (each.marks || each.points.size() == 1) {
      for (const Point& point : each.points) {
        svg << "<circle class=\"dot c" << colour << "\" cx=" << across(point.x) << " cy=" << down(point.y) << " r=3 />";
      }
    }
  }
  svg << "</svg>";
  if (series.size() > 1) {
    svg << legend(series);
  }
  svg << "</figure>";
  return svg;
}

Markup bar_chart(const std::string& title, const std::vector<Bar>& bars) {
  if (bars.empty()) {
    return {};
  }
  constexpr double kRow = 24;
  constexpr double kNames = 150;
  constexpr double kNumbers = 48;
  double most = 0;
  for (const Bar& bar : bars) {
    most = std::max(most, bar.share);
  }
  const double height = kRow * static_cast<double>(bars.size()) + 8;
  Markup svg;
  svg << "<figure class=chart><figcaption>" << title << "</figcaption><svg viewBox=\"0 0 " << kWidth << " " << height
      << "\" role=img aria-label=\"" << title << "\">";
  double top = 4;
  for (const Bar& bar : bars) {
    const double share = std::isfinite(bar.share) ? std::max(0.0, bar.share) : 0;
    const double length = most > 0 ? share / most * (kWidth - kNames - kNumbers) : 0;
    svg << "<text class=tick text-anchor=end x=" << (kNames - 6) << " y=" << (top + 15) << ">" << bar.name
        << "</text><rect class=\"bar c" << bar.colour % kColours << "\" x=" << kNames << " y=" << (top + 2)
        << " width=" << length << " height=" << (kRow - 6) << " rx=2 /><text class=tick x=" << (kNames + length + 6)
        << " y=" << (top + 15) << ">" << percent_text(bar.share) << "</text>";
    top += kRow;
  }
  svg << "</svg></figure>";
  return svg;
}

Markup heat_table(const std::string& title, const std::string& row_label, const std::string& column_label,
                  const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                  const std::vector<double>& shares) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const double share : shares) {
    low = std::isfinite(share) ? std::min(low, share) : low;
    high = std::isfinite(share) ? std::max(high, share) : high;
  }
  constexpr int kLevels = 9;
  Markup html;
  html << "<figure class=chart><figcaption>" << title
       << "</figcaption><div class=scroll><table class=heat><thead><tr><th>" << row_label << " \\ " << column_label
       << "</th>";
  for (const std::string& column : columns) {
    html << "<th>" << column << "</th>";
  }
  html << "</tr></thead><tbody>";
  for (size_t r = 0; r < rows.size(); ++r) {
    html << "<tr><th>" << rows[r] << "</th>";
    for (size_t c = 0; c < columns.size(); ++c) {
      const double share = shares[r * columns.size() + c];
      if (std::isfinite(share)) {
        const auto level =
            static_cast<int>(high > low ? (share - low) / (high - low) * (kLevels - 1) + 0.5 : kLevels / 2);
        html << "<td class=h" << level << ">" << percent_text(share) << "</td>";
      } else {
        html << "<td></td>";
      }
    }
    html << "</tr>";
  }
  html << "</tbody></table></div></figure>";
  return html;
}

}  // namespace gle::report
