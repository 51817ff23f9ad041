// The table of configuration keys: one row drives reading, bounds, `config show` and the
// documentation. Knows nothing of TOML.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/config/config.h"

namespace cgphase {

// A value as a file can hold it; monostate for kinds that no key takes (dates, nested tables).
using RawValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>>;

struct ConfigRow {
  std::string key;
  std::string allowed;
  std::string meaning;
  // Empty when the value was taken, else what is wrong with it ("not a duration").
  std::function<std::string(const RawValue&, Config&)> read;
  std::function<std::string(const Config&)> print;
  bool internal = false;  // not documented; files may set it only while kTestKeys is set
};

// The environment variable with which tests set internal keys.
inline constexpr const char* kTestKeys = "CGPHASE_TEST_KEYS";

std::span<const ConfigRow> config_table();
const ConfigRow* find_row(std::string_view key);

// What became of a key of an earlier version, as one sentence; empty for every other name.
std::string former_key(std::string_view key);
bool is_section(std::string_view name);

// "250ms", "30s", "1d": the largest unit that leaves no rest. "256M" likewise.
std::string duration_text(std::chrono::nanoseconds duration);
std::string bytes_text(std::uint64_t bytes);

}  // namespace cgphase
