// Cells of a trace as programs and people write them. Private to model/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cgphase {

// `text` with ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Of trimmed cells, in any case: "", NaN, NA, N/A, null, None, undefined, "-" and the like; max,
// inf and unlimited; infinity or a number beyond a double.
bool is_missing(std::string_view cell);
bool is_no_limit(std::string_view cell);
bool is_infinite(std::string_view cell);

// How the numbers of one file are written. Whether a comma is a decimal comma or separates
// thousands is certain of some cells only ("0,5"; "1,234" is not); they decide for the others.
class NumberFormat {
 public:
  // Takes note of a cell, to be read later.
  void learn(std::string_view cell);
  // Absent where the cell is no number, or not certainly one.
  std::optional<double> read(std::string_view cell);
  // Why read() finds none: a predicate behind the cell.
  std::string why_not(std::string_view cell) const;

 private:
  enum class Decimal : std::uint8_t { unknown, point, comma };
  Decimal decimal_ = Decimal::unknown;
};

}  // namespace cgphase
