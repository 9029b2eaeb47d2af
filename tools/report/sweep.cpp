#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/report/chart.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

const ConfigValue* value_in(const Sweep::Row& row, const std::string& name) {
  const auto found = std::find_if(row.settings.begin(), row.settings.end(),
                                  [&](const auto& setting) { return setting.first == name; });
  return found == row.settings.end() ? nullptr : &found->second;
}

std::optional<double> number_in(const Sweep::Row& row, const std::string& name) {
  const ConfigValue* value = value_in(row, name);
  if (const auto* whole = value ? std::get_if<int64_t>(value) : nullptr) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = value ? std::get_if<double>(value) : nullptr) {
    return *real;
  }
  return std::nullopt;
}

// The runs that were evaluated, with the keys that a result can depend on and that are not the same in all.
Sweep sweep_of(const std::vector<Run>& runs) {
  Sweep sweep;
  std::vector<const Run*> evaluated;
  for (const Run& run : runs) {
    if (const auto best = run.best(sweep.metric); best && run.has_config) {
      evaluated.push_back(&run);
      sweep.rows.push_back({.name = run.name, .share = best->y});
    }
  }
  for (const ConfigKey& key : config_keys()) {
    const auto differs = [&](const Run* run) {
      return value_of(run->config, key) != value_of(evaluated.front()->config, key);
    };
    if (key.name == "run.seed" || key.resuming != Resuming::fixed ||
        std::none_of(evaluated.begin(), evaluated.end(), differs)) {
      continue;
    }
    for (size_t i = 0; i < evaluated.size(); ++i) {
      sweep.rows[i].settings.emplace_back(key.name, value_of(evaluated[i]->config, key));
    }
  }
  return sweep;
}

// In the order in which they come.
std::vector<std::string> keys_of(const Sweep& sweep) {
  std::vector<std::string> keys;
  for (const Sweep::Row& row : sweep.rows) {
    for (const auto& [name, value] : row.settings) {
      if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
        keys.push_back(name);
      }
    }
  }
  return keys;
}

std::string title_of(const std::string& metric) { return metric == "R@1" ? "Recall@1" : metric; }

// The mean of the rows of each value, and all of them as dots.
Markup against(const Sweep& sweep, const std::string& key) {
  std::map<double, std::pair<double, int>> by_value;
  Curve all;
  for (const Sweep::Row& row : sweep.rows) {
    if (const auto value = number_in(row, key)) {
      by_value[*value].first += row.share;
      ++by_value[*value].second;
      all.push_back({*value, row.share});
    }
  }
  if (all.empty()) {
    return {};
  }
  Curve means;
  for (const auto& [value, sum] : by_value) {
    means.push_back({value, sum.first / sum.second});
  }
  // Draws from a range are hardly ever alike: a line through them would say nothing.
  const bool scattered = means.size() > 8 && means.size() * 2 > all.size();
  std::vector<Series> series = {{.name = "mean", .points = means, .colour = 0, .marks = true, .line = !scattered}};
  if (means.size() < all.size()) {
    series.insert(series.begin(), {.name = "runs", .points = all, .colour = 7, .marks = true, .line = false});
  }
  constexpr double kDecades = 100;
  const double least = by_value.begin()->first;
  const bool logarithmic = least > 0 && by_value.rbegin()->first >= kDecades * least;
  const std::string title = title_of(sweep.metric) + " against " + key + ", %";
  return line_chart({.title = title, .x_label = key, .percent = true, .log_x = logarithmic}, std::move(series));
}

Markup pair_table(const Sweep& sweep, const std::string& row_key, const std::string& column_key) {
  std::map<std::pair<double, double>, std::pair<double, int>> sums;
  std::set<double> rows;
  std::set<double> columns;
  for (const Sweep::Row& each : sweep.rows) {
    const auto row = number_in(each, row_key);
    const auto column = number_in(each, column_key);
    if (row && column) {
      rows.insert(*row);
      columns.insert(*column);
      auto& [sum, count] = sums[{*row, *column}];
      sum += each.share;
      ++count;
    }
  }
  if (rows.size() < 2 || columns.size() < 2) {
    return {};
  }
  std::vector<double> shares;
  for (const double row : rows) {
    for (const double column : columns) {
      const auto found = sums.find({row, column});
      shares.push_back(found == sums.end() ? NAN : found->second.first / found->second.second);
    }
  }
  const auto last_part = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  const auto texts = [](const std::set<double>& values) {
    std::vector<std::string> list;
    for (const double value : values) {
      list.push_back(number_text(value));
    }
    return list;
  };
  return heat_table(title_of(sweep.metric) + ", %: " + row_key + " x " + column_key, last_part(row_key),
                    last_part(column_key), texts(rows), texts(columns), shares);
}

}  // namespace

Markup sweep_section(const Report& report) {
  Sweep sweep = report.sweep ? *report.sweep : sweep_of(report.runs);
  Markup html;
  html << "<section id=sweep><h2>Settings against results</h2>";
  const std::vector<std::string> keys = keys_of(sweep);
  if (keys.empty() || sweep.rows.size() < 2) {
    html << "<p class=absent>No sweep: it appears when several runs of different settings are given, each with its "
            "evaluations: gle-report runs/a runs/b runs/c.</p></section>";
    return html;
  }
  html << "<div class=charts>";
  for (const std::string& key : keys) {
    html << against(sweep, key);
  }
  html << pair_table(sweep, "group_loss.anchors", "phase2.samples")
       << pair_table(sweep, "phase2.classes", "phase2.samples")
       << "</div><p class=note>Lines join the means of all runs that share a value.</p><div class=scroll>"
       << "<table><thead><tr><th>run</th>";
  for (const std::string& key : keys) {
    html << "<th>" << key << "</th>";
  }
  html << "<th class=number>" << sweep.metric << "</th></tr></thead><tbody>";
  std::stable_sort(sweep.rows.begin(), sweep.rows.end(),
                   [](const Sweep::Row& a, const Sweep::Row& b) { return a.share > b.share; });
  for (const Sweep::Row& row : sweep.rows) {
    html << "<tr><th><bdi>" << row.name << "</bdi></th>";
    for (const std::string& key : keys) {
      const ConfigValue* value = value_in(row, key);
      html << "<td>" << (value ? toml_of(*value) : std::string()) << "</td>";
    }
    html << "<td class=number>" << percent_text(row.share) << "</td></tr>";
  }
  html << "</tbody></table></div></section>";
  return html;
}

}  // namespace gle::report
