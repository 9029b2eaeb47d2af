#include <algorithm>

#include "engine/math/philox.h"
#include "losses/group_loss.h"

namespace gle {

namespace {

template <class T>
Tensor on_device(Context& ctx, const std::vector<T>& values, DType type) {
  Tensor tensor = ctx.backend.new_tensor("group_batch", {static_cast<int64_t>(values.size())}, type);
  ctx.backend.upload(values.data(), tensor);
  return tensor;
}

}  // namespace

void GroupBatch::set(Context& ctx, std::span<const int32_t> labels, int64_t classes, const GroupLossOptions& options,
                     std::span<const int32_t> given_anchors) {
  const char* op = "group_batch";
  require(!labels.empty(), op, "the batch has no samples");
  require(options.anchors == AnchorChoice::given || given_anchors.empty(), op,
          "anchors were given, but the options choose them otherwise");
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      fail(ErrorCode::data, op, ": label ", labels[i], " of sample ", i, " is not one of ", classes, " classes");
    }
  }
  classes_ = classes;
  targets_.assign(labels.begin(), labels.end());
  labels_ = on_device(ctx, targets_, DType::i32);

  anchors_.assign(labels.size(), 0);
  if (options.anchors == AnchorChoice::given) {
    for (const int32_t anchor : given_anchors) {
      require(anchor >= 0 && static_cast<size_t>(anchor) < labels.size(), op, "anchor ", anchor, " is not one of ",
              labels.size(), " samples");
      anchors_[static_cast<size_t>(anchor)] = 1;
    }
  } else {
    choose_anchors(ctx, labels, options);
  }
  anchor_count_ = std::count(anchors_.begin(), anchors_.end(), uint8_t{1});
  columns_.anchors = on_device(ctx, anchors_, DType::u8);

  present_.clear();
  columns_.columns = Tensor();
  if (options.columns == Columns::of_batch) {
    present_.assign(labels.begin(), labels.end());
    std::sort(present_.begin(), present_.end());
    present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
    columns_.columns = on_device(ctx, present_, DType::i32);
    for (int32_t& target : targets_) {
      target = static_cast<int32_t>(std::lower_bound(present_.begin(), present_.end(), target) - present_.begin());
    }
    columns_.targets = on_device(ctx, targets_, DType::i32);
  } else {
    columns_.targets = labels_;
  }
}

void GroupBatch::narrow() {
  require(static_cast<bool>(columns_.columns), "group_batch", "only a batch of Columns::of_batch can be narrowed");
  classes_ = columns_.columns.elements();
  columns_.columns = Tensor();
}

void GroupBatch::choose_anchors(Context& ctx, std::span<const int32_t> labels, const GroupLossOptions& options) {
  require(options.anchors_per_class >= 0, "group_batch", "anchors per class must not be negative, got ",
          options.anchors_per_class);
  // Samples class by class, in batch order within each.
  order_.resize(labels.size());
  for (size_t i = 0; i < order_.size(); ++i) {
    order_[i] = static_cast<int32_t>(i);
  }
  const auto label_of = [&](int32_t sample) { return labels[static_cast<size_t>(sample)]; };
  std::sort(order_.begin(), order_.end(),
            [&](int32_t a, int32_t b) { return label_of(a) != label_of(b) ? label_of(a) < label_of(b) : a < b; });
  const bool random = options.anchors == AnchorChoice::random;
  const RandomKey key = random ? ctx.next_random_key() : RandomKey{};
  for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    for (end = begin; end < order_.size() && label_of(order_[end]) == label_of(order_[begin]);) {
      ++end;
    }
    const size_t wanted = std::min(end - begin, static_cast<size_t>(options.anchors_per_class));
    for (size_t i = begin; i < begin + wanted; ++i) {
      if (random) {
        const auto step = static_cast<size_t>(uniform(key, i) * static_cast<float>(end - i));
        std::swap(order_[i], order_[std::min(i + step, end - 1)]);
      }
      anchors_[static_cast<size_t>(order_[i])] = 1;
    }
  }
}

}  // namespace gle
