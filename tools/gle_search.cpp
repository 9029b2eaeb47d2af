// The nearest images to a picture, in a folder that gle-embed made.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <string>
#include <vector>

#include "data/images.h"
#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "retrieval/embedding_folder.h"
#include "retrieval/nearest.h"
#include "tools/approximate.h"
#include "tools/cli/device.h"
#include "tools/cli/model.h"
#include "tools/contact_sheet.h"

namespace gle::tools {

namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string index;
  std::vector<std::string> images;
  std::vector<std::string> models;
  int64_t k = 10;
  bool k_given = false;
  bool approximate = false;
  bool quiet = false;
  ApproximateOptions approximately;
  std::string json;
  std::string sheet;
  DeviceOptions device;
};

struct Found {
  Neighbours neighbours;
  double seconds = 0;
};

template <class Work>
Found timed(Work work) {
  const auto start = std::chrono::steady_clock::now();
  Found found{.neighbours = work(), .seconds = 0};
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return found;
}

// The networks that the index was made with, which must be the same files still.
std::vector<OpenedModel> models_of(Backend& backend, const Arguments& arguments, const Json& job) {
  const Json& noted = job.at("models");
  std::vector<std::string> paths = arguments.models;
  if (paths.empty()) {
    for (const Json& model : noted) {
      paths.push_back(model.at("path").get<std::string>());
    }
  }
  std::vector<OpenedModel> models = open_models(
      backend, paths, {.network = job.at("network").get<std::string>(), .input = job.at("input").get<std::string>()});
  for (size_t i = 0; i < models.size(); ++i) {
    if (i >= noted.size() || models.size() != noted.size() || noted[i].at("crc32c") != models[i].checksum) {
      fail(ErrorCode::weights, models[i].path, ": is not the model that ", arguments.index, " was made with");
    }
  }
  return models;
}

ForwardOptions forward_of(const Json& job) {
  ForwardOptions options{.last_slope = job.at("slope").get<float>(), .flip = job.at("flip").get<bool>()};
  if (job.contains("max_share")) {
    options.max_share = job["max_share"].get<float>();
  }
  if (job.contains("beta")) {
    options.beta = job["beta"].get<float>();
  }
  return options;
}

Json json_of(const Arguments& arguments, const EmbeddingFolder& index, const Neighbours& found) {
  Json queries = Json::array();
  for (size_t q = 0; q < arguments.images.size(); ++q) {
    Json list = Json::array();
    for (size_t i = 0; i < static_cast<size_t>(found.k); ++i) {
      const size_t at = q * static_cast<size_t>(found.k) + i;
      if (found.indices[at] >= 0) {
        const EmbeddedItem& item = index.items[static_cast<size_t>(found.indices[at])];
        list.push_back({{"row", found.indices[at]},
                        {"distance", std::sqrt(found.distances[at])},
                        {"path", item.path},
                        {"class", item.class_name}});
      }
    }
    queries.push_back({{"image", arguments.images[q]}, {"neighbours", std::move(list)}});
  }
  return queries;
}

void print_text(const Json& queries) {
  for (const Json& query : queries) {
    std::printf("%s\n", query["image"].get<std::string>().c_str());
    int rank = 0;
    for (const Json& n : query["neighbours"]) {
      std::printf("  %3d  %10.5f  %s\n", ++rank, n["distance"].get<double>(), n["path"].get<std::string>().c_str());
    }
  }
}

// The data set's item of each row, null where it is gone. A picture may have several, by its boxes: they come in the
// order of the rows.
std::vector<const data::Item*> items_of_rows(const EmbeddingFolder& index, const data::Dataset& data,
                                             const std::string& split) {
  std::map<std::string, std::queue<const data::Item*>> by_path;
  for (const uint32_t i : items_of_split(data, split)) {
    by_path[data.items[i].path].push(&data.items[i]);
  }
  std::vector<const data::Item*> result;
  for (const EmbeddedItem& row : index.items) {
    std::queue<const data::Item*>& left = by_path[row.path];
    result.push_back(left.empty() ? nullptr : left.front());
    if (!left.empty()) {
      left.pop();
    }
  }
  return result;
}

