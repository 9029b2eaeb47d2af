#include "tools/evaluation_source.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "models/files/npy.h"
#include "retrieval/embedding_folder.h"
#include "tools/cli/progress.h"
#include "tools/cli/trained_on.h"
#include "tools/cli/unreadable.h"

namespace gle::tools {

namespace {

Embeddings view_of(const std::vector<float>& values, int64_t dimensions) {
  return {values.data(), dimensions == 0 ? 0 : static_cast<int64_t>(values.size()) / dimensions, dimensions};
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

void append_row(const Embeddings& from, int64_t row, std::vector<float>& to) {
  to.insert(to.end(), from[row].begin(), from[row].end());
}

class OfModels : public EvaluationSource {
 public:
  OfModels(Backend& backend, Comm& comm, const std::vector<std::string>& models, const std::string& path,
           const ModelOptions& model, DatasetArguments arguments, const Verbosity& verbosity)
      : backend_(backend),
        path_(path),
        data_(open_dataset_of(models, path, arguments, verbosity)),
        options_(arguments.embed_options(comm)),
        verbosity_(verbosity) {
    notes_ = {{"data", absolute(path)}, {"train_classes", arguments.train_classes}, {"input", model.input}};
    const std::vector<uint32_t> queries = data_->query_items();
    const std::vector<uint32_t> gallery = data_->gallery_items();
    if (queries.empty() || gallery.empty()) {
      fail(ErrorCode::data, path, ": has ", queries.size(), " queries and ", gallery.size(), " gallery images to test");
    }
    if (data_->class_names.empty()) {
      fail(ErrorCode::data, path, ": its pictures have no classes; put those of a class into a folder of its own");
    }
    identities_ = identities_of(*data_, queries, gallery);
    for (uint32_t i = 0; i < data_->items.size(); ++i) {
      if (data_->items[i].query || data_->items[i].gallery) {
        items_.push_back(i);
      }
    }
    models_ = open_models(backend, models, model);
    notes_["models"] = notes_of(models_);
    embedders_ = embedding_models(models_, {});
  }

  std::string dataset() const override { return data_->name; }
  nlohmann::json notes() const override { return notes_; }
  const Identities& identities() const override { return identities_; }

  void announce(std::vector<std::vector<Strategy>> used) override {
    for (std::vector<Strategy>& strategies : used) {
      coming_.push_back(of_the_network(strategies));
    }
  }

  const EvaluationSet& embed(std::span<const Strategy> used, const StrategyValues& values) override {
    const std::vector<Strategy> wanted = of_the_network(used);
    if (sets_.find(wanted) == sets_.end()) {
      make(wanted, values);
    }
    return sets_.at(wanted);
  }

 private:
  static std::vector<Strategy> of_the_network(std::span<const Strategy> used) {
    std::vector<Strategy> wanted(used.begin(), used.end());
    std::erase(wanted, Strategy::rerank);
    std::sort(wanted.begin(), wanted.end());
    return wanted;
  }

  // Sets of embeddings that may be in memory together.
  size_t room() const {
    constexpr int64_t kBytes = int64_t{2} << 30;
    const int64_t of_one = std::ssize(items_) * embedding_dimensions(embedders_) * int64_t{sizeof(float)};
    return static_cast<size_t>(std::max<int64_t>(1, kBytes / of_one));
  }

  // `wanted`, and as many of those after it as there is room for.
  void make(const std::vector<Strategy>& wanted, const StrategyValues& values) {
    std::vector<std::vector<Strategy>> together{wanted};
    for (auto next = std::find(coming_.begin(), coming_.end(), wanted); next != coming_.end(); ++next) {
      if (together.size() < room() && std::find(together.begin(), together.end(), *next) == together.end()) {
        together.push_back(*next);
      }
    }
    sets_.clear();
    std::vector<ForwardOptions> ways;
    std::vector<EvaluationSet*> sets;
    for (const std::vector<Strategy>& strategies : together) {
      ways.push_back(forward_options(strategies, values));
      sets.push_back(&sets_[strategies]);
      sets.back()->identities = identities_;
      sets.back()->dimensions = embedding_dimensions(embedders_);
      const auto width = static_cast<size_t>(sets.back()->dimensions);
      sets.back()->gallery_values.reserve(identities_.gallery_labels.size() * width);
      sets.back()->query_values.reserve(identities_.same_set ? 0 : identities_.query_labels.size() * width);
    }
    Progress progress(together.size() == 1 ? "embedding" : "embedding in " + std::to_string(together.size()) + " ways",
                      std::ssize(items_), verbosity_, "img");
    const auto take = [&](std::span<const EmbeddedBatch> batches) {
      for (size_t way = 0; way < sets.size(); ++way) {
        keep(batches[way], *sets[way]);
      }
      progress.update(batches[0].first + batches[0].rows.rows);
      return true;
    };
    reading_pictures(*data_, path_, [&] { gle::embed(backend_, embedders_, ways, data_, items_, options_, take); });
  }

  void keep(const EmbeddedBatch& batch, EvaluationSet& set) const {
    for (int64_t row = 0; row < batch.rows.rows; ++row) {
      const data::Item& item = data_->items[items_[static_cast<size_t>(batch.first + row)]];
      if (item.gallery) {
        append_row(batch.rows, row, set.gallery_values);
      }
      if (item.query && !identities_.same_set) {
        append_row(batch.rows, row, set.query_values);
      }
    }
  }

  Backend& backend_;
  std::string path_;
  std::shared_ptr<const data::Dataset> data_;
  EmbedOptions options_;
  Verbosity verbosity_;
  nlohmann::json notes_;
  std::vector<OpenedModel> models_;
  std::vector<EmbeddingModel> embedders_;
  std::vector<uint32_t> items_;
  Identities identities_;
  std::vector<std::vector<Strategy>> coming_;
  std::map<std::vector<Strategy>, EvaluationSet> sets_;
};

class OfEmbeddings : public EvaluationSource {
 public:
  OfEmbeddings(std::string dataset, nlohmann::json notes, EvaluationSet set)
      : dataset_(std::move(dataset)), notes_(std::move(notes)), plain_(std::move(set)) {
    check(plain_.identities, plain_.queries().rows, plain_.gallery().rows);
    forget_unknown_cameras(plain_.identities);
  }

  std::string dataset() const override { return dataset_; }
  nlohmann::json notes() const override { return notes_; }
  const Identities& identities() const override { return plain_.identities; }
  void announce(std::vector<std::vector<Strategy>>) override {}

  const EvaluationSet& embed(std::span<const Strategy> used, const StrategyValues& values) override {
    for (const Strategy strategy : used) {
      require(strategy == Strategy::beta || strategy == Strategy::rerank, "strategies", letter_of(strategy),
              " needs the network and the images; embeddings alone allow B and R");
    }
    if (!uses(used, Strategy::beta)) {
      return plain_;
    }
    normalised_.identities = plain_.identities;
    normalised_.dimensions = plain_.dimensions;
    normalised_.gallery_values = beta_normalised(plain_.gallery(), values.beta);
    if (!plain_.identities.same_set) {
      normalised_.query_values = beta_normalised(plain_.queries(), values.beta);
    }
    return normalised_;
  }

 private:
  std::string dataset_;
  nlohmann::json notes_;
  EvaluationSet plain_;
  EvaluationSet normalised_;
};

// Files of embeddings are data here, whatever the reader calls them.
NpyArray read_array(const std::string& path) {
  try {
    return read_npy(path);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::weights) {
      fail(ErrorCode::data, e.what());
    }
    throw;
  }
}

// "float64 [40, 1]"
std::string kind_of(const NpyArray& array) {
  const std::map<char, std::string> names = {{'f', "float"}, {'i', "int"}, {'u', "uint"}, {'b', "bool"}, {'U', "text"}};
  std::string text = names.at(array.kind);
  if (array.kind != 'b' && array.kind != 'U') {
    text += std::to_string(8 * array.item_bytes);
  }
  text += " [";
  for (size_t axis = 0; axis < array.shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(array.shape[axis]);
  }
  return text + "]";
}

std::vector<float> read_rows(const std::string& path, int64_t& dimensions) {
  const NpyArray array = read_array(path);
  if (array.shape.size() != 2 || array.kind != 'f') {
    fail(ErrorCode::data, path, ": holds ", kind_of(array), "; embeddings are floats [rows, dimensions]: save ",
         array.kind == 'f' ? "array.reshape(len(array), -1)" : "array.astype(\"float32\")");
  }
  if (dimensions != 0 && array.shape[1] != dimensions) {
    fail(ErrorCode::data, path, ": has ", array.shape[1], " dimensions, the other embeddings ", dimensions);
  }
  dimensions = array.shape[1];
  std::vector<float> values = array.floats();
  check(view_of(values, dimensions), path.c_str());
  return values;
}

std::vector<int32_t> read_integers(const std::string& path) {
  const NpyArray array = read_array(path);
  const bool listed = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  const bool whole = array.kind != 'f' && array.kind != 'U';
  if (!listed || !whole) {
    fail(ErrorCode::data, path, ": holds ", kind_of(array), "; whole numbers [rows] are expected, one for each ",
         "embedding: save array", whole ? "" : ".astype(\"int64\")", listed ? "" : ".reshape(len(array))");
  }
  std::vector<int32_t> result;
  for (const int64_t value : array.integers()) {
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
      fail(ErrorCode::data, path, ": ", value, " does not fit in 32 bits");
    }
    result.push_back(static_cast<int32_t>(value));
  }
  return result;
}

bool names(const std::vector<int32_t>& labels, int32_t label) {
  return std::ranges::find(labels, label) != labels.end();
}

// Labels that `distractors` names become kDistractor.
std::vector<int32_t> read_labels(const std::string& path, const std::vector<int32_t>& distractors) {
  std::vector<int32_t> labels = read_integers(path);
  for (size_t row = 0; row < labels.size(); ++row) {
    if (names(distractors, labels[row])) {
      labels[row] = Identities::kDistractor;
    } else if (labels[row] < 0 && labels[row] != Identities::kJunk) {
      fail(ErrorCode::data, path, ": row ", row, " holds the label ", labels[row],
           "; labels are 0 or more, or -1 for junk; a label that nobody has is named by --distractors");
    }
  }
  return labels;
}

}  // namespace

