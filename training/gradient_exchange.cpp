#include "training/gradient_exchange.h"

#include <algorithm>

#include "engine/error.h"

namespace gle {

namespace {

// Parameters begin at multiples of it; so do pieces.
constexpr int64_t kUnit = 16;

Tensor part(const Tensor& flat, int64_t begin, int64_t end) {
  return flat.slice(begin, end).reshaped({1, end - begin});
}

int64_t offset_of(const ParameterSet& parameters, const Parameter& parameter) {
  return parameter.grad.data() - parameters.gradients().data();
}

}  // namespace

GradientExchange::GradientExchange(Comm& comm, Backend& backend, ParameterSet& parameters, int64_t stretch_bytes,
                                   Result result)
    : comm_(comm), backend_(backend), parameters_(parameters), result_(result) {
  cut(stretch_bytes);
  if (result == Result::shards) {
    lay_out_shard();
  } else {
    size_ = parameters.gradients().elements();
    pieces_.push_back({0, size_, 0});
  }
}

GradientExchange::~GradientExchange() {
  while (!tickets_.empty()) {
    try {
      wait();
    } catch (const Error&) {  // the failure that is under way says it already
    }
  }
}

void GradientExchange::wait() {
  while (!tickets_.empty()) {
    const Comm::Ticket ticket = tickets_.back();
    tickets_.pop_back();
    comm_.wait(ticket);
  }
}

void GradientExchange::cut(int64_t stretch_bytes) {
  const int64_t most = std::max<int64_t>(1, stretch_bytes / static_cast<int64_t>(sizeof(float)));
  for (const Parameter& parameter : parameters_.parameters()) {
    const int64_t begin = offset_of(parameters_, parameter);
    const int64_t end = begin + (parameter.shape.elements() + kUnit - 1) / kUnit * kUnit;
    if (stretches_.empty() || end - stretches_.back().begin > most) {
      stretches_.push_back({begin, end});
    } else {
      stretches_.back().end = end;
    }
  }
  tickets_.reserve(2 * stretches_.size());
}

void GradientExchange::lay_out_shard() {
  const int ranks = comm_.size();
  for (Stretch& s : stretches_) {
    s.piece = (s.end - s.begin) / (ranks * kUnit) * kUnit;
    s.at = size_;
    size_ += s.piece;
    if (s.piece > 0) {
      const int64_t begin = s.begin + comm_.rank() * s.piece;
      pieces_.push_back({begin, begin + s.piece, s.at});
    }
  }
  owned_ = size_;
  for (Stretch& s : stretches_) {
    s.rest_at = size_;
    if (s.rest(ranks) < s.end) {
      pieces_.push_back({s.rest(ranks), s.end, s.rest_at});
      size_ += s.end - s.rest(ranks);
    }
  }
  shard_ = backend_.new_tensor("gradients", {1, size_});
}

GradientExchange::Stretch& GradientExchange::stretch_of(const Parameter& parameter) {
  const int64_t offset = offset_of(parameters_, parameter);
  const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), offset,
                                      [](int64_t at, const Stretch& s) { return at < s.begin; });
  return *std::prev(after);
}

void GradientExchange::begin(Tape& tape) {
  for (Stretch& s : stretches_) {
    s.expected = 0;
    s.begun = false;
  }
  for (const Parameter& parameter : parameters_.parameters()) {
    stretch_of(parameter).expected += parameter.pending > 0 ? 1 : 0;
  }
  tape.set_on_gradient([this](Parameter& parameter) {
    Stretch& s = stretch_of(parameter);
    if (--s.expected == 0) {
      begin_stretch(s);
    }
  });
}

void GradientExchange::begin_stretch(Stretch& s) {
  s.begun = true;
  for (Parameter& parameter : parameters_.parameters()) {
    const int64_t offset = offset_of(parameters_, parameter);
    if (offset >= s.begin && offset < s.end && !parameter.has_gradient) {
      backend_.fill(0.0F, parameter.grad);
      parameter.has_gradient = true;
    }
  }
  const Tensor& gradients = parameters_.gradients();
  const int64_t rest = s.rest(comm_.size());
  if (s.piece > 0) {
    tickets_.push_back(comm_.begin_reduce_scatter(part(gradients, s.begin, rest), part(shard_, s.at, s.at + s.piece)));
  }
  if (rest < s.end) {
    tickets_.push_back(comm_.begin_all_reduce(part(gradients, rest, s.end)));
  }
}

void GradientExchange::finish(Tape& tape) {
  tape.set_on_gradient({});
  for (Stretch& s : stretches_) {
    if (!s.begun) {
      begin_stretch(s);
    }
  }
  wait();
  if (result_ == Result::shards) {
    for (const Stretch& s : stretches_) {
      const int64_t rest = s.rest(comm_.size());
      if (rest < s.end) {
        backend_.scale(1.0F, part(parameters_.gradients(), rest, s.end),
                       {part(shard_, s.rest_at, s.rest_at + s.end - rest)});
      }
    }
  }
}

double GradientExchange::sum_of_squares() {
  double sum[1] = {owned_ > 0 ? backend_.sum_of_squares(part(shard_, 0, owned_)) : 0.0};
  comm_.all_reduce(sum);
  return sum[0] + (owned_ < size_ ? backend_.sum_of_squares(part(shard_, owned_, size_)) : 0.0);
}

void GradientExchange::gather(const Tensor& from, Source source, const Tensor& whole) {
  for (const Stretch& s : stretches_) {
    const int64_t rest = s.rest(comm_.size());
    const int64_t own = s.begin + comm_.rank() * s.piece;
    if (s.piece > 0) {
      const Tensor piece = source == Source::shard ? part(from, s.at, s.at + s.piece) : part(whole, own, own + s.piece);
      comm_.all_gather(piece, part(whole, s.begin, rest));
    }
    if (source == Source::shard && rest < s.end) {
      backend_.scale(1.0F, part(from, s.rest_at, s.rest_at + s.end - rest), {part(whole, rest, s.end)});
    }
  }
}

void GradientExchange::take(const Tensor& whole, const Tensor& shard) {
  for (const Piece& piece : pieces_) {
    backend_.scale(1.0F, part(whole, piece.begin, piece.end),
                   {part(shard, piece.at, piece.at + piece.end - piece.begin)});
  }
}

}  // namespace gle
