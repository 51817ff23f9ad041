#include "policy/terms_parser.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr double kMostCores = 1'000'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
constexpr std::chrono::seconds kShortestFreeze{3}, kLongestFreeze{600};

struct ClassName {
  std::string_view name;
  ServiceClass service_class;
};
constexpr ClassName kClassNames[] = {
    {"critical", ServiceClass::critical},   {"standard", ServiceClass::standard},
    {"batch", ServiceClass::batch},         {"inference", ServiceClass::critical},
    {"sidecar", ServiceClass::standard},    {"training", ServiceClass::batch},
};

}  // namespace

Status set_term(Terms& terms, std::string_view key, std::string_view value) {
  const auto refused = [&](const char* allowed) {
    return failure(ErrorKind::invalid, escape_name(key) + "=" + escape_name(value) +
                                           ": must be " + allowed);
  };
  if (key == "class") {
    const auto found = std::ranges::find(kClassNames, value, &ClassName::name);
    if (found == std::end(kClassNames))
      return refused("critical, standard, batch, inference, sidecar or training");
    terms.service_class = found->service_class;
    return {};
  }
  if (key == "cpu.min" || key == "cpu.max") {
    const auto cores = parse_double(value);
    if (!cores || !(*cores > 0 && *cores <= kMostCores)) return refused("cores, such as 0.5");
    (key == "cpu.min" ? terms.cpu_min : terms.cpu_max) = Cores{*cores};
    return {};
  }
  if (key == "memory.min" || key == "memory.max") {
    const auto bytes = parse_bytes(value);
    if (!bytes || *bytes == 0 || *bytes > kMostBytes) return refused("a size, such as 512M");
    (key == "memory.min" ? terms.memory_min : terms.memory_max) = Bytes{*bytes};
    return {};
  }
  if (key == "sleep") {
    if (value != "on" && value != "off") return refused("on or off");
    terms.sleep = value == "on";
    return {};
  }
  if (key == "freeze") {
    const auto nanoseconds = parse_duration_ns(value);
    const auto time = std::chrono::floor<std::chrono::seconds>(
        std::chrono::nanoseconds(nanoseconds.value_or(0)));
    if (time < kShortestFreeze || time > kLongestFreeze)
      return refused("a time from 3s to 10min, such as 30s");
    terms.freeze_longest = time;
    return {};
  }
  return failure(ErrorKind::invalid,
                 escape_name(key) + ": no term; there are class, cpu.min, cpu.max, memory.min, "
                                    "memory.max, sleep and freeze");
}

Status set_terms(Terms& terms, std::string_view text) {
  std::string_view word;
  while (next_word(text, word)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return failure(ErrorKind::invalid, escape_name(word) + ": must be TERM=VALUE");
    if (const Status set = set_term(terms, word.substr(0, equals), word.substr(equals + 1)); !set)
      return set;
  }
  return {};
}

}  // namespace cgphase
