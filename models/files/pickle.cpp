// A machine for the data part of Python's pickle language, protocols 2 to 5: it builds nodes and calls nothing.
#include "models/files/pickle.h"

#include <algorithm>
#include <array>
#include <bit>

namespace gle {

namespace {

constexpr size_t kMostNodes = 500'000;
constexpr int kMark = -2;

constexpr std::array<std::string_view, 11> kDataNames = {"collections OrderedDict",
                                                         "torch._utils _rebuild_tensor_v2",
                                                         "torch._utils _rebuild_tensor",
                                                         "torch._utils _rebuild_parameter",
                                                         "torch Size",
                                                         "torch.jit._pickle build_intlist",
                                                         "torch.jit._pickle build_doublelist",
                                                         "torch.jit._pickle build_boollist",
                                                         "torch.jit._pickle build_tensorlist",
                                                         "torch.jit._pickle restore_type_tag",
                                                         "torch.nn.parameter Parameter"};

}  // namespace

Pickle::Pickle(ByteReader& in, Names names) : in_(in), names_(names) {
  while (!done_) {
    step(in_.u8());
  }
}

int Pickle::add(PickleNode node) {
  if (nodes_.size() == kMostNodes) {
    in_.refuse("the pickle has more than ", kMostNodes, " objects");
  }
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

int Pickle::pop() {
  if (stack_.empty() || stack_.back() == kMark) {
    in_.refuse("damaged pickle: nothing left to take at ", in_.position());
  }
  const int node = stack_.back();
  stack_.pop_back();
  return node;
}

int Pickle::top(PickleNode::Kind kind, const char* what) {
  if (stack_.empty() || stack_.back() == kMark || nodes_[static_cast<size_t>(stack_.back())].kind != kind) {
    in_.refuse("damaged pickle: no ", what, " at ", in_.position());
  }
  return stack_.back();
}

std::vector<int> Pickle::pop_to_mark() {
  if (marks_.empty()) {
    in_.refuse("damaged pickle: no mark at ", in_.position());
  }
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<int> items(begin + 1, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

// The memo is written in order by every pickler; a number far ahead is a bomb.
void Pickle::remember(uint64_t key) {
  if (stack_.empty() || stack_.back() == kMark || key > memo_.size() + kMostNodes || key > 4 * kMostNodes) {
    in_.refuse("damaged pickle: memo ", key, " at ", in_.position());
  }
  memo_.resize(std::max(memo_.size(), static_cast<size_t>(key) + 1), -1);
  memo_[static_cast<size_t>(key)] = stack_.back();
}

std::string_view Pickle::line() {
  const size_t begin = in_.position();
  size_t length = 0;
  while (in_.u8() != '\n') {
    ++length;
  }
  in_.seek(begin);
  const std::string_view text = in_.text(length);
  (void)in_.u8();
  return text;
}

void Pickle::push_long(uint64_t bytes) {
  const std::string_view digits = in_.text(bytes);
  if (digits.size() > 8) {
    push(add_text(digits));
    return;
  }
  uint64_t value = !digits.empty() && (static_cast<uint8_t>(digits.back()) & 0x80U) != 0 ? ~uint64_t{0} : 0;
  for (size_t i = digits.size(); i-- > 0;) {
    value = (value << 8U) | static_cast<uint8_t>(digits[i]);
  }
  push(add_integer(static_cast<int64_t>(value)));
}

void Pickle::push_global(std::string_view module, std::string_view name) {
  const std::string both = std::string(module) + " " + std::string(name);
  const bool storage = module == "torch" && name.ends_with("Storage");
  const bool script = names_ == Names::torchscript && module.starts_with("__torch__");
  if (!storage && !script && std::find(kDataNames.begin(), kDataNames.end(), both) == kDataNames.end()) {
    in_.refuse("the pickle wants to use '", module, ".", name,
               "', which is not data. Nothing was run. If you trust the file, load it with PyTorch and save its "
               "state_dict anew");
  }
  push(add({.kind = Kind::name, .text = both, .items = {}}));
}

void Pickle::push_tuple(size_t count) {
  PickleNode tuple{.kind = Kind::list, .text = {}, .items = std::vector<int>(count)};
  for (size_t i = count; i-- > 0;) {
    tuple.items[i] = pop();
  }
  push(add(std::move(tuple)));
}

// name(arguments...) for the names that mean data.
void Pickle::reduce() {
  const PickleNode arguments = nodes_[static_cast<size_t>(top(Kind::list, "arguments"))];
  (void)pop();
  const std::string name = nodes_[static_cast<size_t>(top(Kind::name, "name"))].text;
  (void)pop();
  const std::vector<int>& items = arguments.items;
  if (name == "collections OrderedDict" && items.empty()) {
    push(add({.kind = Kind::dictionary, .text = {}, .items = {}}));
  } else if (name.starts_with("torch._utils _rebuild_tensor") && items.size() >= 4) {
    push(add({.kind = Kind::tensor, .text = {}, .items = {items.begin(), items.begin() + 4}}));
  } else if ((name == "torch._utils _rebuild_parameter" || name == "torch Size" ||
              name.starts_with("torch.jit._pickle ")) &&
             !items.empty()) {
    push(items[0]);
  } else {
    in_.refuse("the pickle calls '", name, "' with ", items.size(), " arguments, which describes no data");
  }
}

// Attributes of an object: those of a TorchScript module are its contents, those of a dictionary are passed over.
void Pickle::build() {
  const int state = pop();
  if (stack_.empty() || stack_.back() == kMark) {
    in_.refuse("damaged pickle: no object to build at ", in_.position());
  }
  PickleNode& object = nodes_[static_cast<size_t>(stack_.back())];
  const PickleNode& attributes = nodes_[static_cast<size_t>(state)];
  if (object.kind != Kind::dictionary || (attributes.kind != Kind::dictionary && attributes.kind != Kind::none)) {
    in_.refuse("the pickle sets attributes of something that is not data, at ", in_.position());
  }
  if (names_ == Names::torchscript && object.items.empty()) {
    object.items = attributes.items;
  }
}

void Pickle::persistent() {
  PickleNode id = nodes_[static_cast<size_t>(top(Kind::list, "persistent id"))];
  (void)pop();
  if (id.items.size() < 5 || nodes_[static_cast<size_t>(id.items[0])].text != "storage") {
    in_.refuse("the pickle refers to something other than a storage, at ", in_.position());
  }
  if (id.items.size() > 5 && nodes_[static_cast<size_t>(id.items[5])].kind != Kind::none) {
    in_.refuse("storages that are views of others are not read");
  }
  push(add({.kind = Kind::storage, .text = {}, .items = {id.items.begin() + 1, id.items.begin() + 5}}));
}

int Pickle::find(int dictionary, std::string_view key) const {
  const PickleNode& node = (*this)[dictionary];
  if (node.kind == Kind::dictionary) {
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const PickleNode& name = (*this)[node.items[i]];
      if (name.kind == Kind::text && name.text == key) {
        return node.items[i + 1];
      }
    }
  }
  return -1;
}

void Pickle::step(uint8_t code) {
  const auto append = [&](PickleNode::Kind kind, const char* what, const std::vector<int>& items) {
    std::vector<int>& list = nodes_[static_cast<size_t>(top(kind, what))].items;
    list.insert(list.end(), items.begin(), items.end());
    if (kind == Kind::dictionary && items.size() % 2 != 0) {
      in_.refuse("damaged pickle: a key without a value at ", in_.position());
    }
  };
  const auto recall = [&](uint64_t key) {
    if (key >= memo_.size() || memo_[static_cast<size_t>(key)] < 0) {
      in_.refuse("damaged pickle: no memo ", key, " at ", in_.position());
    }
    push(memo_[static_cast<size_t>(key)]);
  };
  switch (code) {
    case 0x80:  // PROTO
      (void)in_.u8();
      return;
    case 0x95:  // FRAME
      (void)in_.u64();
      return;
    case '.':  // STOP
      root_ = pop();
      done_ = true;
      return;
    case '(':  // MARK
      marks_.push_back(stack_.size());
      stack_.push_back(kMark);
      return;
    case '0':  // POP
      (void)pop();
      return;
    case 'N':
      return push(add({.kind = Kind::none, .text = {}, .items = {}}));
    case 0x88:  // NEWTRUE
      return push(add({.kind = Kind::boolean, .integer = 1, .text = {}, .items = {}}));
    case 0x89:  // NEWFALSE
      return push(add({.kind = Kind::boolean, .integer = 0, .text = {}, .items = {}}));
    case 'J':  // BININT
      return push(add_integer(static_cast<int32_t>(in_.u32())));
    case 'K':  // BININT1
      return push(add_integer(in_.u8()));
    case 'M':  // BININT2
      return push(add_integer(in_.u16()));
    case 0x8a:  // LONG1
      return push_long(in_.u8());
    case 'G': {  // BINFLOAT, big-endian
      uint64_t bits = 0;
      for (int i = 0; i < 8; ++i) {
        bits = (bits << 8U) | in_.u8();
      }
      return push(add({.kind = Kind::real, .real = std::bit_cast<double>(bits), .text = {}, .items = {}}));
    }
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      return push(add_text(in_.text(in_.u32())));
    case 'U':   // SHORT_BINSTRING
    case 0x8c:  // SHORT_BINUNICODE
      return push(add_text(in_.text(in_.u8())));
    case ')':
    case ']':
      return push(add_list());
    case '}':
      return push(add({.kind = Kind::dictionary, .text = {}, .items = {}}));
    case 't':  // TUPLE
      return push(add({.kind = Kind::list, .text = {}, .items = pop_to_mark()}));
    case 0x85:
    case 0x86:
    case 0x87:  // TUPLE1 to TUPLE3
      return push_tuple(code - 0x84U);
    case 'a': {  // APPEND
      const int item = pop();
      return append(Kind::list, "list", {item});
    }
    case 'e': {  // APPENDS
      const std::vector<int> items = pop_to_mark();
      return append(Kind::list, "list", items);
    }
    case 's': {  // SETITEM
      const int value = pop();
      const int key = pop();
      return append(Kind::dictionary, "dictionary", {key, value});
    }
    case 'u': {  // SETITEMS
      const std::vector<int> items = pop_to_mark();
      return append(Kind::dictionary, "dictionary", items);
    }
    case 'q':  // BINPUT
      return remember(in_.u8());
    case 'r':  // LONG_BINPUT
      return remember(in_.u32());
    case 0x94:  // MEMOIZE
      return remember(memo_.size());
    case 'h':  // BINGET
      return recall(in_.u8());
    case 'j':  // LONG_BINGET
      return recall(in_.u32());
    case 'c': {  // GLOBAL
      const std::string_view module = line();
      return push_global(module, line());
    }
    case 0x93: {  // STACK_GLOBAL
      const std::string name = nodes_[static_cast<size_t>(top(Kind::text, "name"))].text;
      (void)pop();
      const std::string module = nodes_[static_cast<size_t>(top(Kind::text, "module"))].text;
      (void)pop();
      return push_global(module, name);
    }
    case 'R':
      return reduce();
    case 0x81: {  // NEWOBJ, of the classes of TorchScript alone
      (void)top(Kind::list, "arguments");
      (void)pop();
      const std::string name = nodes_[static_cast<size_t>(top(Kind::name, "class"))].text;
      (void)pop();
      if (!name.starts_with("__torch__")) {
        in_.refuse("the pickle makes an object of '", name, "', which is not data");
      }
      return push(add({.kind = Kind::dictionary, .text = {}, .items = {}}));
    }
    case 'b':
      return build();
    case 'Q':
      return persistent();
    default:
      in_.refuse("the pickle has the instruction ", static_cast<int>(code), " at ", in_.position() - 1,
                 ", which no file of weights needs");
  }
}

}  // namespace gle
