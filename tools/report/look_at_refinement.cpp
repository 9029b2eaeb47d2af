#include <algorithm>
#include <cmath>
#include <numeric>

#include "losses/group_loss.h"
#include "tools/report/look.h"
#include "tools/report/thumbnails.h"
#include "training/recipe.h"

namespace gle::report {

namespace {

constexpr size_t kCandidates = 48;  // classes to choose the batch's from
constexpr size_t kClasses = 6;
constexpr size_t kConfused = 3;
constexpr size_t kSamples = 6;
constexpr int kLeastSteps = 5;
constexpr int kSide = 36;

struct Candidates {
  std::vector<uint32_t> items;  // class after class
  std::vector<int32_t> labels;
  std::vector<float> embeddings, logits;
  int64_t dimensions = 0, columns = 0;
};

Candidates candidates_of(const data::Dataset& data, size_t samples) {
  const data::ClassMembers members = data::train_members(data);
  std::vector<size_t> usable;
  for (size_t c = 0; c < members.of_class.size(); ++c) {
    if (members.of_class[c].size() >= 2) {
      usable.push_back(c);
    }
  }
  Candidates result;
  const size_t classes = std::min(kCandidates, usable.size());
  for (size_t i = 0; i < classes; ++i) {
    const std::vector<uint32_t>& of = members.of_class[usable[i * usable.size() / classes]];
    const size_t count = std::min(samples, of.size());
    for (size_t s = 0; s < count; ++s) {
      result.items.push_back(of[s * of.size() / count]);
      result.labels.push_back(data.items[result.items.back()].label);
    }
  }
  return result;
}

void run_network(Backend& backend, const EmbeddingModel& model, const std::shared_ptr<const data::Dataset>& data,
                 const LookOptions& options, Candidates& candidates) {
  data::Loader loader(data, {.transform = model.transform,
                             .decode = options.decode,
                             .workers = options.workers,
                             .on_bad = data::OnBad::error});
  loader.start(data::plan_in_order(candidates.items, options.batch), 0);
  const auto append = [&](const Tensor& tensor, std::vector<float>& to) {
    const size_t begin = to.size();
    to.resize(begin + static_cast<size_t>(tensor.elements()));
    backend.download(tensor, to.data() + begin);
    return tensor.channels();
  };
  data::Batch batch;
  while (loader.next(batch)) {
    Tensor images = batch.images;
    if (images.device() != backend.device()) {
      images = backend.new_tensor("images", batch.images.shape());
      backend.upload(batch.images.data(), images);
    }
    Context ctx{.backend = backend};
    const NetworkOutput output = model.network->forward(ctx, Var(images));
    candidates.dimensions = append(output.embedding.value(), candidates.embeddings);
    candidates.columns = append(output.logits.value(), candidates.logits);
  }
}

// The one that is recognised least, those it is confused with most, and others from all over.
std::vector<int32_t> batch_classes(const Candidates& candidates) {
  std::vector<int32_t> classes;
  for (const int32_t label : candidates.labels) {
    if (classes.empty() || classes.back() != label) {
      classes.push_back(label);
    }
  }
  const size_t count = classes.size();
  std::vector<double> taken(count * count, 0);  // the share of class a's samples that goes to class b
  size_t row = 0;
  for (size_t i = 0; i < candidates.labels.size(); ++i) {
    row += i > 0 && candidates.labels[i] != candidates.labels[i - 1] ? 1 : 0;
    const float* z = candidates.logits.data() + static_cast<int64_t>(i) * candidates.columns;
    const double largest = *std::max_element(z, z + candidates.columns);
    const double sum = std::accumulate(z, z + candidates.columns, 0.0,
                                       [&](double before, float v) { return before + std::exp(v - largest); });
    const auto samples = std::count(candidates.labels.begin(), candidates.labels.end(), candidates.labels[i]);
    for (size_t b = 0; b < count; ++b) {
      taken[row * count + b] += std::exp(z[classes[b]] - largest) / sum / static_cast<double>(samples);
    }
  }
  std::vector<size_t> chosen;
  const auto is_chosen = [&](size_t c) { return std::find(chosen.begin(), chosen.end(), c) != chosen.end(); };
  while (chosen.size() < std::min(kConfused, count)) {
    size_t best = count;
    double most = 0;
    for (size_t c = 0; c < count; ++c) {
      double score = chosen.empty() ? -taken[c * count + c] : 0;
      for (const size_t other : chosen) {
        score += taken[c * count + other] + taken[other * count + c];
      }
      if (!is_chosen(c) && (best == count || score > most)) {
        most = score;
        best = c;
      }
    }
    chosen.push_back(best);
  }
  const size_t others = std::min(kClasses, count) - chosen.size();
  for (size_t i = 0; i < others; ++i) {
    size_t c = (2 * i + 1) * count / (2 * others);
    while (is_chosen(c)) {
      c = (c + 1) % count;
    }
    chosen.push_back(c);
  }
  std::vector<int32_t> labels;
  for (const size_t c : chosen) {
    labels.push_back(classes[c]);
  }
  return labels;
}

Var rows_on_device(Backend& backend, const std::vector<float>& values, int64_t columns,
                   const std::vector<size_t>& rows) {
  std::vector<float> chosen;
  for (const size_t row : rows) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * columns;
    chosen.insert(chosen.end(), begin, begin + columns);
  }
  Tensor tensor = backend.new_tensor("refinement", {static_cast<int64_t>(rows.size()), columns});
  backend.upload(chosen.data(), tensor);
  return Var(std::move(tensor));
}

// Where a name is in the list, at whose end it is put if it is new.
int32_t place_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto place = static_cast<int32_t>(found - names.begin());
  if (found == names.end()) {
    names.push_back(name);
  }
  return place;
}

}  // namespace

