#include <algorithm>
#include <set>

#include "tools/report/chart.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

// What the logs call it, and what readers do.
struct Wanted {
  std::string key;
  std::string title;
  bool percent = false;
};

const Wanted kLoss = {"loss", "Loss"};
const Wanted kHowItTrains[] = {{"learning_rate", "Learning rate"}, {"gradient_norm", "Gradient norm"}};
const Wanted kEvaluation[] = {{"R@1", "Recall@1, %", true}, {"mAP", "mAP, %", true}, {"MAP@R", "MAP@R, %", true}};
constexpr const char* kOnTraining = "train ";  // before a metric's name: of training images

Markup chart(const std::vector<Run>& runs, const Wanted& wanted, bool evaluated) {
  std::vector<Series> series;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& curves = evaluated ? runs[i].evaluation : runs[i].training;
    const auto add = [&](const std::string& key, const std::string& name, bool dashed) {
      if (const auto curve = curves.find(key); curve != curves.end()) {
        series.push_back({.name = name, .points = curve->second, .colour = i, .dashed = dashed, .marks = evaluated});
      }
    };
    add(wanted.key, runs[i].name, false);
    if (evaluated) {
      add(kOnTraining + wanted.key, runs[i].name + ", training images", true);
    }
  }
  return line_chart(
      {.title = wanted.title, .x_label = "step", .percent = wanted.percent, .x_lines = runs.front().phase_starts},
      std::move(series));
}

// What else the logs have are the terms that a loss is the sum of, under its name in the config: cross-entropy last.
std::vector<Wanted> terms(const std::vector<Run>& runs) {
  std::set<std::string> keys;
  for (const Run& run : runs) {
    for (const auto& [key, curve] : run.training) {
      keys.insert(key);
    }
  }
  keys.erase(kLoss.key);
  for (const Wanted& wanted : kHowItTrains) {
    keys.erase(wanted.key);
  }
  std::vector<Wanted> result;
  for (const std::string& key : keys) {
    result.push_back({key, "Term: " + key});
  }
  std::ranges::stable_partition(result, [](const Wanted& term) { return term.key != "cross_entropy"; });
  return result;
}

// R@1, R@2, R@10, then the others.
void order(std::vector<std::string>& metrics) {
  std::stable_sort(metrics.begin(), metrics.end(), [](const std::string& a, const std::string& b) {
    const bool ranks = a.starts_with("R@") && b.starts_with("R@");
    return ranks ? a.size() < b.size() : a.starts_with("R@") && !b.starts_with("R@");
  });
}

std::string best_text(const Run& run, const std::string& metric) {
  const auto best = run.best(metric);
  return best ? percent_text(best->y) : "";
}

}  // namespace

Markup results_section(const Report& report) {
  std::set<std::string> metrics;
  for (const Run& run : report.runs) {
    for (const auto& [name, curve] : run.evaluation) {
      if (!name.starts_with(kOnTraining)) {
        metrics.insert(name);
      }
    }
  }
  std::vector<std::string> columns(metrics.begin(), metrics.end());
  order(columns);
  Markup html;
  html << "<section id=results><h2>Runs</h2><div class=scroll><table><thead><tr><th>run</th><th>steps</th>";
  for (const std::string& column : columns) {
    html << "<th class=number>" << column << "</th>";
  }
  html << "<th class=number>best at step</th><th class=number>time</th></tr></thead><tbody>";
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const Run& run = report.runs[i];
    double steps = run.epochs.empty() ? 0 : run.epochs.back().x;
    for (const Point& point : run.epochs) {
      steps = std::max(steps, point.x);
    }
    html << "<tr><th><span class=\"key c" << i % kColours << "\"></span><bdi>" << run.name
         << "</bdi></th><td class=number>" << static_cast<int64_t>(steps) << "</td>";
    for (const std::string& column : columns) {
      html << "<td class=number>" << best_text(run, column) << "</td>";
    }
    const auto best = run.best("R@1");
    html << "<td class=number>" << (best ? number_text(best->x) : std::string()) << "</td><td class=number>"
         << (run.timing ? duration_text(run.timing->seconds) : std::string()) << "</td></tr>";
  }
  html << "</tbody></table></div>";
  if (columns.empty()) {
    html << "<p class=absent>No metrics: they appear when the run evaluates (the key evaluation.every).</p>";
  } else {
    html << "<p class=note>Percentages, the best evaluation of each metric.</p>";
  }
  html << "</section>";
  return html;
}

Markup curves_section(const Report& report) {
  Markup charts = chart(report.runs, kLoss, false);
  for (const Wanted& term : terms(report.runs)) {
    charts << chart(report.runs, term, false);
  }
  for (const Wanted& wanted : kHowItTrains) {
    charts << chart(report.runs, wanted, false);
  }
  Markup evaluated;
  for (const Wanted& wanted : kEvaluation) {
    evaluated << chart(report.runs, wanted, true);
  }
  Markup html;
  html << "<section id=curves><h2>Curves</h2>";
  if (charts.empty() && evaluated.empty()) {
    html << "<p class=absent>No curves: they are drawn from metrics.jsonl, which gle-train writes to the run.</p>";
  } else {
    html << "<div class=charts>" << evaluated << charts << "</div>";
    if (!report.runs.front().phase_starts.empty()) {
      html << "<p class=note>The upright line is where the second phase begins.</p>";
    }
  }
  html << "</section>";
  return html;
}

Markup ablation_section(const Report& report) {
  Markup html;
  html << "<section id=ablation><h2>GL++ inference</h2>";
  bool any = false;
  for (const Run& run : report.runs) {
    if (run.strategies.empty()) {
      continue;
    }
    any = true;
    std::vector<std::string> columns;
    for (const Strategy& strategy : run.strategies) {
      for (const auto& [name, value] : strategy.metrics) {
        if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
          columns.push_back(name);
        }
      }
    }
    order(columns);
    std::vector<Bar> bars;
    for (const Strategy& strategy : run.strategies) {
      if (const auto* share = columns.empty() ? nullptr : strategy.find(columns.front())) {
        bars.push_back({strategy.name, *share, 0});
      }
    }
    if (report.runs.size() > 1) {
      html << "<h3><bdi>" << run.name << "</bdi></h3>";
    }
    html << "<div class=beside><div class=scroll><table><thead><tr><th>strategies</th>";
    for (const std::string& column : columns) {
      html << "<th class=number>" << column << "</th>";
    }
    html << "</tr></thead><tbody>";
    for (const Strategy& strategy : run.strategies) {
      html << "<tr><th><bdi>" << strategy.name << "</bdi></th>";
      for (const std::string& column : columns) {
        const double* share = strategy.find(column);
        html << "<td class=number>" << (share ? percent_text(*share) : std::string()) << "</td>";
      }
      html << "</tr>";
    }
    html << "</tbody></table></div>" << bar_chart((columns.empty() ? std::string() : columns.front()) + ", %", bars)
         << "</div>";
  }
  if (!any) {
    html << "<p class=absent>No ablation: it is drawn from eval.json in the run, which gle-eval writes: --strategies "
            "all --json RUN/eval.json.</p>";
  }
  html << "</section>";
  return html;
}

}  // namespace gle::report
