// Replies as metrics: OpenMetrics 1.0 for scrapes and for `-o openmetrics`, and Prometheus' older
// text format 0.0.4 for textfiles of node_exporter, which reads no other. One table of metrics, in
// base units; series are told apart by ids, free text stands in cgphase_container_info and
// cgphase_build_info alone. docs/metrics.md lists them. Pure, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace cgphase {

// What of a reply is the value: a number or a truth; how many there are; 0 to 2 of a mode.
enum class MetricForm : std::uint8_t { number, count, mode, phase };

// One sample of a reply. Samples of one family follow each other.
struct Metric {
  const char* family;       // without "_total"
  const char* type;         // gauge or counter
  const char* help;
  const char* path;         // JSON pointer; absent values have no sample
  const char* labels = "";  // of this sample: mode="observe"
  double scale = 1;         // to base units
  MetricForm measure = MetricForm::number;
};

// Of the daemon, and of each of its containers.
extern const std::span<const Metric> kDaemonMetrics, kContainerMetrics;

enum class MetricsForm : std::uint8_t { openmetrics, prometheus };

// Of more containers than this a page has no series; it says of how many.
inline constexpr std::size_t kMostMetricContainers = 1000;
// Free text in a label is cut there.
inline constexpr std::size_t kMostLabelBytes = 256;

// As OpenMetrics. `rows` are the containers of a reply, or its body where the metrics are the
// daemon's.
std::string openmetrics(std::span<const Metric> metrics,
                        const std::vector<const nlohmann::json*>& rows);

// All metrics: of a reply to `status` and one to `list`.
std::string metrics_page(const nlohmann::json& status, const nlohmann::json& list,
                         MetricsForm form);

// Every family that a page can have, in its order, for the documentation.
struct MetricFamily {
  std::string name;    // of its samples: with _total and _info
  std::string type;
  std::string labels;  // their names, "container, mode"
  std::string help;
};
std::vector<MetricFamily> metric_families();

}  // namespace cgphase