Embeddings EvaluationSet::queries() const {
  return identities.same_set ? gallery() : view_of(query_values, dimensions);
}

Embeddings EvaluationSet::gallery() const { return view_of(gallery_values, dimensions); }

std::unique_ptr<EvaluationSource> source_of_models(Backend& backend, Comm& comm, const std::vector<std::string>& models,
                                                   const std::string& data, const ModelOptions& model,
                                                   const DatasetArguments& arguments, const Verbosity& verbosity) {
  return std::make_unique<OfModels>(backend, comm, models, data, model, arguments, verbosity);
}

std::unique_ptr<EvaluationSource> source_of_folder(const std::string& folder) {
  const EmbeddingFolder found = EmbeddingFolder::read(folder);
  check(found.view(), folder.c_str());
  EvaluationSet set;
  set.dimensions = found.view().dimensions;
  Identities& id = set.identities;
  id.same_set = std::all_of(found.items.begin(), found.items.end(),
                            [](const EmbeddedItem& item) { return item.query == item.gallery; });
  for (size_t i = 0; i < found.items.size(); ++i) {
    const EmbeddedItem& item = found.items[i];
    if (item.query && !id.same_set) {
      id.self.push_back(item.gallery ? static_cast<int32_t>(id.gallery_labels.size()) : -1);
    }
    if (item.gallery) {
      id.gallery_labels.push_back(item.label);
      id.gallery_cameras.push_back(item.camera);
      append_row(found.view(), static_cast<int64_t>(i), set.gallery_values);
    }
    if (item.query) {
      id.query_labels.push_back(item.label);
      id.query_cameras.push_back(item.camera);
      if (!id.same_set) {
        append_row(found.view(), static_cast<int64_t>(i), set.query_values);
      }
    }
  }
  if (std::ranges::all_of(id.self, [](int32_t place) { return place < 0; })) {
    id.self.clear();
  }
  if (id.query_labels.empty() || id.gallery_labels.empty()) {
    fail(ErrorCode::data, folder, ": has ", id.query_labels.size(), " queries and ", id.gallery_labels.size(),
         " gallery images to test; embed with --split test");
  }
  if (std::all_of(id.gallery_labels.begin(), id.gallery_labels.end(), [](int32_t label) { return label < 0; })) {
    fail(ErrorCode::data, folder, ": its images have no labels");
  }
  const nlohmann::json job = nlohmann::json::parse(found.job, nullptr, false);
  const bool told = job.is_object() && job.contains("dataset") && job["dataset"].is_string();
  return std::make_unique<OfEmbeddings>(told ? job["dataset"].get<std::string>() : "embeddings",
                                        nlohmann::json{{"embeddings", absolute(folder)}, {"job", job}}, std::move(set));
}

