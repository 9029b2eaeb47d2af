#include "engine/cpu/onednn.h"

#include <omp.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "engine/error.h"

namespace gle::cpu {

namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Desc = memory::desc;

// Which way, the sizes N H W C K R S, strides, paddings, whether a bias, and the bits of the slope.
using Key = std::array<int64_t, 14>;

// One convolution made ready for one shape. Its memory objects point to nothing between calls.
struct Prepared {
  dnnl::primitive run;
  Desc weights;        // the order oneDNN wants them in
  Desc plain_weights;  // [K,R,S,C]
  dnnl::reorder reorder;
  size_t scratch_bytes = 0;
  memory x, w, bias, y, scratch;  // x and y stand for dx and dy, w for dw, as the direction asks
  memory reorder_from, reorder_to;
  std::unordered_map<int, memory> arguments;
  std::unordered_map<int, memory> reorder_arguments;

  bool plain() const { return weights == plain_weights; }
  size_t weight_bytes() const { return (weights.get_size() + 63) / 64 * 64; }
};

enum Direction : int64_t { forward, backward_data, backward_weights };

struct Problem {
  Direction direction;
  Shape x, w, y;
  Conv2dOptions options;
  bool bias = false;
  float slope = 1;
};

int64_t bits_of(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

Key key_of(const Problem& p) {
  return {p.direction,
          p.x[0],
          p.x[1],
          p.x[2],
          p.x[3],
          p.w[0],
          p.w[1],
          p.w[2],
          p.options.stride_h,
          p.options.stride_w,
          p.options.pad_h,
          p.options.pad_w,
          p.bias,
          bits_of(p.slope)};
}

Desc activations(const Shape& s) {
  return Desc({s[0], s[3], s[1], s[2]}, memory::data_type::f32, memory::format_tag::nhwc);
}

Prepared prepare(const dnnl::engine& engine, const Problem& p) {
  const auto f32 = memory::data_type::f32;
  const memory::dims w_dims = {p.w[0], p.w[3], p.w[1], p.w[2]};
  const Desc x = activations(p.x);
  const Desc y = activations(p.y);
  const Desc any(w_dims, f32, memory::format_tag::any);
  const Desc bias = p.bias ? Desc({p.w[0]}, f32, memory::format_tag::x) : Desc();
  const memory::dims strides = {p.options.stride_h, p.options.stride_w};
  const memory::dims before = {p.options.pad_h, p.options.pad_w};
  // What is left over beyond the last window is cut off by a smaller padding behind.
  const memory::dims behind = {(p.y[1] - 1) * p.options.stride_h + p.w[1] - p.x[1] - p.options.pad_h,
                               (p.y[2] - 1) * p.options.stride_w + p.w[2] - p.x[2] - p.options.pad_w};
  const auto algorithm = dnnl::algorithm::convolution_direct;

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.slope != 1) {
    dnnl::post_ops after;
    after.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, p.slope, 0.0F);
    attributes.set_post_ops(after);
  }
  const dnnl::convolution_forward::primitive_desc ahead(
      {p.direction == forward ? prop_kind::forward_inference : prop_kind::forward_training, algorithm, x, any, bias, y,
       strides, before, behind},
      p.direction == forward ? attributes : dnnl::primitive_attr(), engine);

  Prepared result;
  const auto finish = [&](const auto& description, const Desc& weights) {
    result.run = dnnl::primitive(description);
    result.weights = weights;
    result.scratch_bytes = description.scratchpad_desc().get_size();
    result.scratch = memory(description.scratchpad_desc(), engine, nullptr);
  };
  if (p.direction == forward) {
    finish(ahead, ahead.weights_desc());
  } else if (p.direction == backward_data) {
    const dnnl::convolution_backward_data::primitive_desc back({algorithm, x, any, y, strides, before, behind},
                                                               attributes, engine, ahead);
    finish(back, back.weights_desc());
  } else {
    const dnnl::convolution_backward_weights::primitive_desc back({algorithm, x, any, y, strides, before, behind},
                                                                  attributes, engine, ahead);
    finish(back, back.diff_weights_desc());
  }

