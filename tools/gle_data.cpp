// Looks at a data set before it is trained on.
#include <cstdio>
#include <set>
#include <string>

#include "data/check.h"
#include "data/sampler.h"
#include "engine/error.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"

namespace gle::data {

namespace {

struct Arguments {
  std::string path;
  DatasetOptions dataset;
  CheckOptions check;
  int samples = 4;
  bool lists_only = false;
};

ClassRange range_of(const std::string& text) {
  const std::optional<ClassRange> range = parse_class_range(text);
  if (!range) {
    fail(ErrorCode::usage, "--train-classes ", text, ": A:B is expected, as 0:100");
  }
  return *range;
}

size_t classes_in(const Dataset& data, const std::vector<uint32_t>& items) {
  std::set<int32_t> labels;
  for (const uint32_t item : items) {
    labels.insert(data.items[item].label);
  }
  return labels.size();
}

void print_counts(const Dataset& data) {
  std::printf("data set   %s\nfolder     %s\nimages     %zu in %zu classes\n", data.name.c_str(),
              data.folder->path().c_str(), data.items.size(), data.class_names.size());
  const auto line = [&](const char* what, const std::vector<uint32_t>& items) {
    std::printf("%-10s %zu in %zu classes\n", what, items.size(), classes_in(data, items));
  };
  line("train", data.train_items());
  const auto queries = data.query_items();
  const auto gallery = data.gallery_items();
  if (queries == gallery) {
    line("test", queries);
  } else {
    line("query", queries);
    line("gallery", gallery);
  }
  for (const std::string& text : data.notes) {
    std::printf("note       %s\n", text.c_str());
  }
  for (const std::string& text : data.warnings) {
    std::printf("warning    %s\n", text.c_str());
  }
}

void print_few(const std::vector<std::string>& lines, const char* what) {
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < lines.size() && i < kShown; ++i) {
    std::printf("%-10s %s\n", i == 0 ? what : "", lines[i].c_str());
  }
  if (lines.size() > kShown) {
    std::printf("%-10s ... and %zu more\n", "", lines.size() - kShown);
  }
}

void print_files(const Dataset& data, const CheckReport& report) {
  std::printf("files      %zu JPEG, %zu PNG, %zu BMP, %.1f MB\n", report.jpeg, report.png, report.bmp,
              static_cast<double>(report.bytes) * 1e-6);
  std::printf("sizes      width %d to %d, mean %.0f; height %d to %d, mean %.0f\n", report.least_width,
              report.most_width, report.mean_width, report.least_height, report.most_height, report.mean_height);
  if (report.misnamed > 0) {
    std::printf("note       %zu files have the extension of another format; they are read by their content\n",
                report.misnamed);
  }
  std::vector<std::string> lines;
  for (const Duplicates& group : report.duplicates) {
    std::string line = group.labels_differ ? "[classes differ] " : "";
    line += group.across_split ? "[in training and test] " : "";
    for (const uint32_t item : group.items) {
      line += data.items[item].path + " ";
    }
    lines.push_back(line);
  }
  print_few(lines, "duplicates");
  for (const BrokenFile& file : report.broken) {
    std::printf("broken     %s\n", file.reason.c_str());
  }
  std::printf("result     %zu broken, %zu groups of duplicates\n", report.broken.size(), report.duplicates.size());
}

int check(const Arguments& arguments, const tools::Verbosity& verbosity) {
  const Dataset data = load_dataset(arguments.path, arguments.dataset);
  print_counts(data);
  print_few(train_members(data).small_classes(data, arguments.samples), "small");
  if (arguments.lists_only) {
    return 0;
  }
  CheckOptions options = arguments.check;
  tools::Progress progress("reading", static_cast<int64_t>(data.items.size()), verbosity, "img");
  options.progress = [&](size_t done, size_t) { progress.update(static_cast<int64_t>(done)); };
  const CheckReport report = check_files(data, options);
  progress.finish();
  print_files(data, report);
  return report.broken.empty() ? 0 : static_cast<int>(ErrorCode::data);
}

int main(int argc, char** argv) {
  tools::Program program("gle-data",
                         "Looks at a data set before it is trained on. Decoders: " + decoder_versions() + ".",
                         "gle-data check data/omniglot.tar.gz");
  Arguments arguments;
  tools::Verbosity verbosity;
  std::string train_classes;
  bool exif = false;
  bool outside = false;
  CLI::App& app = program.options();
  app.require_subcommand(1);
  CLI::App& check_app = *app.add_subcommand(
      "check",
      "reads a data set as training would: says what it is, counts images and classes, decodes every file, and lists "
      "what is broken or there twice. Exit code 3: some files cannot be read, or the lists are wrong");
  check_app.add_option("PATH", arguments.path, "a data set's folder, a CSV file, a tar shard or a folder of shards")
      ->required();
  check_app
      .add_option("--dataset", arguments.dataset.dataset,
                  "cub, cub-classification, cars, sop, inshop, market1501, dukemtmc, cuhk03-detected, cuhk03-labeled, "
                  "cuhk03-np, msmt17, folders, csv, shards; without it: by what is in the folder")
      ->option_text("NAME")
      ->check(tools::suggested(dataset_names()));
  check_app.add_option("--train-classes", train_classes, "class folders: train on classes A to B-1")
      ->option_text("A:B");
  check_app.add_option("--samples", arguments.samples, "images of a class in a batch")
      ->option_text("K")
      ->check(CLI::Range(1, 1'000'000));
  check_app.add_flag("--exif", exif, "turn pictures as EXIF says");
  check_app.add_flag("--allow-outside-root", outside, "lists and links may lead out of the folder");
  check_app.add_flag("--lists-only", arguments.lists_only, "do not read the images");
  check_app.add_option("--threads", arguments.check.threads, "0: GLE_NUM_THREADS, or the cores at hand")
      ->option_text("N")
      ->check(CLI::Range(0, 1024));
  tools::add_verbosity_options(check_app, verbosity);
  check_app.footer("example: gle-data check pictures/ --train-classes 0:100 --samples 5");
  return program.run(argc, argv, [&] {
    if (!train_classes.empty()) {
      arguments.dataset.train_classes = range_of(train_classes);
    }
    arguments.check.decode.exif = exif ? Exif::rotate : arguments.check.decode.exif;
    arguments.dataset.outside = outside ? Outside::allow : arguments.dataset.outside;
    return check(arguments, verbosity);
  });
}

}  // namespace

}  // namespace gle::data

int main(int argc, char** argv) { return gle::data::main(argc, argv); }
