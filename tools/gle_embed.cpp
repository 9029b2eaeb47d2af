// Embeddings of images, streamed to a folder that gle-eval and gle-search read.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/files/crc32c.h"
#include "retrieval/embedding_folder.h"
#include "retrieval/strategies.h"
#include "tools/cli/dataset.h"
#include "tools/cli/device.h"
#include "tools/cli/model.h"
#include "tools/cli/own_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signals.h"
#include "tools/cli/trained_on.h"
#include "tools/cli/unreadable.h"

namespace gle::tools {

namespace {

struct Arguments {
  std::vector<std::string> inputs;  // models, and at the end the images
  std::string out;
  std::string split = "test";
  bool overwrite = false;
  ForwardOptions forward;
  float max_share = -1;
  float beta = -1;
  DatasetArguments data;
  ModelOptions model;
  DeviceOptions device;
  Verbosity verbosity;
};

std::vector<EmbeddedItem> descriptions(const data::Dataset& data, const std::vector<uint32_t>& items) {
  std::vector<EmbeddedItem> result;
  for (const uint32_t i : items) {
    const data::Item& item = data.items[i];
    result.push_back({.path = item.path,
                      .class_name = item.label < 0 ? "" : data.class_names[static_cast<size_t>(item.label)],
                      .label = item.label,
                      .camera = item.camera,
                      .query = item.query,
                      .gallery = item.gallery});
  }
  return result;
}

// What tells a file that was changed, without reading it. That one is missing is said by whoever reads it.
std::string state_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return "missing";
  }
  return std::to_string(found.st_size) + " " + std::to_string(found.st_mtim.tv_sec) + " " +
         std::to_string(found.st_mtim.tv_nsec);
}

std::string source_of(const data::Dataset& data, const data::Item& item) {
  std::string text = item.path;
  for (const int number : {item.box.x, item.box.y, item.box.width, item.box.height}) {
    text += " " + std::to_string(number);
  }
  if (item.shard < 0) {
    return text + " " + state_of(data.folder->path() + "/" + item.path) + "\n";
  }
  return text + " " + std::to_string(item.shard) + " " + std::to_string(item.offset) + " " + std::to_string(item.size) +
         "\n";
}

// Of what the images are made of: changes if a box, a file or a shard does.
uint32_t checksum_of(const data::Dataset& data, const std::vector<uint32_t>& items) {
  uint32_t sum = 0;
  const auto add = [&](const std::string& text) { sum = crc32c(std::as_bytes(std::span(text)), sum); };
  for (const auto& shard : data.shards) {
    add(shard->name() + " " + state_of(shard->name()) + "\n");
  }
  for (const uint32_t i : items) {
    add(source_of(data, data.items[i]));
  }
  return sum;
}

std::string job_of(const Arguments& arguments, const std::vector<OpenedModel>& models, const data::Dataset& data,
                   const std::vector<uint32_t>& items) {
  nlohmann::json job = {{"data", std::filesystem::absolute(arguments.inputs.back()).lexically_normal().string()},
                        {"dataset", data.name},
                        {"images", checksum_of(data, items)},
                        {"train_classes", arguments.data.train_classes},
                        {"split", arguments.split},
                        {"exif", arguments.data.exif},
                        {"network", arguments.model.network},
                        {"input", arguments.model.input},
                        {"slope", arguments.forward.last_slope},
                        {"flip", arguments.forward.flip},
                        {"models", notes_of(models)}};
  if (arguments.forward.max_share) {
    job["max_share"] = *arguments.forward.max_share;
  }
  if (arguments.forward.beta) {
    job["beta"] = *arguments.forward.beta;
  }
  return job.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths may be of any bytes
}

void say(const Verbosity& verbosity, const std::string& what) {
  if (!verbosity.quiet) {
    std::fprintf(stderr, "%s\n", what.c_str());
  }
}

// A folder of embeddings, or one that is on its way to be.
bool is_begun(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::ranges::any_of(std::array{"meta.json", "progress.json", "embeddings.npy.partial"},
                             [&](const char* name) { return std::filesystem::exists(folder / name, ignored); });
}

// How far the folder is that the first rank writes.
struct Begun {
  bool complete = false;
  int64_t rows = 0;
};

Begun begun_by(Comm& comm, const std::optional<EmbeddingWriter>& writer) {
  double numbers[2] = {};
  if (writer) {
    numbers[0] = writer->complete() ? 1 : 0;
    numbers[1] = static_cast<double>(writer->rows());
  }
  comm.all_reduce(numbers);
  return {numbers[0] != 0, static_cast<int64_t>(numbers[1])};
}

