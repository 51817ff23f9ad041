#include "lab/replay/report.h"

#include <fmt/format.h>

#include "base/crc32.h"

namespace cgphase {
namespace {

std::uint32_t continued(std::uint32_t crc, std::uint32_t seed) {
  return crc32c(fmt::format("{:08x}", crc), seed);
}

}  // namespace

std::string policy_name(const ContenderResult& result) {
  return to_string(result.contender.policy) + (result.safety ? "+rails" : "");
}

std::uint32_t decisions_crc(const ContenderResult& result) {
  std::uint32_t crc = 0;
  for (const ExecutionResult& execution : result.executions) crc = continued(execution.crc, crc);
  return crc;
}

std::uint32_t decisions_crc(const ReplayReport& report) {
  std::uint32_t crc = 0;
  for (const ContenderResult& result : report.results) crc = continued(decisions_crc(result), crc);
  return crc;
}

std::string measured_by_use(const ReplayReport& report) {
  if (report.results.empty()) return "";
  std::size_t cpu = 0, memory = 0;
  for (const ExecutionResult& execution : report.results.front().executions) {
    cpu += execution.cpu.seconds > 0 && execution.cpu_by == Yardstick::largest_use ? 1 : 0;
    memory += execution.memory.seconds > 0 && execution.memory_by == Yardstick::largest_use ? 1 : 0;
  }
  if (cpu + memory == 0) return "";
  std::string whose = cpu > 0 ? fmt::format("the CPU of {}", cpu) : "";
  if (memory > 0)
    whose += fmt::format("{}the memory of {}", whose.empty() ? "" : " and ", memory);
  return fmt::format(
      "no limit and no host size is recorded for {} of {} execution{}; the largest "
      "recorded use replaces them, so savings are lower",
      whose, report.executions(), report.executions() == 1 ? "" : "s");
}

std::vector<std::optional<Interval>> ratio_intervals(std::span<const ReplaySums> executions,
                                                     const BootstrapOptions& options) {
  std::vector<std::vector<std::optional<double>>> values;  // by measure, then execution
  for (const Measure& measure : all_measures()) {
    if (measure.kind != Measure::Kind::ratio) continue;
    values.emplace_back();
    for (const ReplaySums& sums : executions) values.back().push_back(measure.of(sums));
  }
  return bootstrap(executions.size(), values.size(), options,
                   [&](std::span<const std::size_t> drawn) {
                     std::vector<std::optional<double>> means;
                     for (const auto& of_measure : values) {
                       double sum = 0;
                       int count = 0;
                       for (const std::size_t index : drawn) {
                         if (!of_measure[index]) continue;
                         sum += *of_measure[index];
                         ++count;
                       }
                       means.push_back(count > 0 ? std::optional(sum / count) : std::nullopt);
                     }
                     return means;
                   });
}

}  // namespace cgphase
