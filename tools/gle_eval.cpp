// The field's metrics of a network on a data set, or of embeddings from anywhere; what Group Loss++ adds to them.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "retrieval/evaluate.h"
#include "tools/cli/command.h"
#include "tools/cli/device.h"
#include "tools/evaluation_source.h"

namespace gle::tools {

namespace {

struct Arguments {
  std::vector<std::string> inputs;
  ArrayPaths arrays;
  std::vector<int64_t> ks;
  std::string strategies = "none";
  std::string preset;
  std::string source = "paper";
  StrategyValues values;
  bool duplicate_self = false;
  bool no_nmi = false;
  int restarts = 1;
  int rounds = 0;
  uint64_t seed = 0;
  std::string json;
  DatasetArguments data;
  ModelOptions model;
  DeviceOptions device;
  Verbosity verbosity;
};

// Values of the strategies, and whose they are where the command line does not say otherwise.
struct ChosenValues {
  StrategyValues values;
  std::string preset;
  std::string source;
  RerankOptions published;  // before k1 and k2 are cut down to the images
};

struct Result {
  std::string name;
  Evaluation evaluation;
  std::vector<std::pair<std::string, Interval>> intervals;
};

// Re-identification is across cameras.
bool is_reid(const EvaluationSource& source) { return !source.identities().gallery_cameras.empty(); }

// What is usual for the data set, as far as the gallery reaches.
std::vector<int64_t> usual_ks(const EvaluationSource& source, int64_t others) {
  const std::string dataset = source.dataset();
  std::vector<int64_t> ks = dataset == "sop"      ? std::vector<int64_t>{1, 10, 100, 1000}
                            : dataset == "inshop" ? std::vector<int64_t>{1, 10, 20, 30, 40, 50}
                            : is_reid(source)     ? std::vector<int64_t>{1, 5, 10, 20}
                                                  : std::vector<int64_t>{1, 2, 4, 8};
  std::erase_if(ks, [&](int64_t k) { return k > others; });
  return ks;
}

std::vector<std::pair<std::string, Interval>> intervals_of(const Evaluation& evaluation, const Arguments& arguments) {
  std::vector<std::pair<std::string, Interval>> result;
  const auto add = [&](const std::string& name, const std::function<double(const QueryMetrics&)>& value) {
    result.emplace_back(name, bootstrap(evaluation.queries, value, arguments.rounds, arguments.seed));
  };
  for (const int64_t k : evaluation.metrics.ks) {
    add("R@" + std::to_string(k), [k](const QueryMetrics& q) { return q.first < k ? 1.0 : 0.0; });
  }
  add("MAP@R", [](const QueryMetrics& q) { return q.map_at_r; });
  add("RP", [](const QueryMetrics& q) { return q.r_precision; });
  add("mAP", [](const QueryMetrics& q) { return q.average_precision; });
  add("mINP", [](const QueryMetrics& q) { return q.inverse_penalty; });
  return result;
}

// Title and value, in the order of the table's columns.
std::vector<std::pair<std::string, double>> columns_of(const Evaluation& evaluation) {
  const RankingMetrics& m = evaluation.metrics;
  std::vector<std::pair<std::string, double>> columns;
  for (size_t i = 0; i < m.ks.size(); ++i) {
    columns.emplace_back("R@" + std::to_string(m.ks[i]), m.recall[i]);
  }
  if (evaluation.nmi) {
    columns.emplace_back("NMI", *evaluation.nmi);
  }
  columns.emplace_back("MAP@R", m.map_at_r);
  columns.emplace_back("RP", m.r_precision);
  columns.emplace_back("mAP", m.map);
  columns.emplace_back("mINP", m.minp);
  return columns;
}

void print_table(const std::vector<Result>& results) {
  const RankingMetrics& first = results.front().evaluation.metrics;
  std::printf("%-12s", "strategies");
  for (const auto& [title, value] : columns_of(results.front().evaluation)) {
    std::printf(" %7s", title.c_str());
  }
  std::printf("\n");
  for (const Result& result : results) {
    std::printf("%-12s", result.name.c_str());
    for (const auto& [title, value] : columns_of(result.evaluation)) {
      std::printf(" %7.2f", 100 * value);
    }
    std::printf("\n");
    if (!result.intervals.empty()) {
      std::printf("  95%% of the queries' draws:");
      for (const auto& [title, interval] : result.intervals) {
        std::printf(" %s %.2f-%.2f", title.c_str(), 100 * interval.low, 100 * interval.high);
      }
      std::printf("\n");
    }
  }
  if (first.without_match > 0) {
    std::printf("%lld of %lld queries have no match in the gallery; they count in no average\n",
                static_cast<long long>(first.without_match), static_cast<long long>(first.queries));
  }
}

nlohmann::json json_of(const std::vector<Result>& results, const EvaluationSource& source, int64_t gallery,
                       const ChosenValues& chosen) {
  const StrategyValues& values = chosen.values;
  const RankingMetrics& first = results.front().evaluation.metrics;
  nlohmann::json json = {{"version", GLE_VERSION},
                         {"source", source.notes()},
                         {"dataset", source.dataset()},
                         {"preset", chosen.preset},
                         {"preset_source", chosen.source},
                         {"queries", first.queries},
                         {"gallery", gallery},
                         {"queries_without_match", first.without_match},
                         {"values",
                          {{"max_share", values.max_share},
                           {"beta", values.beta},
                           {"slope", values.slope},
                           {"k1", values.rerank.k1},
                           {"k2", values.rerank.k2},
                           {"lambda", values.rerank.lambda},
                           {"duplicate_self", values.rerank.duplicate_self}}},
                         {"rows", nlohmann::json::array()}};
  for (const Result& result : results) {
    nlohmann::json row = {{"strategies", result.name}};
    for (const auto& [title, value] : columns_of(result.evaluation)) {
      row[title] = value;
    }
    for (const auto& [title, interval] : result.intervals) {
      row["intervals"][title] = {interval.low, interval.high};
    }
    json["rows"].push_back(std::move(row));
  }
  return json;
}

std::unique_ptr<EvaluationSource> source_for(Backend& backend, Comm& comm, const Arguments& arguments,
                                             const CLI::App& app) {
  const bool arrays = !arguments.arrays.embeddings.empty();
  require_usage(arrays == arguments.inputs.empty(),
                "give either models and a data set, a folder of gle-embed's, or --embeddings with --labels");
  if (arrays || arguments.inputs.size() == 1) {
    for (const char* name : {"--dataset", "--train-classes", "--exif", "--network", "--input"}) {
      require_usage(app.get_option(name)->count() == 0, name, " goes with models and a data set");
    }
  }
  if (arrays) {
    return source_of_arrays(arguments.arrays);
  }
  for (const char* name :
       {"--labels", "--cameras", "--query-embeddings", "--query-labels", "--query-cameras", "--distractors"}) {
    require_usage(app.get_option(name)->count() == 0, name, " goes with --embeddings");
  }
  if (arguments.inputs.size() == 1) {
    return source_of_folder(arguments.inputs[0]);
  }
  return source_of_models(backend, comm, {arguments.inputs.begin(), arguments.inputs.end() - 1},
                          arguments.inputs.back(), arguments.model, arguments.data, of_rank(comm, arguments.verbosity));
}

// Of a data set without published values: CUB's.
std::string preset_of(const std::string& dataset) {
  const std::vector<std::string> published = published_datasets();
  const auto found = std::ranges::find_if(published, [&](const auto& name) { return dataset.starts_with(name); });
  return found == published.end() ? "cub" : *found;
}

int64_t without_junk(const std::vector<int32_t>& labels) {
  return std::ssize(labels) - std::ranges::count(labels, Identities::kJunk);
}

// The published values as far as the images reach, except where the command line says otherwise.
ChosenValues values_for(const Arguments& arguments, const CLI::App& app, std::span<const Strategy> strategies,
                        const EvaluationSource& source) {
  const std::string whose = !arguments.preset.empty() ? arguments.preset
                            : is_reid(source)         ? std::string("market1501")  // all of them have the same
                                                      : preset_of(source.dataset());
  for (const char* name : {"--preset", "--values"}) {
    require_usage(app.get_option(name)->count() == 0 || !strategies.empty(), name, " is of --strategies");
  }
  ChosenValues chosen{.values = published_values(whose, arguments.source == "paper" ? Source::paper : Source::official),
                      .preset = whose,
                      .source = arguments.source,
                      .published = {}};
  StrategyValues& values = chosen.values;
  chosen.published = values.rerank;
  const auto take = [&](const char* name, Strategy strategy, auto given, auto& value) {
    if (app.get_option(name)->count() > 0) {
      require_usage(uses(strategies, strategy), name, " is of ", letter_of(strategy),
                    ", which --strategies does not name");
      value = given;
    }
  };
  const StrategyValues& given = arguments.values;
  RerankOptions& rerank = values.rerank;
  take("--max-share", Strategy::mixed_pooling, given.max_share, values.max_share);
  take("--beta", Strategy::beta, given.beta, values.beta);
  take("--slope", Strategy::leaky, given.slope, values.slope);
  take("--duplicate-self", Strategy::rerank, true, rerank.duplicate_self);
  const Identities& id = source.identities();
  require_usage(app.get_option("--duplicate-self")->count() == 0 || id.same_set,
                "--duplicate-self is for a set that queries itself; here queries and gallery are two");
  rerank.duplicate_self = id.same_set && rerank.duplicate_self;
  const int64_t images =
      without_junk(id.gallery_labels) + (id.same_set && !rerank.duplicate_self ? 0 : without_junk(id.query_labels));
  rerank.k1 = std::min(rerank.k1, std::max<int64_t>(1, images - 1));
  rerank.k2 = std::min(rerank.k2, images);
  take("--k1", Strategy::rerank, given.rerank.k1, rerank.k1);
  take("--k2", Strategy::rerank, given.rerank.k2, rerank.k2);
  take("--lambda", Strategy::rerank, given.rerank.lambda, rerank.lambda);
  require_usage(!uses(strategies, Strategy::rerank) ||
                    (rerank.k1 >= 1 && rerank.k1 < images && rerank.k2 >= 1 && rerank.k2 <= images),
                "k1 = ", rerank.k1, " and k2 = ", rerank.k2, " reach beyond the ", images, " images that are not junk");
  return chosen;
}

// "cub's of the paper where no option says otherwise: R k1 3 (cut down from 50, as there are so few images) k2 ..."
std::string about_values(const ChosenValues& chosen, std::span<const Strategy> strategies, const CLI::App& app) {
  const StrategyValues& values = chosen.values;
  std::ostringstream text;
  text << chosen.preset << "'s" << (chosen.source == "paper" ? " of the paper" : " of the authors' program")
       << " where no option says otherwise:";
  const auto neighbours = [&](const char* name, int64_t used, int64_t published) {
    text << " " << name << " " << used;
    if (used < published && app.get_option(std::string("--") + name)->count() == 0) {
      text << " (cut down from " << published << ", as there are so few images)";
    }
  };
  for (const Strategy strategy : strategies) {
    text << " " << letter_of(strategy);
    if (strategy == Strategy::mixed_pooling) {
      text << " " << values.max_share;
    } else if (strategy == Strategy::beta) {
      text << " " << values.beta;
    } else if (strategy == Strategy::leaky) {
      text << " " << values.slope;
    } else if (strategy == Strategy::rerank) {
      neighbours("k1", values.rerank.k1, chosen.published.k1);
      neighbours("k2", values.rerank.k2, chosen.published.k2);
      text << " lambda " << values.rerank.lambda << (values.rerank.duplicate_self ? " duplicate-self" : "");
    }
  }
  return text.str();
}

void check_ks(const std::vector<int64_t>& ks, int64_t others) {
  for (const int64_t k : ks) {
    require_usage(k >= 1 && k <= others, "Recall@", k, " asked of a gallery of ", others);
    require_usage(std::ranges::count(ks, k) == 1, "--ks names ", k, " more than once");
  }
}

int run(Comm& comm, const Arguments& arguments, const CLI::App& app) {
  const std::vector<Strategy> strategies = parse_strategies(arguments.strategies);
  const auto backend = make_backend(for_rank(arguments.device, comm));
  ThreadPool pool(for_rank(arguments.device, comm).threads);
  const auto source = source_for(*backend, comm, arguments, app);
  const Identities& id = source->identities();
  const auto gallery = static_cast<int64_t>(id.gallery_labels.size());
  const ChosenValues chosen = values_for(arguments, app, strategies, *source);
  const StrategyValues& values = chosen.values;
  const int64_t others = others_of(id);
  check_ks(arguments.ks, others);
  require_usage(app.get_option("--restarts")->count() == 0 || !(arguments.no_nmi || is_reid(*source)),
                "--restarts is of NMI, which is not asked for here");
  EvaluateOptions options{.ks = arguments.ks.empty() ? usual_ks(*source, others) : arguments.ks,
                          .clustering_restarts = arguments.no_nmi || is_reid(*source) ? 0 : arguments.restarts,
                          .seed = arguments.seed,
                          .comm = &comm};

  // Rows that share their embeddings one after the other: each is embedded once.
  std::vector<AblationRow> rows = ablation(strategies);
  std::vector<Result> results(rows.size());
  std::vector<size_t> order(rows.size());
  const auto without_rerank = [&](size_t i) {
    std::vector<Strategy> used = rows[i].used;
    std::erase(used, Strategy::rerank);
    std::sort(used.begin(), used.end());
    return used;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return without_rerank(a) < without_rerank(b); });
  std::vector<std::vector<Strategy>> in_order;
  in_order.reserve(order.size());
  for (const size_t i : order) {
    in_order.push_back(rows[i].used);
  }
  source->announce(std::move(in_order));
  std::optional<double> nmi;
  for (size_t at = 0; at < order.size(); ++at) {
    const AblationRow& row = rows[order[at]];
    Result& result = results[order[at]];
    const EvaluationSet& set = source->embed(row.used, values);
    const bool same_as_before = at > 0 && without_rerank(order[at]) == without_rerank(order[at - 1]);
    EvaluateOptions of_row = options;
    if (uses(row.used, Strategy::rerank)) {
      of_row.rerank = values.rerank;
    }
    if (same_as_before) {
      of_row.clustering_restarts = 0;  // re-ranking moves no embedding
    }
    result.name = row.name;
    result.evaluation = evaluate(*backend, pool, set.queries(), set.gallery(), set.identities, of_row);
    nmi = same_as_before ? nmi : result.evaluation.nmi;
    result.evaluation.nmi = nmi;
    if (result.evaluation.metrics.without_match == result.evaluation.metrics.queries) {
      fail(ErrorCode::data, "no query has a match in the gallery");
    }
    if (arguments.rounds > 0 && comm.rank() == 0) {
      result.intervals = intervals_of(result.evaluation, arguments);
    }
  }

