#include "cli/output/job_words.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {

Result<double> parse_risk(const std::string& text, double otherwise) {
  if (text.empty()) return otherwise;
  std::string_view number = trim(text);
  const bool percent = number.ends_with('%');
  if (percent) number = trim(number.substr(0, number.size() - 1));
  const std::optional<double> value = parse_double(number);
  const double risk = value ? *value / (percent ? 100 : 1) : 0;
  if (risk > 0 && risk < 1) return risk;
  return failure(ErrorKind::invalid,
                 "--risk " + escape_name(text) + " is not a share between 0 and 1 (0.1% or 0.001)");
}

bool names_a_file(const std::string& name) {
  if (name.ends_with(".csv") || name.ends_with(".gz")) return true;
  if (name.find('/') != std::string::npos && !name.starts_with('/')) return true;
  std::error_code none;  // a path with a slash in front that does not exist is a cgroup
  return std::filesystem::exists(name, none) && !std::filesystem::is_directory(name, none);
}

}  // namespace cgphase
