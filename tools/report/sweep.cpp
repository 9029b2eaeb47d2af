#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/report/chart.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

constexpr const char* kMetric = "R@1";

struct Result {
  const Run* run;
  double share;
};

std::optional<double> number_of(const TrainingConfig& config, const ConfigKey& key) {
  const ConfigValue value = value_of(config, key);
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real;
  }
  return std::nullopt;
}

// The keys that a run's result can depend on and that are not the same in all.
std::vector<const ConfigKey*> varied(const std::vector<Result>& results) {
  std::vector<const ConfigKey*> keys;
  for (const ConfigKey& key : config_keys()) {
    const ConfigValue first = value_of(results.front().run->config, key);
    const bool same = std::all_of(results.begin(), results.end(),
                                  [&](const Result& result) { return value_of(result.run->config, key) == first; });
    if (!same && key.name != "run.seed" && key.resuming == Resuming::fixed) {
      keys.push_back(&key);
    }
  }
  return keys;
}

bool is_varied(const std::vector<const ConfigKey*>& keys, const std::string& name) {
  return std::any_of(keys.begin(), keys.end(), [&](const ConfigKey* key) { return key->name == name; });
}

// The mean of the runs of each value, and all of them as dots.
Markup against(const std::vector<Result>& results, const ConfigKey& key) {
  std::map<double, std::pair<double, int>> by_value;
  Curve all;
  for (const Result& result : results) {
    const double value = *number_of(result.run->config, key);
    by_value[value].first += result.share;
    ++by_value[value].second;
    all.push_back({value, result.share});
  }
  Curve means;
  for (const auto& [value, sum] : by_value) {
    means.push_back({value, sum.first / sum.second});
  }
  std::vector<Series> series = {{.name = "mean", .points = means, .colour = 0, .marks = true}};
  if (means.size() < all.size()) {
    series.insert(series.begin(), {.name = "runs", .points = all, .colour = 7, .marks = true, .line = false});
  }
  const std::string title = "Recall@1 against " + key.name + ", %";
  return line_chart({.title = title, .x_label = key.name, .percent = true}, std::move(series));
}

Markup pair_table(const std::vector<Result>& results, const ConfigKey& row_key, const ConfigKey& column_key) {
  std::set<double> rows;
  std::set<double> columns;
  for (const Result& result : results) {
    rows.insert(*number_of(result.run->config, row_key));
    columns.insert(*number_of(result.run->config, column_key));
  }
  std::vector<double> shares;
  for (const double row : rows) {
    for (const double column : columns) {
      double sum = 0;
      int count = 0;
      for (const Result& result : results) {
        if (*number_of(result.run->config, row_key) == row && *number_of(result.run->config, column_key) == column) {
          sum += result.share;
          ++count;
        }
      }
      shares.push_back(count > 0 ? sum / count : NAN);
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
  return heat_table("Recall@1, %: " + row_key.name + " x " + column_key.name, last_part(row_key.name),
                    last_part(column_key.name), texts(rows), texts(columns), shares);
}

}  // namespace

Markup sweep_section(const Report& report) {
  std::vector<Result> results;
  for (const Run& run : report.runs) {
    if (const auto best = run.best(kMetric); best && run.has_config) {
      results.push_back({&run, best->y});
    }
  }
  Markup html;
  html << "<section id=sweep><h2>Settings against results</h2>";
  const std::vector<const ConfigKey*> keys = results.size() < 2 ? std::vector<const ConfigKey*>() : varied(results);
  if (keys.empty()) {
    html << "<p class=absent>No sweep: it appears when several runs of different settings are given, each with its "
            "evaluations: gle-report runs/a runs/b runs/c.</p></section>";
    return html;
  }
  html << "<div class=charts>";
  for (const ConfigKey* key : keys) {
    if (number_of(results.front().run->config, *key)) {
      html << against(results, *key);
    }
  }
  for (const auto& [row, column] :
       {std::pair("group_loss.anchors", "phase2.samples"), std::pair("phase2.classes", "phase2.samples")}) {
    if (is_varied(keys, row) && is_varied(keys, column)) {
      html << pair_table(results, config_key(row), config_key(column));
    }
  }
  html << "</div><p class=note>Lines join the means of all runs that share a value.</p><div class=scroll>"
       << "<table><thead><tr><th>run</th>";
  for (const ConfigKey* key : keys) {
    html << "<th>" << key->name << "</th>";
  }
  html << "<th class=number>R@1</th></tr></thead><tbody>";
  std::stable_sort(results.begin(), results.end(), [](const Result& a, const Result& b) { return a.share > b.share; });
  for (const Result& result : results) {
    html << "<tr><th><bdi>" << result.run->name << "</bdi></th>";
    for (const ConfigKey* key : keys) {
      html << "<td>" << toml_of(value_of(result.run->config, *key)) << "</td>";
    }
    html << "<td class=number>" << percent_text(result.share) << "</td></tr>";
  }
  html << "</tbody></table></div></section>";
  return html;
}

}  // namespace gle::report