  if (comm.rank() != 0) {
    return 0;
  }
  const std::string text =
      json_of(results, *source, gallery, chosen).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (arguments.json == "-") {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::printf("%s: %lld queries, %lld in the gallery\n", source->dataset().c_str(),
              static_cast<long long>(id.query_labels.size()), static_cast<long long>(gallery));
  print_table(results);
  if (!strategies.empty()) {
    std::printf("values: %s\n", about_values(chosen, strategies, app).c_str());
  }
  if (!arguments.json.empty()) {
    write_atomically(arguments.json, {std::as_bytes(std::span(text))});
  }
  return 0;
}

void add_strategy_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--strategies", arguments.strategies,
                 "none, all, or some of M,B,L,R,F: mixed pooling, beta normalisation, leaky, re-ranking, flip; a table "
                 "of each alone and of their sums")
      ->option_text("LIST")
      ->check(suggested({"none", "all"}));
  app.add_option("--preset", arguments.preset,
                 "whose published values: cub, cars, sop, inshop, market1501, ...; default: the data set's")
      ->option_text("NAME")
      ->check(CLI::IsMember(published_datasets()));
  app.add_option("--values", arguments.source, "paper: its table; official: the authors' program")
      ->option_text("SOURCE")
      ->check(CLI::IsMember({"paper", "official"}));
  const auto number = [&](const char* name, auto& value, const char* text, const char* letter) {
    return app.add_option(name, value, text)->option_text(letter)->default_str("");
  };
  number("--max-share", arguments.values.max_share, "M: share of the maximum", "A")->check(CLI::Range(0.0, 1.0));
  number("--beta", arguments.values.beta, "B: f / |f| + B f", "B")->check(CLI::NonNegativeNumber);
  number("--slope", arguments.values.slope, "L: for negative values", "S");
  number("--k1", arguments.values.rerank.k1, "R: neighbours", "K");
  number("--k2", arguments.values.rerank.k2, "R: neighbours to average over", "K");
  number("--lambda", arguments.values.rerank.lambda, "R: share of the plain distance", "X")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--duplicate-self", arguments.duplicate_self,
               "R: a set that queries itself is there twice, as in the authors' program");
}

