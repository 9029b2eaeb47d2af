#include "retrieval/strategies.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/error.h"

namespace gle {

namespace {

constexpr Strategy kAll[] = {Strategy::mixed_pooling, Strategy::beta, Strategy::leaky, Strategy::rerank,
                             Strategy::flip};
constexpr std::string_view kLetters = "MBLRF";

struct Published {
  std::string_view dataset;
  StrategyValues paper;
  StrategyValues official;
};

constexpr RerankOptions kReIdentification{.k1 = 20, .k2 = 6, .lambda = 0.3F};

constexpr Published kPublished[] = {
    {"cub",
     {0.5F, 0.004F, 0.75F, {.k1 = 50, .k2 = 20, .lambda = 0.85F}},
     {0.5F, 0.004F, 0.75F, {.k1 = 50, .k2 = 20, .lambda = 0.94F, .duplicate_self = true}}},
    {"cars",
     {0.6F, 0.004F, 0.4F, {.k1 = 50, .k2 = 20, .lambda = 0.9F}},
     {0.5F, 0.004F, 0.0F, {.k1 = 50, .k2 = 20, .lambda = 0.94F, .duplicate_self = true}}},
    {"inshop",
     {0.9F, 0.002F, 1.0F, {.k1 = 4, .k2 = 2, .lambda = 0.7F}},
     {0.57F, 0.002F, 1.0F, {.k1 = 6, .k2 = 2, .lambda = 0.4F}}},
    {"sop",
     {0.6F, 0.0005F, 1.0F, {.k1 = 50, .k2 = 20, .lambda = 0.94F}},
     {0.6F, 0.0005F, 1.0F, {.k1 = 50, .k2 = 20, .lambda = 0.94F, .duplicate_self = true}}},
    {"market1501", {0.5F, 0.004F, 0.75F, kReIdentification}, {0.5F, 0.004F, 0.75F, kReIdentification}},
    {"cuhk03", {0.5F, 0.004F, 0.75F, kReIdentification}, {0.5F, 0.004F, 0.75F, kReIdentification}},
    {"dukemtmc", {0.5F, 0.004F, 0.75F, kReIdentification}, {0.5F, 0.004F, 0.75F, kReIdentification}},
    {"msmt17", {0.5F, 0.004F, 0.75F, kReIdentification}, {0.5F, 0.004F, 0.75F, kReIdentification}},
};

}  // namespace

char letter_of(Strategy strategy) { return kLetters[static_cast<size_t>(strategy)]; }

std::vector<Strategy> parse_strategies(std::string_view text) {
  if (text == "none") {
    return {};
  }
  if (text == "all") {
    return {std::begin(kAll), std::end(kAll)};
  }
  std::vector<Strategy> result;
  for (size_t i = 0; i < text.size() || i == 0; i += 2) {
    const size_t letter = i < text.size() ? kLetters.find(text[i]) : kLetters.npos;
    const bool separated = i + 1 >= text.size() || (text[i + 1] == ',' && i + 2 < text.size());
    require(letter != kLetters.npos && separated && !uses(result, kAll[letter]), "strategies", "'", text,
            "' is not none, all, or some of M,B,L,R,F, each once");
    result.push_back(kAll[letter]);
  }
  return result;
}

StrategyValues published_values(std::string_view dataset, Source source) {
  const auto* found = std::find_if(std::begin(kPublished), std::end(kPublished),
                                   [&](const Published& p) { return dataset.starts_with(p.dataset); });
  const Published& values = found == std::end(kPublished) ? kPublished[0] : *found;
  return source == Source::paper ? values.paper : values.official;
}

std::vector<std::string> published_datasets() {
  std::vector<std::string> names;
  for (const Published& published : kPublished) {
    names.emplace_back(published.dataset);
  }
  return names;
}

bool uses(std::span<const Strategy> used, Strategy strategy) {
  return std::find(used.begin(), used.end(), strategy) != used.end();
}

ForwardOptions forward_options(std::span<const Strategy> used, const StrategyValues& values) {
  ForwardOptions options{.flip = uses(used, Strategy::flip), .with_logits = false};
  if (uses(used, Strategy::mixed_pooling)) {
    options.max_share = values.max_share;
  }
  if (uses(used, Strategy::beta)) {
    options.beta = values.beta;
  }
  if (uses(used, Strategy::leaky)) {
    options.last_slope = values.slope;
  }
  return options;
}

std::vector<float> beta_normalised(const Embeddings& embeddings, float beta) {
  std::vector<float> result;
  result.reserve(static_cast<size_t>(embeddings.rows * embeddings.dimensions));
  for (int64_t row = 0; row < embeddings.rows; ++row) {
    double sum = 0;
    for (const float v : embeddings[row]) {
      sum += static_cast<double>(v) * v;
    }
    const float factor = static_cast<float>(1 / std::max(std::sqrt(sum), 1e-12)) + beta;
    for (const float v : embeddings[row]) {
      result.push_back(v * factor);
    }
  }
  return result;
}

std::vector<AblationRow> ablation(std::span<const Strategy> strategies) {
  std::vector<AblationRow> rows = {{"none", {}}};
  for (const Strategy strategy : strategies) {
    rows.push_back({std::string(1, letter_of(strategy)), {strategy}});
  }
  if (strategies.size() < 2) {
    return rows;
  }
  AblationRow sum = rows[1];
  for (const Strategy strategy : strategies.subspan(1)) {
    sum.name += std::string("+") + letter_of(strategy);
    sum.used.push_back(strategy);
    rows.push_back(sum);
  }
  return rows;
}

}  // namespace gle