void write_sheet(const Arguments& arguments, const data::Dataset& queries, const EmbeddingFolder& index,
                 const Json& job, const Neighbours& found) {
  const data::DecodeOptions decode{.exif = job.at("exif").get<bool>() ? data::Exif::rotate : data::Exif::ignore};
  const auto name = job.at("dataset").get<std::string>();
  const auto path = job.at("data").get<std::string>();
  const data::Dataset gallery =
      data::load_images_or_dataset(path, {.dataset = name == "images" ? "" : name,
                                          .train_classes = data::parse_class_range(job.at("train_classes")),
                                          .outside = data::Outside::allow});
  const std::vector<const data::Item*> items = items_of_rows(index, gallery, job.at("split"));
  ContactSheet sheet(static_cast<int>(queries.items.size()), static_cast<int>(found.k) + 1);
  for (size_t q = 0; q < queries.items.size(); ++q) {
    sheet.place(static_cast<int>(q), 0, queries, queries.items[q], decode);
    for (size_t i = 0; i < static_cast<size_t>(found.k); ++i) {
      const int32_t row = found.indices[q * static_cast<size_t>(found.k) + i];
      if (row < 0) {
        continue;
      }
      const data::Item* item = items[static_cast<size_t>(row)];
      if (item == nullptr) {
        fail(ErrorCode::data, path, ": has no '", index.items[static_cast<size_t>(row)].path,
             "' any more; the index is of another state of it");
      }
      sheet.place(static_cast<int>(q), static_cast<int>(i) + 1, gallery, *item, decode);
    }
  }
  write_atomically(arguments.sheet, {sheet.png()});
}

int run(const Arguments& arguments) {
  const auto backend = make_backend(arguments.device);
  ThreadPool pool(arguments.device.threads);
  const EmbeddingFolder index = EmbeddingFolder::read(arguments.index);
  const int64_t k = arguments.k_given ? arguments.k : std::min(arguments.k, index.view().rows);
  const Json job = Json::parse(index.job);
  std::vector<OpenedModel> models;
  ForwardOptions forward;
  try {
    models = models_of(*backend, arguments, job);
    forward = forward_of(job);
  } catch (const Json::exception& e) {
    fail(ErrorCode::data, arguments.index, ": meta.json does not tell how to embed a picture: ", e.what());
  }
  const auto queries = std::make_shared<data::Dataset>(
      data::image_files(std::vector<std::filesystem::path>(arguments.images.begin(), arguments.images.end())));
  std::vector<uint32_t> all(queries->items.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  const EmbedOptions options{.decode = {.exif = job.value("exif", false) ? data::Exif::rotate : data::Exif::ignore},
                             .batch = 32};
  const EmbeddedRows embedded = embed_all(*backend, embedding_models(models, forward), queries, all, options);

  Found found = timed([&] {
    Distances distances(*backend, pool, embedded.view(), index.view());
    return nearest(distances, k, Self::included);
  });
  if (arguments.approximate) {
    const Found exact = std::move(found);
    found = timed([&] { return approximately_nearest(embedded.view(), index.view(), k, arguments.approximately); });
    if (!arguments.quiet) {
      std::fprintf(stderr, "approximate: %.4f of the exact %lld nearest found, %.3f s with building; exact %.3f s\n",
                   recall_against(exact.neighbours, found.neighbours), static_cast<long long>(k), found.seconds,
                   exact.seconds);
    }
  }
  const Json result = json_of(arguments, index, found.neighbours);
  if (!arguments.sheet.empty()) {
    write_sheet(arguments, *queries, index, job, found.neighbours);
  }
  // File names may be of any bytes.
  const std::string text = result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (arguments.json == "-") {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  print_text(result);
  if (!arguments.json.empty()) {
    write_atomically(arguments.json, {std::as_bytes(std::span(text))});
  }
  return 0;
}

int main(int argc, char** argv) {
  Arguments arguments;
  Program program("gle-search",
                  "The nearest images to pictures, by the networks that made the index. Distances are Euclidean; equal "
                  "ones rank by index.",
                  "gle-search embedded picture.jpg --k 5 --sheet found.png");
  CLI::App& app = program.options();
  app.add_option("INDEX", arguments.index, "a folder of gle-embed's")->required();
  app.add_option("IMAGE", arguments.images, "pictures to look for")->required()->default_str("");
  const CLI::Option* k = app.add_option("--k", arguments.k, "how many; unless given, no more than there are")
                             ->option_text("K")
                             ->check(CLI::Range(1, 100000));
  app.add_option("--model", arguments.models, "where the index's models are now, in its order")
      ->option_text("FILE")
      ->allow_extra_args(false)
      ->default_str("");
  app.add_option("--json", arguments.json, "file for the result; - is stdout, instead of the text")
      ->option_text("FILE");
  app.add_option("--sheet", arguments.sheet, "PNG of the pictures and what was found")->option_text("FILE");
  app.add_flag("--approximate", arguments.approximate, "by faiss; says how many of the exact ones it found");
  app.add_option("--lists", arguments.approximately.lists, "approximate: cells; 0: 4 times the root of the rows")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--probes", arguments.approximately.probes, "approximate: cells looked into")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 24));
  add_device_options(app, arguments.device);
  app.add_flag("--quiet", arguments.quiet, "only results and errors");
  return program.run(argc, argv, [&] {
    arguments.k_given = k->count() > 0;
    return run(arguments);
  });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
