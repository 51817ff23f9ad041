// Formats text in columns. Cells are printable text (base/text.h). Widths are counted as a terminal
// shows them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output/style.h"
#include "cli/output/text_width.h"

namespace cgphase {

class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  struct Cell {
    std::string text;
    Tone tone = Tone::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // The row must have as many cells as there are columns.
  void add(std::vector<Cell> row);
  // Returns lines without trailing blanks. Titles come first if the style has a legend.
  std::string text(const TextStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Returns one CSV record (RFC 4180) with its line feed.
std::string csv_record(const std::vector<std::string>& fields);

}  // namespace cgphase
