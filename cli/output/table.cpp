#include "cli/output/table.h"

#include <algorithm>

#include "base/check.h"

namespace cgphase {
namespace {

constexpr std::string_view kGap = "  ";

void append_cell(std::string& line, const Table::Cell& cell, Table::Align align,
                 std::size_t width, const TextStyle& style) {
  const std::string blanks(width - display_width(cell.text), ' ');
  const std::string text = toned(cell.text, cell.tone, style);
  line += align == Table::Align::right ? blanks + text : text + blanks;
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  CHECK_INVARIANT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text(const TextStyle& style) const {
  std::vector<std::vector<Cell>> lines;
  if (style.legend) {
    lines.emplace_back();
    for (const Column& column : columns_) lines.back().push_back({column.title, Tone::strong});
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], display_width(line[i].text));
  std::string out;
  for (const auto& cells : lines) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += kGap;
      append_cell(line, cells[i], columns_[i].align, widths[i], style);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string csv_record(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    if (fields[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += fields[i];
      continue;
    }
    line += '"';
    for (const char c : fields[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

}  // namespace cgphase
