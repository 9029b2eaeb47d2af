// Looks at a data set before it is trained on.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "data/check.h"
#include "data/sampler.h"
#include "engine/error.h"

namespace gle::data {

namespace {

constexpr const char* kUsage =
    "usage: gle-data check PATH [options]\n"
    "\n"
    "Reads a data set as training would: says what it is, counts images and\n"
    "classes, decodes every file, and lists what is broken or there twice.\n"
    "PATH is a data set's folder, a CSV file, a tar shard or a folder of shards.\n"
    "\n"
    "  --dataset NAME         cub, cub-classification, cars, sop, inshop,\n"
    "                         market1501, dukemtmc, cuhk03-detected,\n"
    "                         cuhk03-labeled, cuhk03-np, msmt17, folders, csv,\n"
    "                         shards; default: by what is in the folder\n"
    "  --train-classes A:B    class folders: train on classes A to B-1\n"
    "  --samples K            images of a class in a batch (default 4)\n"
    "  --exif                 turn pictures as EXIF says\n"
    "  --allow-outside-root   lists and links may lead out of the folder\n"
    "  --lists-only           do not read the images\n"
    "  --threads N            default: GLE_NUM_THREADS, or the cores at hand\n"
    "  --help, --version\n"
    "\n"
    "Exit code 0: all files can be read; 3: some cannot, or the lists are wrong.\n"
    "\n"
    "example: gle-data check data/omniglot.tar.gz\n";

struct Arguments {
  std::string path;
  DatasetOptions dataset;
  CheckOptions check;
  int samples = 4;
  bool lists_only = false;
};

int number_of(std::string_view option, std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(ErrorCode::usage, option, ": expected a whole number, got '", text, "'");
  }
  return value;
}

ClassRange range_of(std::string_view option, std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) {
    fail(ErrorCode::usage, option, ": expected A:B, got '", text, "'");
  }
  return {number_of(option, text.substr(0, colon)), number_of(option, text.substr(colon + 1))};
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) {
        fail(ErrorCode::usage, option, ": needs a value");
      }
      return argv[++i];
    };
    if (option == "--dataset") {
      arguments.dataset.dataset = value();
    } else if (option == "--train-classes") {
      arguments.dataset.train_classes = range_of(option, value());
    } else if (option == "--samples") {
      arguments.samples = number_of(option, value());
    } else if (option == "--threads") {
      arguments.check.threads = number_of(option, value());
    } else if (option == "--exif") {
      arguments.check.decode.exif = Exif::rotate;
    } else if (option == "--allow-outside-root") {
      arguments.dataset.outside = Outside::allow;
    } else if (option == "--lists-only") {
      arguments.lists_only = true;
    } else if (option.starts_with("-") || !arguments.path.empty()) {
      fail(ErrorCode::usage, "unknown argument '", option, "'; try --help");
    } else {
      arguments.path = option;
    }
  }
  if (arguments.path.empty()) {
    fail(ErrorCode::usage, "check: which data set? try --help");
  }
  return arguments;
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

int check(Arguments arguments) {
  const Dataset data = load_dataset(arguments.path, arguments.dataset);
  print_counts(data);
  print_few(train_members(data).small_classes(data, arguments.samples), "small");
  if (arguments.lists_only) {
    return 0;
  }
  if (::isatty(STDERR_FILENO) != 0) {
    arguments.check.progress = [](size_t done, size_t all) {
      std::fprintf(stderr, "\r%zu/%zu%s", done, all, done == all ? "\n" : "");
    };
  }
  const CheckReport report = check_files(data, arguments.check);
  print_files(data, report);
  return report.broken.empty() ? 0 : static_cast<int>(ErrorCode::data);
}

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc >= 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("gle-data " GLE_VERSION " (%s)\n", decoder_versions().c_str());
    return 0;
  }
  if (argc < 2 || std::strcmp(argv[1], "check") != 0) {
    fail(ErrorCode::usage, "expected 'check'; try --help");
  }
  return check(parse(argc, argv));
}

}  // namespace

}  // namespace gle::data

int main(int argc, char** argv) {
  try {
    return gle::data::main(argc, argv);
  } catch (const gle::Error& e) {
    std::fprintf(stderr, "gle-data: %s\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::fputs("gle-data: out of memory\n", stderr);
    return static_cast<int>(gle::ErrorCode::memory);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-data: %s\n", e.what());
    return 1;
  }
}
