#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gle::data {

// A table as RFC 4180 has it: commas, quotes with "" inside, line ends of both kinds, one header line. A byte order
// mark and blank lines are skipped.
struct CsvTable {
  struct Row {
    int line = 0;  // where it begins
    std::vector<std::string> fields;
  };
  std::vector<std::string> header;
  std::vector<Row> rows;

  std::optional<size_t> column(std::string_view name) const;
};

// Throws ErrorCode::data with "name:line" for an open quote, a row of another length than the header, a column named
// twice.
CsvTable read_csv(std::span<const uint8_t> text, const std::string& name);

// A field as it must stand in a CSV file.
std::string csv_field(std::string_view text);

}  // namespace gle::data
