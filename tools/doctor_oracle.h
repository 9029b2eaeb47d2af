#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/backend.h"

namespace gle::doctor {

// The largest differences from an answer of the Group Loss, relative to the largest entry of each array.
struct OracleResult {
  double similarities = 0, iterates = 0, functional = 0, loss = 0, dembeddings = 0, dlogits = 0;

  bool good() const;
};

// `file`: an .npz with embeddings, logits, labels, anchors, temperature, iterations, diagonal, negatives,
// batch_classes_only and the answers W, X, functional, loss_mean_over_all, loss_mean_over_non_anchors, d_embeddings,
// d_logits.
OracleResult check_oracle(Backend& backend, const std::filesystem::path& file);

// A row for each .npz of a folder; returns how many missed.
int examine_oracle(const std::string& folder, Backend& backend);

}  // namespace gle::doctor