Refinement look_at_refinement(Backend& backend, const EmbeddingModel& model,
                              const std::shared_ptr<const data::Dataset>& data, const TrainingConfig& config,
                              const LookOptions& options) {
  const auto samples = std::clamp(static_cast<size_t>(config.phase2.samples), size_t{2}, kSamples);
  Candidates candidates = candidates_of(*data, samples);
  run_network(backend, model, data, options, candidates);
  const std::vector<int32_t> classes = batch_classes(candidates);

  Refinement result;
  std::vector<size_t> rows;
  std::vector<int32_t> labels;
  std::vector<uint32_t> items;
  for (size_t c = 0; c < classes.size(); ++c) {
    result.class_names.push_back(data->class_names[static_cast<size_t>(classes[c])]);
    for (size_t i = 0; i < candidates.labels.size(); ++i) {
      if (candidates.labels[i] == classes[c]) {
        rows.push_back(i);
        labels.push_back(classes[c]);
        items.push_back(candidates.items[i]);
        result.truth.push_back(static_cast<int32_t>(c));
      }
    }
  }
  GroupLossOptions group = loss_settings(config).group;
  result.steps = group.refinement.steps;
  group.refinement.steps = std::max(group.refinement.steps, kLeastSteps);
  Context ctx{.backend = backend, .seed = static_cast<uint64_t>(config.run.seed)};
  GroupBatch batch;
  batch.set(ctx, labels, candidates.columns, group);
  GroupLossDetails details;
  group_loss(ctx, rows_on_device(backend, candidates.embeddings, candidates.dimensions, rows),
             rows_on_device(backend, candidates.logits, candidates.columns, rows), batch, group, Var(), &details);

  result.samples = static_cast<int64_t>(rows.size());
  result.classes = static_cast<int64_t>(classes.size());
  result.anchors.assign(batch.anchors().begin(), batch.anchors().end());
  result.similarities = std::move(details.similarities);
  result.functional = std::move(details.functional);
  result.label_names = result.class_names;
  const auto refined = batch.refined_classes();
  const auto class_of = [&](size_t column) {
    return group.columns == Columns::of_batch ? refined[column] : static_cast<int32_t>(column);
  };
  for (const std::vector<float>& x : details.iterates) {
    const size_t columns = x.size() / rows.size();
    std::vector<float> shares(rows.size() * (classes.size() + 1), 0);
    std::vector<int32_t> taken_for;
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = x.data() + i * columns;
      for (size_t column = 0; column < columns; ++column) {
        const auto place = std::find(classes.begin(), classes.end(), class_of(column)) - classes.begin();
        shares[i * (classes.size() + 1) + static_cast<size_t>(place)] += row[column];
      }
      const auto most = static_cast<size_t>(std::max_element(row, row + columns) - row);
      taken_for.push_back(place_of(result.label_names, data->class_names[static_cast<size_t>(class_of(most))]));
    }
    result.iterates.push_back(std::move(shares));
    result.labels.push_back(std::move(taken_for));
  }
  result.sheet = Thumbnails(*data, options.decode).sheet(items, kSide);
  return result;
}

}  // namespace gle::report
