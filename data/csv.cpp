#include "data/csv.h"

#include <algorithm>
#include <cstdint>

#include "engine/error.h"

namespace gle::data {

namespace {

constexpr size_t kMostColumns = 1000;

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // False at the end. A blank line is a row of one empty field.
  bool next(CsvTable::Row& row) {
    if (at_ >= text_.size()) {
      return false;
    }
    row.line = line_;
    row.fields.clear();
    while (true) {
      if (row.fields.size() == kMostColumns) {
        fail(ErrorCode::data, name_, ":", line_, ": more than ", kMostColumns, " columns");
      }
      row.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      if (at_ >= text_.size()) {
        return true;
      }
      const char stop = text_[at_++];
      if (stop == '\n') {
        ++line_;
        return true;
      }
    }
  }

 private:
  std::string plain() {
    const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string_view field = text_.substr(at_, end - at_);
    at_ = end;
    if (field.ends_with('\r') && (end == text_.size() || text_[end] == '\n')) {
      field.remove_suffix(1);
    }
    return std::string(field);
  }

  std::string quoted() {
    const int begin = line_;
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          end_of_field();
          return field;
        }
        ++at_;
      }
      line_ += text_[at_] == '\n' ? 1 : 0;
      field += text_[at_];
    }
    fail(ErrorCode::data, name_, ":", begin, ": a quote that is never closed");
  }

  void end_of_field() {
    if (at_ < text_.size() && text_[at_] == '\r') {
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      fail(ErrorCode::data, name_, ":", line_, ": text after a closing quote");
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
};

bool blank(const CsvTable::Row& row) { return row.fields.size() == 1 && row.fields[0].empty(); }

}  // namespace

std::optional<size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? std::nullopt : std::optional(static_cast<size_t>(found - header.begin()));
}

CsvTable read_csv(std::span<const uint8_t> text, const std::string& name) {
  std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  if (view.starts_with("\xEF\xBB\xBF")) {
    view.remove_prefix(3);
  }
  Reader reader(view, name);
  CsvTable table;
  CsvTable::Row row;
  while (table.header.empty()) {
    if (!reader.next(row)) {
      fail(ErrorCode::data, name, ": empty; expected a header line");
    }
    if (!blank(row)) {
      table.header = row.fields;
    }
  }
  std::vector<std::string> sorted = table.header;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    fail(ErrorCode::data, name, ": column '", *twice, "' is there twice");
  }
  while (reader.next(row)) {
    if (blank(row)) {
      continue;
    }
    if (row.fields.size() != table.header.size()) {
      fail(ErrorCode::data, name, ":", row.line, ": ", row.fields.size(), " fields; the header has ",
           table.header.size());
    }
    table.rows.push_back(row);
  }
  return table;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string field = "\"";
  for (const char c : text) {
    field += c;
    if (c == '"') {
      field += c;
    }
  }
  return field + '"';
}

}  // namespace gle::data
