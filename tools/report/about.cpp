#include "tools/report/chart.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

void row(Markup& html, const std::string& name, const std::string& value) {
  html << "<tr><th>" << name << "</th><td><bdi>" << value << "</bdi></td></tr>";
}

Markup environment(const Run& run) {
  Markup html;
  html << "<div class=scroll><table class=pairs><tbody>";
  row(html, "folder", run.path.string());
  if (!run.command.empty()) {
    row(html, "command", run.command);
  }
  if (run.timing) {
    const Timing& timing = *run.timing;
    row(html, "time",
        duration_text(timing.seconds) + " in " + std::to_string(timing.sessions) +
            (timing.sessions == 1 ? " session" : " sessions") + ", evaluations included");
    if (timing.steps > 0) {
      row(html, "a step", number_text(timing.seconds / static_cast<double>(timing.steps)) + " s");
    }
  }
  for (const auto& [name, value] : run.environment) {
    row(html, name, value);
  }
  html << "</tbody></table></div>";
  return html;
}

Markup configuration(const Run& run) {
  static const TrainingConfig kDefaults;
  Markup html;
  html << "<details><summary>Configuration</summary><div class=scroll><table class=pairs><tbody>";
  for (const ConfigKey& key : config_keys()) {
    const ConfigValue value = value_of(run.config, key);
    if (value == value_of(kDefaults, key)) {
      html << "<tr class=usual>";
    } else {
      html << "<tr>";
    }
    html << "<th title=\"" << key.meaning << "\">" << key.name << "</th><td><bdi>" << toml_of(value)
         << "</bdi></td></tr>";
  }
  html << "</tbody></table></div><p class=note>Faint: as it is by default.</p></details>";
  return html;
}

}  // namespace

Markup about_section(const Report& report) {
  Markup html;
  html << "<section id=about><h2>Configuration, environment, timing</h2>";
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const Run& run = report.runs[i];
    html << "<h3><span class=\"key c" << i % kColours << "\"></span><bdi>" << run.name << "</bdi></h3>"
         << environment(run);
    if (run.has_config) {
      html << configuration(run);
    } else {
      html << "<p class=absent>No configuration: it is in config.toml, which gle-train writes to the run.</p>";
    }
    if (run.environment.empty()) {
      html << "<p class=absent>No environment: it is in env.json, which gle-train writes to the run.</p>";
    }
    if (!run.timing) {
      html << "<p class=absent>No timing: it is in the event files that gle-train writes to the run.</p>";
    }
    for (const std::string& remark : run.remarks) {
      html << "<p class=absent>" << remark << "</p>";
    }
  }
  html << "</section>";
  return html;
}

}  // namespace gle::report