int run(Comm& comm, Arguments arguments) {
  if (arguments.inputs.size() < 2) {
    fail(ErrorCode::usage, "a model and images are needed, got '", arguments.inputs[0], "' alone");
  }
  const Verbosity verbosity = of_rank(comm, arguments.verbosity);
  if (comm.rank() == 0) {
    require_not_the_data(arguments.out, arguments.inputs.back());
    if (!is_begun(arguments.out)) {
      require_empty(arguments.out);
    }
  }
  const auto backend = make_backend(for_rank(arguments.device, comm));
  const std::vector<std::string> paths(arguments.inputs.begin(), arguments.inputs.end() - 1);
  const auto data = open_dataset_of(paths, arguments.inputs.back(), arguments.data, verbosity);
  const std::vector<uint32_t> items = items_of_split(*data, arguments.split);
  if (items.empty()) {
    fail(ErrorCode::data, arguments.inputs.back(), ": has no image in --split ", arguments.split);
  }
  const std::vector<OpenedModel> models = open_models(*backend, paths, arguments.model);
  const std::vector<EmbeddingModel> embedders = embedding_models(models, arguments.forward);
  std::optional<EmbeddingWriter> writer;
  if (comm.rank() == 0) {
    writer.emplace(arguments.out, job_of(arguments, models, *data, items), descriptions(*data, items),
                   embedding_dimensions(embedders), arguments.overwrite);
  }
  const Begun begun = begun_by(comm, writer);
  if (begun.complete) {
    say(verbosity, arguments.out + ": complete already");
    return 0;
  }
  const int64_t batch = arguments.data.batch;
  const int64_t first_batch = begun.rows / batch;
  int64_t done = first_batch * batch;
  if (writer) {
    writer->cut_to(done);
  }
  if (done > 0) {
    say(verbosity,
        arguments.out + ": continues at image " + std::to_string(done) + " of " + std::to_string(items.size()));
  }

  watch_stop_signals();
  Progress progress("embedding", std::ssize(items), verbosity, "img", done);
  using Clock = std::chrono::steady_clock;
  auto saved = Clock::now();
  const auto take = [&](const EmbeddedBatch& embedded) {
    done += embedded.rows.rows;
    progress.update(done);
    if (writer) {
      writer->append(embedded.rows);
      if (Clock::now() - saved > std::chrono::seconds(5)) {
        writer->save();
        saved = Clock::now();
      }
    }
    return !stop_signalled();
  };
  reading_pictures(*data, arguments.inputs.back(), [&] {
    embed(*backend, embedders, data, items, arguments.data.embed_options(comm), take, first_batch);
  });
  progress.finish();
  if (done < std::ssize(items)) {
    if (writer) {
      writer->save();
      std::fprintf(stderr, "gle-embed: stopped after %lld of %zu images; start it again to continue\n",
                   static_cast<long long>(done), items.size());
    }
    return kStoppedBySignal;
  }
  if (writer) {
    writer->finish();
  }
  if (!verbosity.quiet) {
    std::printf("%s: %zu embeddings of %lld numbers\n", arguments.out.c_str(), items.size(),
                static_cast<long long>(embedding_dimensions(embedders)));
  }
  return 0;
}

int main(int argc, char** argv) {
  Arguments arguments;
  Program program("gle-embed",
                  "Embeddings of images: a folder with embeddings.npy, labels.npy, ids.csv and meta.json. Several "
                  "models make an ensemble: their embeddings stand side by side. What was interrupted continues when "
                  "started again. Class folders without a split have that of the run whose model it is. Started by "
                  "mpirun, ranks share the work.",
                  "gle-embed runs/demo data/omniglot.tar.gz --out embedded");
  CLI::App& app = program.options();
  app.add_option(
         "MODEL... IMAGES", arguments.inputs,
         "weights, checkpoints or folders of runs; then a data set, a folder of pictures, a .txt list or a picture")
      ->required();
  app.add_option("--out", arguments.out, "folder to write")->option_text("FOLDER")->required();
  app.add_option("--split", arguments.split, "which images: test, query, gallery, train or all")
      ->option_text("NAME")
      ->check(CLI::IsMember({"test", "query", "gallery", "train", "all"}));
  app.add_flag("--overwrite", arguments.overwrite, "replace embeddings of another job");
  app.add_option("--slope", arguments.forward.last_slope, "GL++: of the last activation, for negative values")
      ->option_text("S");
  const CLI::Option* max_share =
      app.add_option("--max-share", arguments.max_share, "GL++: pooling of this share of maximum, the rest average")
          ->option_text("A")
          ->default_str("")
          ->check(CLI::Range(0.0, 1.0));
  const CLI::Option* beta = app.add_option("--beta", arguments.beta, "GL++: f / |f| + B f")
                                ->option_text("B")
                                ->default_str("")
                                ->check(CLI::NonNegativeNumber);
  app.add_flag("--flip", arguments.forward.flip, "GL++: mean with the mirror image's");
  add_dataset_options(app, arguments.data);
  add_model_options(app, arguments.model);
  add_device_options(app, arguments.device);
  add_verbosity_options(app, arguments.verbosity);
  return program.run_ranks(argc, argv, [&](Comm& comm) {
    if (max_share->count() > 0) {
      arguments.forward.max_share = arguments.max_share;
    }
    if (beta->count() > 0) {
      arguments.forward.beta = arguments.beta;
    }
    return run(comm, arguments);
  });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
