#include "data/split_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/error.h"

namespace gle::data {

namespace {

using Json = nlohmann::json;

// Depths: 1 the list of splits, 2 one split, 3 one of its lists, 4 an entry.
class Handler : public Json::json_sax_t {
 public:
  Handler(const std::string& name, std::vector<SplitEntry>& out) : name_(name), out_(out) {}

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > INT64_MAX) {
      malformed();
    }
    return number(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { malformed(); }

  bool string(string_t& value) override {
    if (in_entry()) {
      if (field_++ != 0) {
        malformed();
      }
      entry_.path = value;
      return true;
    }
    return scalar();
  }

  bool start_object(std::size_t) override {
    if (++depth_ != 2) {
      malformed();
    }
    keys_.clear();
    return true;
  }
  bool key(string_t& value) override {
    if (!keys_.insert(value).second) {
      fail(ErrorCode::data, name_, ": key '", value, "' is there twice in one split");
    }
    role_.reset();
    if (value == "train") {
      role_ = SplitEntry::Role::train;
    } else if (value == "query") {
      role_ = SplitEntry::Role::query;
    } else if (value == "gallery") {
      role_ = SplitEntry::Role::gallery;
    }
    return true;
  }
  bool end_object() override {
    for (const char* list : {"train", "query", "gallery"}) {
      if (splits_ == 0 && !keys_.contains(list)) {
        fail(ErrorCode::data, name_, ": its first split has no list '", list, "'");
      }
    }
    ++splits_;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ == 2 || depth_ > 4 || (depth_ == 4 && !role_)) {
      malformed();
    }
    field_ = 0;
    return true;
  }
  bool end_array() override {
    if (depth_ == 4) {
      if (field_ != 3) {
        malformed();
      }
      if (splits_ == 0) {
        entry_.role = *role_;
        out_.push_back(entry_);
      }
    }
    --depth_;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    fail(ErrorCode::data, name_, ": not valid JSON at byte ", at);
  }

  int splits() const { return splits_; }

 private:
  bool in_entry() const { return depth_ == 4; }

  [[noreturn]] void malformed() const {
    fail(ErrorCode::data, name_, ": not a split file; expected a list of {train, query, gallery}, each a list of ",
         "[path, id, camera]");
  }

  // A value that says nothing about images may only stand beside the lists ("num_train_pids": 767).
  bool scalar() const {
    if (depth_ != 2 || role_) {
      malformed();
    }
    return true;
  }

  bool number(int64_t value) {
    if (!in_entry()) {
      return scalar();
    }
    if (field_ != 1 && field_ != 2) {
      malformed();
    }
    (field_++ == 1 ? entry_.id : entry_.camera) = value;
    return true;
  }

  const std::string& name_;
  std::vector<SplitEntry>& out_;
  int depth_ = 0;
  int splits_ = 0;
  int field_ = 0;
  std::optional<SplitEntry::Role> role_;
  std::set<std::string> keys_;
  SplitEntry entry_;
};

}  // namespace

std::vector<SplitEntry> read_split_json(std::span<const uint8_t> text, const std::string& name) {
  std::vector<SplitEntry> entries;
  Handler handler(name, entries);
  Json::sax_parse(text.begin(), text.end(), &handler);
  if (handler.splits() == 0) {
    fail(ErrorCode::data, name, ": holds no split");
  }
  return entries;
}

}  // namespace gle::data
