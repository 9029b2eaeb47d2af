#include "models/files/sha256.h"
#include "tools/report/assets.h"
#include "tools/report/chart.h"
#include "tools/report/report.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

// Only this style sheet and this script; pictures from the page itself alone; nothing from anywhere else.
std::string policy() {
  return "default-src 'none'; style-src 'sha256-" + base64(sha256(kStyle)) + "'; script-src 'sha256-" +
         base64(sha256(kScript)) + "'; img-src data:; base-uri 'none'; form-action 'none'";
}

std::string title_of(const Report& report) {
  std::string title;
  for (const Run& run : report.runs) {
    title += (title.empty() ? "" : ", ") + run.name;
  }
  constexpr size_t kMost = 120;
  return title.size() > kMost ? std::to_string(report.runs.size()) + " runs" : title;
}

}  // namespace

std::string html_of(const Report& report) {
  Markup head;
  head << "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><meta http-equiv=Content-Security-Policy content=\""
       << policy() << "\"><meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=color-scheme "
       << "content=\"light dark\"><meta name=referrer content=no-referrer><title>" << title_of(report)
       << "</title><style>";
  Markup body;
  body << "</style></head><body><header><h1><bdi>" << title_of(report) << "</bdi></h1><nav>"
       << "<a href=\"#results\">Runs</a> <a href=\"#curves\">Curves</a> <a href=\"#ablation\">GL++</a> "
       << "<a href=\"#retrieval\">Retrieval</a> <a href=\"#map\">Map</a> <a href=\"#refinement\">Refinement</a> "
       << "<a href=\"#sweep\">Settings</a> <a href=\"#about\">Configuration</a></nav></header><main>"
       << results_section(report) << curves_section(report) << ablation_section(report) << retrieval_section(report)
       << map_section(report) << refinement_section(report) << sweep_section(report) << about_section(report)
       << "</main><div id=tip hidden></div><script>";
  Markup end;
  end << "</script></body></html>\n";
  return head.html() + std::string(kStyle) + body.html() + std::string(kScript) + end.html();
}

}  // namespace gle::report
