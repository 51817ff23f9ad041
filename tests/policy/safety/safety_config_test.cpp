// The numbers of the safety rules, as docs/safety.md has them.
#include "policy/safety_config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"

using namespace cgphase;

namespace {

// Converts to a value of any type, to count the members of an aggregate.
struct Any {
  template <class T>
  operator T() const;
};

template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Any{}}; })
    return member_count<T, Members..., Any>();
  else
    return sizeof...(Members);
}

// In seconds where it is a time.
template <class T>
double number_of(const T& value) {
  if constexpr (requires { value.count(); })
    return std::chrono::duration<double>(value).count();
  else
    return static_cast<double>(value);
}

std::map<std::string, double> constants() {
  std::map<std::string, double> numbers;
  const SafetyConfig config;
  const auto add = [&](const char* name, const auto& value) { numbers[name] = number_of(value); };
  add("enough_samples", config.enough_samples);
  add("enough_runs", config.enough_runs);
  add("quiet_memory_io_some_avg10", config.quiet_memory_io_some_avg10);
  add("quiet_cpu_some_avg10", config.quiet_cpu_some_avg10);
  add("cpu_pressure_holds_memory", config.cpu_pressure_holds_memory);
  add("cool_down", config.cool_down);
  add("quarantine", config.quarantine);
  add("stall_quarantine", config.stall_quarantine);
  add("trials_before_quarantine", config.trials_before_quarantine);
  add("trial", config.trial);
  add("trial_model_steps", config.trial_model_steps);
  add("trial_tolerance_ratio", config.trial_tolerance_ratio);
  add("host_lower_window", config.host_lower_window);
  add("host_lowers_per_window", config.host_lowers_per_window);
  add("reaction_time", config.reaction_time);
  add("at_risk_ratio", config.at_risk_ratio);
  add("cpu_headroom_ratio", config.cpu_headroom_ratio);
  add("cpu_floor_usec_per_period", config.cpu_floor_usec_per_period);
  add("throttled_ratio", config.throttled_ratio);
  add("throttled_window", config.throttled_window);
  add("cpu_raise_factor", config.cpu_raise_factor);
  add("cpu_lower_window", config.cpu_lower_window);
  add("memory_headroom_ratio", config.memory_headroom_ratio);
  add("memory_headroom_bytes", config.memory_headroom_bytes);
  add("killed_margin_factor", config.killed_margin_factor);
  add("memory_step_ratio", config.memory_step_ratio);
  add("memory_lower_window", config.memory_lower_window);
  add("dwell", config.dwell);
  add("stand_down", config.stand_down);
  add("smallest_change_ratio", config.smallest_change_ratio);
  add("smallest_raise_ratio", config.smallest_raise_ratio);
  add("throttled_periods", config.throttled_periods);
  add("cpu_raises_window", config.cpu_raises_window);
  add("at_risk_growth", config.at_risk_growth);
  add("stall_full_avg10", config.stall_full_avg10);
  add("settle", config.settle);
  add("start_up", config.start_up);
  add("failure_memory", config.failure_memory);
  add("steady_ratio", config.steady_ratio);
  add("growing_ratio", config.growing_ratio);
  add("cache_room_ratio", config.cache_room_ratio);
  add("trial_stall_allowance", config.trial_stall_allowance);
  add("trial_faults_allowance", config.trial_faults_allowance);
  add("silent_revert", config.silent_revert);
  add("reapply_pause", config.reapply_pause);
  add("reapplies_per_hour", config.reapplies_per_hour);
  add("rival_changes", config.rival_changes);
  add("rival_window", config.rival_window);
  add("rival_pause", config.rival_pause);
  add("lower_gpu_quota", config.lower_gpu_quota);
  return numbers;
}

// A value of the document, in seconds or bytes where it has a unit.
double amount_of(std::string text) {
  std::erase(text, ' ');
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  const std::map<std::string, double> units = {
      {"", 1},     {"%", 0.01}, {"/s", 1},     {"ms", 1e-3},     {"s", 1},
      {"min", 60}, {"h", 3600}, {"d", 86'400}, {"MiB", 1 << 20}};
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

TEST_CASE("the table of numbers in docs/safety.md has every constant of the safety rules") {
  const std::map<std::string, double> numbers = constants();
  CHECK(numbers.size() == member_count<SafetyConfig>());
  std::map<std::string, double> documented = documented_numbers();
  for (const auto& [name, number] : numbers) {
    CAPTURE(name);
    REQUIRE(documented.contains(name));
    CHECK(documented[name] == doctest::Approx(number));
    documented.erase(name);
  }
  CHECK(documented.empty());
}
