// Makes a page of what runs gave, to be read in a browser.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "tools/cli/device.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/report/look.h"

namespace gle::tools {

namespace {

struct Arguments {
  std::vector<std::string> runs;
  std::string out;
  std::string data;
  bool no_pictures = false;
  report::LookOptions look;
  DeviceOptions device;
  Verbosity verbosity;
};

void warn_of_absences(const report::Report& report) {
  const auto warn = [](const char* what, const std::string& why) {
    std::fprintf(stderr, "gle-report: warning: the page has no %s: %s\n", what, why.c_str());
  };
  const std::string& pictures = report.why_no_pictures;
  const std::string& refinement = report.why_no_refinement;
  if (!pictures.empty()) {
    warn(pictures == refinement ? "pictures, map and refinement" : "pictures and no map", pictures);
  }
  if (!refinement.empty() && refinement != pictures) {
    warn("refinement", refinement);
  }
}

int make_report(const Arguments& arguments) {
  report::Report report;
  for (const std::string& path : arguments.runs) {
    report.runs.push_back(report::read_run(path));
  }
  if (arguments.no_pictures) {
    report.why_no_pictures = report.why_no_refinement = "--no-pictures was given.";
  } else {
    std::optional<Progress> bar;
    std::string doing;
    report::LookOptions look = arguments.look;
    look.progress = [&](const char* what, int64_t done, int64_t all) {
      if (doing != what) {
        doing = what;
        bar.emplace(what, all, arguments.verbosity);
      }
      bar->update(done);
    };
    const auto backend = make_backend(arguments.device);
    ThreadPool pool(arguments.device.threads);
    report::look_at_run(*backend, pool, report.runs.front(), arguments.data, look, report);
    warn_of_absences(report);
  }
  const std::filesystem::path out =
      arguments.out.empty() ? report.runs.front().path / "report.html" : std::filesystem::path(arguments.out);
  const std::string html = report::html_of(report);
  write_atomically(out, {std::as_bytes(std::span(html.data(), html.size()))});
  std::printf("report     %s\nsize       %.1f MB\n", out.c_str(), static_cast<double>(html.size()) * 1e-6);
  return 0;
}

int main(int argc, char** argv) {
  Program program("gle-report",
                  "Makes one HTML file of what runs of gle-train gave: curves, ablation, retrieval, a map of the "
                  "embeddings, the refinement, settings. Pictures are of the first run.",
                  "gle-report runs/demo --out report.html");
  Arguments arguments;
  CLI::App& app = program.options();
  app.add_option("RUN", arguments.runs, "folder of a run; several are laid over each other")
      ->required()
      ->default_str("");
  app.add_option("--out", arguments.out, "the page to write; default: report.html in the first run's folder")
      ->option_text("FILE");
  app.add_option("--data", arguments.data, "the data set, if it is no longer where the run had it")
      ->option_text("PATH");
  app.add_option("--queries", arguments.look.queries, "rows of retrieved images")
      ->option_text("N")
      ->check(CLI::Range(0, 1000));
  app.add_option("--map", arguments.look.images, "test images to embed, search and map, at most")
      ->option_text("N")
      ->check(CLI::Range(4, 20'000));
  app.add_option("--workers", arguments.look.workers, "threads that decode images")
      ->option_text("N")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--no-pictures", arguments.no_pictures, "curves and tables alone, without opening the network");
  add_device_options(app, arguments.device);
  add_verbosity_options(app, arguments.verbosity);
  return program.run(argc, argv, [&] { return make_report(arguments); });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
