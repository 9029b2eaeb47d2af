#pragma once

#include <cstdint>
#include <span>

#include "engine/error.h"

namespace gle::data::fuzz {

// Runs a parser on an input: what it may do is succeed or throw ErrorCode::data.
template <class Work>
int expect_data_error(Work&& work) {
  try {
    work();
  } catch (const Error& e) {
    invariant(e.code() == ErrorCode::data, e.what());
  }
  return 0;
}

}  // namespace gle::data::fuzz