std::unique_ptr<EvaluationSource> source_of_arrays(const ArrayPaths& paths) {
  require_usage(!paths.labels.empty(), "--embeddings needs --labels");
  require_usage(paths.query_embeddings.empty() == paths.query_labels.empty(),
                "--query-embeddings and --query-labels belong together");
  EvaluationSet set;
  Identities& id = set.identities;
  set.gallery_values = read_rows(paths.embeddings, set.dimensions);
  id.gallery_labels = read_labels(paths.labels, paths.distractors);
  if (!paths.cameras.empty()) {
    id.gallery_cameras = read_integers(paths.cameras);
  }
  id.same_set = paths.query_embeddings.empty();
  if (id.same_set) {
    require_usage(paths.query_cameras.empty(), "--query-cameras needs --query-embeddings");
    id.query_labels = id.gallery_labels;
    id.query_cameras = id.gallery_cameras;
  } else {
    set.query_values = read_rows(paths.query_embeddings, set.dimensions);
    id.query_labels = read_labels(paths.query_labels, {});
    if (!paths.query_cameras.empty()) {
      id.query_cameras = read_integers(paths.query_cameras);
    }
  }
  nlohmann::json notes = {{"embeddings", absolute(paths.embeddings)}, {"labels", absolute(paths.labels)}};
  for (const auto& [name, path] :
       {std::pair{"cameras", paths.cameras}, std::pair{"query_embeddings", paths.query_embeddings},
        std::pair{"query_labels", paths.query_labels}, std::pair{"query_cameras", paths.query_cameras}}) {
    if (!path.empty()) {
      notes[name] = absolute(path);
    }
  }
  return std::make_unique<OfEmbeddings>("embeddings", std::move(notes), std::move(set));
}

}  // namespace gle::tools
