#pragma once

#include "data/transform.h"
#include "models/model_file.h"

namespace gle {

// How pictures become what the network wants, without chance.
data::TransformOptions inference_transform(const InputDescription& input);
data::Colours colours_of(const InputDescription& input);

}  // namespace gle
