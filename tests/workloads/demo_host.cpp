#include "tests/workloads/demo_host.h"

#include <fmt/format.h>

namespace cgphase::workloads {

namespace {

using nlohmann::json;

double value_of(const json& run, const char* key) { return run.at(key).get<double>(); }

}  // namespace

double DemoHost::ratio(const char* arm, const char* other, const char* key) const {
  const auto mine = runs_.find(arm), theirs = runs_.find(other);
  if (mine == runs_.end() || theirs == runs_.end()) return 0;
  const double whole = value_of(theirs->second, key);
  return whole > 0 ? value_of(mine->second, key) / whole : 0;
}

std::string DemoHost::served(const std::string& arm) const {
  const json& run = runs_.at(arm);
  const double p99 = value_of(run, "p99_ms"), batch = value_of(run, "batch_cpu_seconds");
  if (arm == "alone") return fmt::format("  the service alone: p99 {:.0f} ms\n", p99);
  if (arm == "free")
    return fmt::format("  beside the job, without limits: p99 {:.0f} ms; the job gets {:.1f} s\n",
                       p99, batch);
  return fmt::format(
      "  beside the job, with cgphase: p99 {:.0f} ms, {:.2f} of alone; the job gets {:.1f} s, "
      "{:.0f} %\n",
      p99, ratio("cgphase", "alone", "p99_ms"), batch,
      100 * ratio("cgphase", "free", "batch_cpu_seconds"));
}

std::string DemoHost::queued(const std::string& arm) const {
  const json& run = runs_.at(arm);
  const std::string rest =
      fmt::format("{:.0f} s, {} at once, {} killed\n", value_of(run, "makespan_s"),
                  run.at("most_at_once").get<int>(), run.at("kills").get<int>());
  if (arm == "limits") return "  started by their owners' limits: " + rest;
  return "  started when `cgphase fit` has room: " + rest;
}

Result<std::string> DemoHost::add(std::string_view line) {
  const json run = json::parse(line, nullptr, false);
  try {
    std::string arm = run.at("arm").get<std::string>();
    if (!run.contains("seed")) return "";
    const bool share = run.contains("p99_ms");
    if (!share && arm == "cgphase") arm = "fit";
    runs_[arm] = run;
    return share ? served(arm) : queued(arm);
  } catch (const json::exception& error) {
    return failure(ErrorKind::invalid, fmt::format("\"{}\": {}", line, error.what()));
  }
}

std::vector<Requirement> DemoHost::requirements() const {
  const double p99 = ratio("cgphase", "alone", "p99_ms");
  const double makespan = ratio("fit", "limits", "makespan_s");
  const auto fit = runs_.find("fit"), alone = runs_.find("alone");
  return {{alone != runs_.end() && value_of(alone->second, "p99_ms") <= kLargestP99AloneMs,
           fmt::format("p99 of the service alone at most {:.0f} ms", kLargestP99AloneMs),
           "this machine is too busy or too slow for the service, even alone"},
          {p99 > 0 && p99 <= kLargestP99Ratio,
           fmt::format("p99 beside the batch job at most {:.2f} of alone", kLargestP99Ratio),
           "the service was slow beside the batch job"},
          {ratio("cgphase", "free", "batch_cpu_seconds") >= kLeastBatchShare,
           fmt::format("at least {:.0f} % of the batch job's work", 100 * kLeastBatchShare),
           "the batch job lost too much work to the service"},
          {makespan > 0 && makespan <= kLargestMakespanRatio,
           fmt::format("twelve jobs in at most {:.2f} of the time", kLargestMakespanRatio),
           "twelve jobs took too long"},
          {fit != runs_.end() && fit->second.at("kills") == 0, "no job of the queue was killed",
           "the kernel killed a job of the queue"}};
}

std::string DemoHost::numbers() const {
  if (runs_.size() < 5) return "";
  return fmt::format(
      "the service's p99 was {:.2f} of alone beside a job that did {:.0f} % of its work; twelve "
      "jobs took {:.2f} of the time, {} killed",
      ratio("cgphase", "alone", "p99_ms"), 100 * ratio("cgphase", "free", "batch_cpu_seconds"),
      ratio("fit", "limits", "makespan_s"), runs_.at("fit").at("kills").get<int>());
}

}  // namespace cgphase::workloads
