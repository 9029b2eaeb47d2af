#pragma once

#include <vector>

#include "losses/group_loss.h"
#include "tests/array.h"

// The losses in double precision and plain loops: what losses/ is held to.
namespace gle::reference {

using test::Array;
using test::Arrays;

// -- group_loss.cpp
struct GroupCase {
  std::vector<int> labels;
  std::vector<uint8_t> anchors;  // 1: the sample is one
  GroupLossOptions options;
};

struct GroupAnswer {
  Array similarities;  // W
  Arrays iterates;     // X_0 ... X_T
  double loss = 0;
  Array dembeddings, dlogits, dgiven;
};

// embeddings or given may be empty. Gradients of dloss * loss, by the chain rule through dL/dX_t.
GroupAnswer group_loss(const Array& embeddings, const Array& logits, const Array& given, const GroupCase& c,
                       double dloss);
double group_functional(const Array& similarities, const Array& x);

// -- pair_loss.cpp
struct PairAnswer {
  double loss = 0;
  Array ds;
};
PairAnswer pair_loss(const Array& s, const std::vector<int>& row_labels, const std::vector<int>& column_labels,
                     Pairs pairs, const PairLossOptions& options);

}  // namespace gle::reference