  result.plain_weights = Desc(w_dims, f32, memory::format_tag::ohwi);
  result.x = memory(x, engine, nullptr);
  result.y = memory(y, engine, nullptr);
  result.w = memory(result.weights, engine, nullptr);
  result.arguments = {{DNNL_ARG_SCRATCHPAD, result.scratch}};
  if (p.direction == forward) {
    result.arguments.insert({{DNNL_ARG_SRC, result.x}, {DNNL_ARG_WEIGHTS, result.w}, {DNNL_ARG_DST, result.y}});
    if (p.bias) {
      result.bias = memory(bias, engine, nullptr);
      result.arguments.insert({DNNL_ARG_BIAS, result.bias});
    }
  } else if (p.direction == backward_data) {
    result.arguments.insert(
        {{DNNL_ARG_DIFF_SRC, result.x}, {DNNL_ARG_WEIGHTS, result.w}, {DNNL_ARG_DIFF_DST, result.y}});
  } else {
    result.arguments.insert(
        {{DNNL_ARG_SRC, result.x}, {DNNL_ARG_DIFF_WEIGHTS, result.w}, {DNNL_ARG_DIFF_DST, result.y}});
  }
  if (!result.plain()) {
    const bool in = p.direction != backward_weights;
    const Desc& from = in ? result.plain_weights : result.weights;
    const Desc& to = in ? result.weights : result.plain_weights;
    result.reorder_from = memory(from, engine, nullptr);
    result.reorder_to = memory(to, engine, nullptr);
    result.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
    result.reorder_arguments = {{DNNL_ARG_FROM, result.reorder_from}, {DNNL_ARG_TO, result.reorder_to}};
  }
  return result;
}

void add_to(const float* from, int64_t count, float* to) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    to[i] += from[i];
  }
}

}  // namespace

struct OneDnn::State {
  int threads;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Prepared> prepared;
  std::string version;

  Prepared& get(const Problem& problem) {
    omp_set_num_threads(threads);
    const Key key = key_of(problem);
    auto found = prepared.find(key);
    if (found == prepared.end()) {
      found = prepared.emplace(key, prepare(engine, problem)).first;
    }
    return found->second;
  }

  void reorder(Prepared& p, float* from, float* to) const {
    p.reorder_from.set_data_handle(from);
    p.reorder_to.set_data_handle(to);
    p.reorder.execute(stream, p.reorder_arguments);
  }

  void run(Prepared& p, float* x, float* w, float* y, std::byte* scratch) {
    p.x.set_data_handle(x);
    p.w.set_data_handle(w);
    p.y.set_data_handle(y);
    p.scratch.set_data_handle(scratch);
    p.run.execute(stream, p.arguments);
    stream.wait();
  }
};

