#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// What a pickle describes, as plain data. Nothing in it is ever called: the few names that PyTorch needs to describe
// tensors become nodes of their own kind, any other name is refused.
struct PickleNode {
  enum class Kind : uint8_t { none, boolean, integer, real, text, list, dictionary, name, storage, tensor };
  Kind kind = Kind::none;
  int64_t integer = 0;     // boolean, integer
  double real = 0;         // real
  std::string text;        // text; a whole number beyond 64 bits (its bytes); name: "module name"
  std::vector<int> items;  // list and tuple; dictionary: key, value, key, value; storage: type, key, location,
                           // elements; tensor: storage, offset, sizes, strides
};

class Pickle {
 public:
  using Kind = PickleNode::Kind;

  // Which names beyond those of tensors are known: the classes of a TorchScript archive become dictionaries.
  enum class Names { tensors, torchscript };

  // Reads one pickle from where `in` stands to its end.
  Pickle(ByteReader& in, Names names);

  int root() const { return root_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const PickleNode& operator[](int node) const { return nodes_[static_cast<size_t>(node)]; }
  // The value under a text key of a dictionary, or -1.
  int find(int dictionary, std::string_view key) const;

 private:
  int add(PickleNode node);
  int add_list() { return add({.kind = Kind::list, .text = {}, .items = {}}); }
  int add_text(std::string_view text) { return add({.kind = Kind::text, .text = std::string(text), .items = {}}); }
  int add_integer(int64_t value) { return add({.kind = Kind::integer, .integer = value, .text = {}, .items = {}}); }
  void push(int node) { stack_.push_back(node); }
  int pop();
  int top(PickleNode::Kind kind, const char* what);
  std::vector<int> pop_to_mark();
  void remember(uint64_t key);
  void step(uint8_t code);
  void push_long(uint64_t bytes);
  void push_global(std::string_view module, std::string_view name);
  void push_tuple(size_t count);
  void reduce();
  void build();
  void persistent();
  std::string_view line();

  ByteReader& in_;
  Names names_;
  std::vector<PickleNode> nodes_;
  std::vector<int> stack_;
  std::vector<size_t> marks_;
  std::vector<int> memo_;
  int root_ = -1;
  bool done_ = false;
};

}  // namespace gle
