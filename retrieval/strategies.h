#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/network.h"
#include "retrieval/rerank.h"

namespace gle {

// What Group Loss++ does at inference, in the order in which its ablation adds them.
enum class Strategy { mixed_pooling, beta, leaky, rerank, flip };

// 'M', 'B', 'L', 'R', 'F'
char letter_of(Strategy strategy);
// "none", "all", or letters with commas between them, in their order. Throws ErrorCode::usage for others or one twice.
std::vector<Strategy> parse_strategies(std::string_view text);

struct StrategyValues {
  float max_share = 0.5F;
  float beta = 0.004F;
  float slope = 0.75F;
  RerankOptions rerank = {};
};

enum class Source { paper, official };  // the paper's table, or the authors' program

// For "cub", "cars", "inshop" or "sop"; re-identification has published re-ranking only, the rest is as for CUB. A data
// set without published values gets those of CUB.
StrategyValues published_values(std::string_view dataset, Source source);
// Those that have values of their own.
std::vector<std::string> published_datasets();

ForwardOptions forward_options(std::span<const Strategy> used, const StrategyValues& values);
// f / max(|f|, 1e-12) + beta * f of embeddings that are made already.
std::vector<float> beta_normalised(const Embeddings& embeddings, float beta);
bool uses(std::span<const Strategy> used, Strategy strategy);

// One line of an ablation table.
struct AblationRow {
  std::string name;  // "none", "M", "M+B"
  std::vector<Strategy> used;
};

// None, each alone, and one after the other added to those before.
std::vector<AblationRow> ablation(std::span<const Strategy> strategies);

}  // namespace gle