OneDnn* OneDnn::open(Isa isa, int threads) {
  if (isa == Isa::baseline) {
    return nullptr;
  }
  if (isa == Isa::avx2) {
    (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  }
  // A process has one instruction set for oneDNN, that of the first backend.
  constexpr int kAvx512 = static_cast<int>(dnnl::cpu_isa::avx512_core);
  const bool wide = (static_cast<int>(dnnl::get_effective_cpu_isa()) & kAvx512) == kAvx512;
  return wide == (isa == Isa::avx512) ? new OneDnn(threads) : nullptr;
}

void OneDnn::close(OneDnn* library) { delete library; }

OneDnn::OneDnn(int threads) : state_(new State{}) {
  state_->threads = threads;
  const dnnl_version_t* version = dnnl_version();
  state_->version =
      std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

OneDnn::~OneDnn() { delete state_; }

const char* OneDnn::version() const { return state_->version.c_str(); }

bool OneDnn::conv2d_forward(Workspace& workspace, const Tensor& x, const Tensor& w, const Tensor& bias,
                            const Conv2dOptions& options, Activation f, PackedWeights* packed,
                            CachingAllocator& allocator, const Tensor& y) {
  if (!x.dense() || !y.dense()) {
    return false;
  }
  Prepared& p = state_->get({forward, x.shape(), w.shape(), y.shape(), options, static_cast<bool>(bias), f.slope});
  if (bias) {
    p.bias.set_data_handle(bias.data());
  }
  const bool keep = packed && !p.plain();
  const bool reorder_here = !packed && !p.plain();
  const auto lease = workspace.lease(p.scratch_bytes + (reorder_here ? p.weight_bytes() : 0), "conv2d");
  float* weights = w.data();
  if (keep) {
    if (packed->layout != &p) {
      packed->data = Tensor(allocator.allocate(p.weight_bytes(), "conv2d"),
                            {static_cast<int64_t>(p.weight_bytes() / sizeof(float))});
      packed->layout = &p;
      state_->reorder(p, w.data(), packed->data.data());
    }
    weights = packed->data.data();
  } else if (reorder_here) {
    weights = lease.floats();
    state_->reorder(p, w.data(), weights);
  }
  state_->run(p, x.data(), weights, y.data(), lease.data() + (reorder_here ? p.weight_bytes() : 0));
  return true;
}

bool OneDnn::conv2d_backward_data(Workspace& workspace, const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                                  const GradTarget& dx) {
  if (!dy.dense() || !dx.grad.dense()) {
    return false;
  }
  Prepared& p = state_->get(
      {.direction = backward_data, .x = dx.grad.shape(), .w = w.shape(), .y = dy.shape(), .options = options});
  const size_t weight_bytes = p.plain() ? 0 : p.weight_bytes();
  const bool add = dx.mode == Accumulate::add;
  const size_t sum_bytes = add ? static_cast<size_t>(dx.grad.elements()) * sizeof(float) : 0;
  const size_t sum_room = (sum_bytes + 63) / 64 * 64;
  const auto lease = workspace.lease(weight_bytes + sum_room + p.scratch_bytes, "conv2d");
  float* weights = w.data();
  if (!p.plain()) {
    weights = lease.floats();
    state_->reorder(p, w.data(), weights);
  }
  float* to = add ? reinterpret_cast<float*>(lease.data() + weight_bytes) : dx.grad.data();
  state_->run(p, to, weights, dy.data(), lease.data() + weight_bytes + sum_room);
  if (add) {
    add_to(to, dx.grad.elements(), dx.grad.data());
  }
  return true;
}

bool OneDnn::conv2d_backward_weights(Workspace& workspace, const Tensor& x, const Tensor& dy,
                                     const Conv2dOptions& options, const GradTarget& dw) {
  if (!x.dense() || !dy.dense()) {
    return false;
  }
  Prepared& p = state_->get(
      {.direction = backward_weights, .x = x.shape(), .w = dw.grad.shape(), .y = dy.shape(), .options = options});
  const bool add = dw.mode == Accumulate::add;
  const size_t plain_room = (static_cast<size_t>(dw.grad.elements()) * sizeof(float) + 63) / 64 * 64;
  const size_t ordered_room = p.plain() ? 0 : p.weight_bytes();
  const size_t sum_room = add ? plain_room : 0;
  const auto lease = workspace.lease(ordered_room + sum_room + p.scratch_bytes, "conv2d");
  float* plain = add ? reinterpret_cast<float*>(lease.data() + ordered_room) : dw.grad.data();
  float* ordered = p.plain() ? plain : lease.floats();
  state_->run(p, x.data(), ordered, dy.data(), lease.data() + ordered_room + sum_room);
  if (!p.plain()) {
    state_->reorder(p, ordered, plain);
  }
  if (add) {
    add_to(plain, dw.grad.elements(), dw.grad.data());
  }
  return true;
}

bool OneDnn::gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const GradTarget& c) {
  omp_set_num_threads(state_->threads);
  const int64_t inner = op_a == Transpose::no ? a.channels() : a.rows();
  const auto status = dnnl::sgemm(op_a == Transpose::no ? 'N' : 'T', op_b == Transpose::no ? 'N' : 'T', c.grad.rows(),
                                  c.grad.channels(), inner, 1.0F, a.data(), a.pitch(), b.data(), b.pitch(),
                                  c.mode == Accumulate::add ? 1.0F : 0.0F, c.grad.data(), c.grad.pitch());
  return status == dnnl::status::success;
}

}  // namespace gle::cpu
