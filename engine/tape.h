#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/backend.h"
#include "engine/memory/arena.h"
#include "engine/options.h"
#include "engine/var.h"

namespace gle {

struct Parameter;

// Where a backward closure writes the gradients of its op's inputs, in their order; those that nobody needs are empty.
using GradTargets = std::span<const GradTarget>;

// What a forward pass leaves behind: a list of closures that backward() walks from the end, freeing as it goes, and the
// gradients under way. From the second pass on it allocates nothing of its own.
class Tape {
 public:
  using Inputs = std::initializer_list<std::reference_wrapper<const Var>>;

  explicit Tape(Backend& backend);
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // A Var whose gradient may be asked for; it needs none until an op that needs one writes it.
  Var new_var(Tensor value);
  // A value whose gradient the caller wants: gradient() has it after backward(), until clear().
  Var leaf(Tensor value);
  // The parameter's value; backward() writes or adds to its gradient.
  Var parameter(Parameter& parameter);

  // Notes how to get the gradients of `inputs` from that of `output`: backward(Backend&, const Tensor& dy,
  // GradTargets). Nothing is kept if no input needs a gradient.
  template <class Backward>
  void record(const char* op, Inputs inputs, const Var& output, Backward&& backward) {
    using Closure = std::decay_t<Backward>;
    static_assert(alignof(Closure) <= alignof(std::max_align_t));
    if (!needs_gradient(inputs)) {
      return;
    }
    Node& node = next_node(op, inputs, output);
    node.closure = new (arena_.allocate(sizeof(Closure), alignof(Closure))) Closure(std::forward<Backward>(backward));
    node.run = [](void* closure, Backend& backend, const Tensor& dy, GradTargets targets) {
      (*static_cast<Closure*>(closure))(backend, dy, targets);
    };
    node.destroy = [](void* closure) { static_cast<Closure*>(closure)->~Closure(); };
    keep_node();
  }

  // Throws if backward() would go wrong after an op had written `output`: asked before it does.
  void require_writable(const char* op, Inputs inputs, const Var& output) const;

  // Walks back from `output`, whose gradient is `cotangent` (of its shape), or 1 for a single number.
  void backward(const Var& output);
  void backward(const Var& output, const Tensor& cotangent);

  bool needs_gradient(const Var& var) const;
  // The gradient of a leaf, or an empty tensor if nothing depended on it.
  Tensor gradient(const Var& leaf) const;
  // Forgets everything recorded; gradients of leaves too.
  void clear();

  size_t size() const { return nodes_used_; }
  // Called in backward() as soon as nothing more will be written to a parameter's gradient in this pass, for each
  // parameter that was asked for in it.
  void set_on_gradient(std::function<void(Parameter&)> on_gradient) { on_gradient_ = std::move(on_gradient); }
  // Makes every gradient be looked at: the first that is not finite throws ErrorCode::not_finite and names the op.
  void set_check_finite(bool on) { check_finite_ = on; }

 private:
  static constexpr size_t kMostInputs = 4;

  struct Interval {
    int64_t begin, end;
  };

  // The gradient of one wide tensor: memory taken when first written, and which channels have been written.
  struct Slot {
    Shape shape;
    Tensor grad;
    std::vector<Interval> written;   // disjoint
    std::vector<Interval> produced;  // channels of the value that an op on the tape has written
    size_t created_at = 0;           // nodes on the tape then: once these are walked nobody asks for it again
    bool needed = false;
    bool keep = false;
    bool spent = false;  // backward() has been past it
    Parameter* parameter = nullptr;
  };

  struct Place {
    int slot = Var::kNoSlot;
    int64_t begin = 0, end = 0;
  };

  struct Node {
    const char* op = nullptr;
    std::array<Place, kMostInputs> inputs;
    size_t input_count = 0;
    Place output;
    void* closure = nullptr;
    void (*run)(void*, Backend&, const Tensor&, GradTargets) = nullptr;
    void (*destroy)(void*) = nullptr;
  };

  int new_slot(const Shape& shape);
  bool needs_gradient(Inputs inputs) const;
  Node& next_node(const char* op, Inputs inputs, const Var& output);  // behind the last one, not kept yet
  void keep_node();
  static Place place_of(const Var& var);
  GradTarget target(const Place& place, const char* op);
  bool take_gradient(const Place& place, Tensor& dy);
  void fill_gaps(Slot& slot, int64_t begin, int64_t end);
  void walk_back();
  void run(Node& node);
  void release(Slot& slot);
  void destroy_closures();

  Backend& backend_;
  uint64_t pass_;  // no other tape has or had it
  Arena arena_;
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;  // records beyond the used ones are kept for the next pass
  size_t nodes_used_ = 0;
  size_t slots_used_ = 0;
  bool check_finite_ = false;
  std::function<void(Parameter&)> on_gradient_;
};

}  // namespace gle
