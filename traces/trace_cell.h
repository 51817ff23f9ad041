// Parses cells of a trace as programs and people write them. Private to traces/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cgphase {

// Returns `text` with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Predicates on trimmed cells, in upper or lower case. Missing: "", NaN, NA, N/A, null, None,
// undefined, "-" and the like. No limit: max, inf and unlimited. Infinite: infinity, or a number
// that a double cannot represent.
bool is_missing(std::string_view cell);
bool is_no_limit(std::string_view cell);
bool is_infinite(std::string_view cell);

// The number format of one file. Only some cells show whether a comma is a decimal comma or
// separates thousands: "0,5" does, "1,234" does not. The first clear cell decides for all.
class NumberFormat {
 public:
  // Updates the format from a cell that is read later.
  void learn(std::string_view cell);
  // Absent if the cell is not a number, or an ambiguous one.
  std::optional<double> read(std::string_view cell);
  // Why read() returns no number, as a predicate for a message after the cell.
  std::string why_not(std::string_view cell) const;

 private:
  enum class Decimal : std::uint8_t { unknown, point, comma };
  Decimal decimal_ = Decimal::unknown;
};

}  // namespace cgphase