int main(int argc, char** argv) {
  Arguments arguments;
  Program program("gle-eval",
                  "Recall@K (= CMC), NMI, MAP@R, R-precision, mAP and mINP of models on a data set, of a folder of "
                  "gle-embed's, or of embeddings from any framework. A query never finds itself, nor images of its own "
                  "label and camera; labels of -1 are junk; equal distances rank by index. Class folders without a "
                  "split have that of the run whose model it is. Started by mpirun, ranks share the work.",
                  "gle-eval runs/demo data/omniglot.tar.gz --strategies all");
  CLI::App& app = program.options();
  app.add_option("MODEL... DATA", arguments.inputs,
                 "weights, checkpoints or runs and a data set; or one folder of gle-embed's")
      ->default_str("");
  app.add_option("--embeddings", arguments.arrays.embeddings, ".npy of [rows, dimensions]")->option_text("FILE");
  app.add_option("--labels", arguments.arrays.labels, ".npy of whole numbers")->option_text("FILE");
  app.add_option("--cameras", arguments.arrays.cameras, ".npy of whole numbers")->option_text("FILE");
  app.add_option("--query-embeddings", arguments.arrays.query_embeddings, "if others than the gallery query it")
      ->option_text("FILE");
  app.add_option("--query-labels", arguments.arrays.query_labels, "of the queries")->option_text("FILE");
  app.add_option("--query-cameras", arguments.arrays.query_cameras, "of the queries")->option_text("FILE");
  app.add_option("--distractors", arguments.arrays.distractors, "labels of the gallery that nobody has")
      ->option_text("LABEL,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("");
  app.add_option("--ks", arguments.ks, "of Recall@K; default: what is usual for the data set")
      ->option_text("K,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("");
  add_strategy_options(app, arguments);
  app.add_flag("--no-nmi", arguments.no_nmi, "no clustering");
  app.add_option("--restarts", arguments.restarts, "of k-means")->option_text("N")->check(CLI::Range(1, 1000));
  app.add_option("--bootstrap", arguments.rounds, "rounds for 95% intervals, from 40; 0: none")
      ->option_text("N")
      ->check(CLI::Range(0, 0) | CLI::Range(40, 1'000'000));
  app.add_option("--seed", arguments.seed, "of k-means and the bootstrap")->option_text("N");
  app.add_option("--json", arguments.json, "file for the figures; - is stdout, without the table")->option_text("FILE");
  add_dataset_options(app, arguments.data);
  add_model_options(app, arguments.model);
  add_device_options(app, arguments.device);
  add_verbosity_options(app, arguments.verbosity);
  return program.run_ranks(argc, argv, [&](Comm& comm) { return run(comm, arguments, app); });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
