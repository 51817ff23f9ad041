// The numbers of the rails, as docs/safety.md has them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "agent/config/config_table.h"
#include "base/file.h"

using namespace cgphase;

namespace {

constexpr std::string_view kRailsPrefix = "rails.";

// A value as it stands in a document or a configuration; in seconds or bytes where it has a unit.
double amount_of(std::string text) {
  std::erase_if(text, [](char byte) { return byte == '"' || byte == ' '; });
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  const std::map<std::string, double> units = {
      {"", 1},     {"%", 0.01}, {"/s", 1},     {"ms", 1e-3},     {"s", 1},
      {"min", 60}, {"h", 3600}, {"d", 86'400}, {"MiB", 1 << 20}, {"M", 1 << 20}};
  std::size_t digits = 0;
  const double number = std::stod(text, &digits);
  return number * units.at(text.substr(digits));
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// The rows "| field, field | default, default | ..." of the section Numbers.
std::map<std::string, double> documented_numbers() {
  const Result<std::string> document = read_file(CGPHASE_SOURCE_DIR "/docs/safety.md", 1 << 20);
  REQUIRE(document.has_value());
  const std::size_t begin = document->find("\n## Numbers\n");
  REQUIRE(begin != std::string::npos);
  std::map<std::string, double> numbers;
  for (const std::string& line : split_at(document->substr(begin), '\n')) {
    const std::vector<std::string> cells = split_at(line, '|');
    if (cells.size() < 3 || cells[1] == " field " || cells[1].starts_with("---")) continue;
    const auto fields = split_at(cells[1], ','), values = split_at(cells[2], ',');
    REQUIRE_MESSAGE(fields.size() == values.size(), line);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::string field = fields[i];
      std::erase(field, ' ');
      numbers[field] = amount_of(values[i]);
    }
  }
  return numbers;
}

}  // namespace

TEST_CASE("the table of numbers in docs/safety.md has each number of the rails at its default") {
  std::map<std::string, double> told = documented_numbers();
  for (const ConfigKey& key : config_keys()) {
    if (!key.key.starts_with(kRailsPrefix)) continue;
    CAPTURE(key.key);
    const auto found = told.find(key.key.substr(kRailsPrefix.size()));
    REQUIRE(found != told.end());
    CHECK(found->second == doctest::Approx(amount_of(key.default_value)));
    told.erase(found);
  }
  std::string left;
  for (const auto& [field, value] : told) left += field + " ";
  CHECK(left == "");
}
