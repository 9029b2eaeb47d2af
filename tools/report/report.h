#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/run.h"
#include "training/search_space.h"

namespace gle::report {

// A small picture: the bytes of a JPEG file.
struct Picture {
  std::string jpeg;
  int width = 0, height = 0;
};

// Many square pictures in one, row by row.
struct Sheet {
  Picture picture = {};
  int side = 0;     // of a square
  int columns = 1;  // squares in a row
};

struct Shown {
  std::string name;  // of the file
  std::string label;
  Picture picture = {};
  double distance = 0;
  bool match = false;
};

struct Retrieval {
  struct Row {
    Shown query;
    std::vector<Shown> nearest;
  };
  std::vector<Row> hits;      // the nearest has the query's label
  std::vector<Row> failures;  // it has another
  int64_t queries = 0, gallery = 0, all_queries = 0;
  double recall = 0;  // R@1 of all `queries`
};

struct EmbeddingMap {
  std::vector<float> positions;  // [points,2]
  std::vector<int32_t> classes;  // of the points, index into class_names
  std::vector<std::string> class_names;
  std::vector<std::string> names;
  Sheet sheet;
  double divergence = 0;
};

// One batch in the replicator dynamics of the Group Loss.
struct Refinement {
  int64_t samples = 0, classes = 0;
  std::vector<std::string> class_names;      // of the batch's classes
  std::vector<int32_t> truth;                // of the samples, index into class_names
  std::vector<uint8_t> anchors;              // of the samples
  std::vector<float> similarities;           // W [samples, samples]
  std::vector<std::vector<float>> iterates;  // X_0, X_1, ... [samples, classes + 1], the last column all other classes
  std::vector<double> functional;            // F of each iterate
  // What every sample is taken for in each iterate: index into label_names, which begins with class_names.
  std::vector<std::vector<int32_t>> labels;
  std::vector<std::string> label_names;
  int steps = 0;  // T of the run
  Sheet sheet;
};

// Settings and what they gave, of several runs or of the trials of a search.
struct Sweep {
  struct Row {
    std::string name;
    Settings settings = {};
    double share = 0;
  };
  std::string metric = "R@1";
  std::vector<Row> rows = {};
};

struct Report {
  std::vector<Run> runs;
  std::optional<Sweep> sweep = std::nullopt;  // instead of that of the runs
  // Of the first run; what is not there is said by a remark in its place.
  std::optional<Retrieval> retrieval = std::nullopt;
  std::optional<EmbeddingMap> map = std::nullopt;
  std::optional<Refinement> refinement = std::nullopt;
  std::string why_no_pictures = {};
  std::string why_no_refinement = {};
};

// The page: one file that needs nothing else and takes nothing from elsewhere. The same report gives the same bytes.
std::string html_of(const Report& report);

}  // namespace gle::report
