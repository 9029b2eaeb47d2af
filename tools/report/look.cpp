#include "tools/report/look.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/error.h"
#include "models/model_file.h"
#include "retrieval/evaluate.h"
#include "retrieval/input.h"
#include "retrieval/nearest.h"
#include "retrieval/tsne.h"
#include "tools/report/thumbnails.h"
#include "training/epochs.h"

namespace gle::report {

namespace {

constexpr int kGridSide = 96;
constexpr int kMapSide = 40;

// The test items of as many whole classes, evenly spread over all, as fit into `most` images.
std::vector<uint32_t> some_test_items(const data::Dataset& data, int64_t most) {
  std::map<int32_t, std::vector<uint32_t>> by_class;
  for (uint32_t i = 0; i < data.items.size(); ++i) {
    const data::Item& item = data.items[i];
    if ((item.query || item.gallery) && item.label >= 0) {
      by_class[item.label].push_back(i);
    }
  }
  std::vector<const std::vector<uint32_t>*> classes;
  size_t all = 0;
  for (const auto& [label, items] : by_class) {
    classes.push_back(&items);
    all += items.size();
  }
  const double share = all == 0 ? 1 : std::min(1.0, static_cast<double>(most) / static_cast<double>(all));
  std::vector<uint32_t> chosen;
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto before = static_cast<int64_t>(std::floor(static_cast<double>(c) * share));
    const auto after = static_cast<int64_t>(std::floor(static_cast<double>(c + 1) * share));
    if (after > before) {
      chosen.insert(chosen.end(), classes[c]->begin(), classes[c]->end());
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

struct Rows {
  std::vector<uint32_t> items;
  std::vector<float> values;
  int64_t dimensions = 0;

  Embeddings view() const { return {values.data(), static_cast<int64_t>(items.size()), dimensions}; }
};

Rows rows_where(const std::vector<uint32_t>& items, const EmbeddedRows& embedded, const data::Dataset& data,
                bool data::Item::*role) {
  Rows rows{.items = {}, .values = {}, .dimensions = embedded.dimensions};
  for (size_t i = 0; i < items.size(); ++i) {
    if (data.items[items[i]].*role) {
      const auto row = embedded.view()[static_cast<int64_t>(i)];
      rows.items.push_back(items[i]);
      rows.values.insert(rows.values.end(), row.begin(), row.end());
    }
  }
  return rows;
}

// What one query found: gallery rows, nearest first; none if nothing in the gallery could match.
struct Found {
  std::vector<int32_t> nearest;
  std::vector<float> distances;
  bool counts = false;
  bool hit = false;
};

std::vector<Found> search(Backend& backend, ThreadPool& pool, const Rows& queries, const Rows& gallery,
                          const data::Dataset& data, int64_t k) {
  const Identities id = identities_of(data, queries.items, gallery.items);
  std::vector<Found> found(queries.items.size());
  Distances distances(backend, pool, queries.view(), gallery.view());
  distances.for_each_row([&](int64_t query, std::span<float> row) {
    Found& result = found[static_cast<size_t>(query)];
    const int32_t label = id.query_labels[static_cast<size_t>(query)];
    for (size_t g = 0; g < row.size(); ++g) {
      if (ignores(id, query, static_cast<int64_t>(g))) {
        row[g] = INFINITY;
      } else {
        result.counts = result.counts || id.gallery_labels[g] == label;
      }
    }
    result.nearest.resize(static_cast<size_t>(k));
    result.nearest.resize(static_cast<size_t>(select_nearest(row, k, kNobody, result.nearest.data())));
    std::erase_if(result.nearest, [&](int32_t g) { return std::isinf(row[static_cast<size_t>(g)]); });
    for (const int32_t g : result.nearest) {
      result.distances.push_back(row[static_cast<size_t>(g)]);
    }
    result.hit = !result.nearest.empty() && id.gallery_labels[static_cast<size_t>(result.nearest.front())] == label;
  });
  return found;
}

// `wanted` of the list, evenly spread over it.
std::vector<size_t> spread(const std::vector<size_t>& list, size_t wanted) {
  std::vector<size_t> chosen;
  const size_t count = std::min(wanted, list.size());
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(list[(2 * i + 1) * list.size() / (2 * count)]);
  }
  return chosen;
}

std::string label_name(const data::Dataset& data, int32_t label) {
  return label >= 0 && static_cast<size_t>(label) < data.class_names.size()
             ? data.class_names[static_cast<size_t>(label)]
             : "distractor";
}

Retrieval grids(const std::vector<Found>& found, const Rows& queries, const Rows& gallery, const data::Dataset& data,
                const LookOptions& options) {
  Thumbnails thumbnails(data, options.decode);
  const auto shown = [&](uint32_t item, int32_t query_label, double distance) {
    const data::Item& of = data.items[item];
    return Shown{.name = of.path,
                 .label = label_name(data, of.label),
                 .picture = thumbnails.picture(item, kGridSide),
                 .distance = distance,
                 .match = of.label == query_label};
  };
  const auto row = [&](size_t query) {
    const int32_t label = data.items[queries.items[query]].label;
    Retrieval::Row result{.query = shown(queries.items[query], label, 0), .nearest = {}};
    for (size_t n = 0; n < found[query].nearest.size(); ++n) {
      const uint32_t item = gallery.items[static_cast<size_t>(found[query].nearest[n])];
      result.nearest.push_back(shown(item, label, std::sqrt(static_cast<double>(found[query].distances[n]))));
    }
    return result;
  };
  std::vector<size_t> hits;
  std::vector<size_t> failures;
  for (size_t q = 0; q < found.size(); ++q) {
    if (found[q].counts) {
      (found[q].hit ? hits : failures).push_back(q);
    }
  }
  Retrieval result;
  result.queries = static_cast<int64_t>(hits.size() + failures.size());
  result.gallery = static_cast<int64_t>(gallery.items.size());
  result.all_queries = static_cast<int64_t>(data.query_items().size());
  result.recall = result.queries == 0 ? 0 : static_cast<double>(hits.size()) / static_cast<double>(result.queries);
  const auto half = static_cast<size_t>(options.queries / 2);
  for (const size_t query : spread(failures, half)) {
    result.failures.push_back(row(query));
  }
  for (const size_t query : spread(hits, static_cast<size_t>(options.queries) - result.failures.size())) {
    result.hits.push_back(row(query));
  }
  return result;
}

EmbeddingMap map_of(Backend& backend, ThreadPool& pool, const std::vector<uint32_t>& items,
                    const EmbeddedRows& embedded, const data::Dataset& data, const LookOptions& options) {
  TsneOptions tsne_options;
  tsne_options.progress = [&](int done) { options.progress("mapping", done, tsne_options.iterations); };
  TsneMap plane = tsne(backend, pool, embedded.view(), tsne_options);
  EmbeddingMap map;
  map.positions = std::move(plane.positions);
  map.divergence = plane.divergences.back();
  map.sheet = Thumbnails(data, options.decode).sheet(items, kMapSide);
  std::map<int32_t, int32_t> numbers;
  for (const uint32_t item : items) {
    const int32_t label = data.items[item].label;
    const auto [place, fresh] = numbers.try_emplace(label, static_cast<int32_t>(numbers.size()));
    if (fresh) {
      map.class_names.push_back(label_name(data, label));
    }
    map.classes.push_back(place->second);
    map.names.push_back(data.items[item].path);
  }
  return map;
}

}  // namespace

void look_at_embeddings(Backend& backend, ThreadPool& pool, const EmbeddingModel& model,
                        const std::shared_ptr<const data::Dataset>& data, const LookOptions& options, Report& report) {
  const std::vector<uint32_t> items = some_test_items(*data, options.images);
  constexpr size_t kLeast = 4;
  if (items.size() < kLeast) {
    fail(ErrorCode::data, data->folder->path(), ": has ", items.size(), " test images; ", kLeast, " are the least");
  }
  const auto all = static_cast<int64_t>(items.size());
  const EmbeddedRows embedded =
      embed_all(backend, {&model, 1}, data, items,
                {.decode = options.decode, .batch = options.batch, .workers = options.workers}, [&](int64_t done) {
                  options.progress("embedding", done, all);
                  return true;
                });
  const Rows queries = rows_where(items, embedded, *data, &data::Item::query);
  const Rows gallery = rows_where(items, embedded, *data, &data::Item::gallery);
  if (!queries.items.empty() && gallery.items.size() > 1) {
    const auto found = search(backend, pool, queries, gallery, *data, options.neighbours);
    report.retrieval = grids(found, queries, gallery, *data, options);
  }
  report.map = map_of(backend, pool, items, embedded, *data, options);
}

void look_at_run(Backend& backend, ThreadPool& pool, const Run& run, const std::string& path,
                 const LookOptions& options, Report& report) {
  const auto leave_out = [&](const std::string& why) {
    report.why_no_pictures = why;
    report.why_no_refinement = why;
  };
  const std::filesystem::path checkpoint = run.checkpoint();
  if (checkpoint.empty()) {
    return leave_out("the run has no checkpoint; gle-train writes checkpoints/best.gle.");
  }
  TrainingConfig config = run.config;
  config.data.path = path.empty() ? config.data.path : path;
  if (config.data.path.empty()) {
    return leave_out("the run does not say what its data set is; --data PATH does.");
  }
  if (path.empty() && !std::filesystem::exists(config.data.path)) {
    return leave_out("the data set is not at " + config.data.path + "; --data PATH says where it is.");
  }
  const std::shared_ptr<const data::Dataset> trained = training_data(config);
  TrainingConfig whole = config;
  whole.evaluation.on = "none";
  std::shared_ptr<const data::Dataset> tested = training_data(whole);
  tested = tested->query_items().empty() ? trained : tested;
  const WeightFile file = read_weights(checkpoint.string());
  const std::unique_ptr<Network> network = open_network(backend, file);
  const EmbeddingModel model{
      .network = network.get(), .transform = inference_transform(description_of(file).input), .forward = {}};

  // A run that went wrong, or a picture that is broken, costs the part that needs it.
  const auto attempt = [](std::string& why_not, const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::data && e.code() != ErrorCode::not_finite) {
        throw;
      }
      why_not = e.what();
    }
  };
  attempt(report.why_no_pictures, [&] { look_at_embeddings(backend, pool, model, tested, options, report); });
  if (!network->classifier() || network->options().head.classes != trained->train_classes) {
    report.why_no_refinement = "the network's classifier is not one of the data set's training classes.";
    return;
  }
  attempt(report.why_no_refinement,
          [&] { report.refinement = look_at_refinement(backend, model, trained, config, options); });
}

}  // namespace gle::report
