// Metrics of the daemon and its containers: OpenMetrics 1.0 for scrapes and for `-o openmetrics`,
// and the older Prometheus text format 0.0.4 for textfiles of node_exporter. One table of metrics,
// in base units. Ids identify a series, and free text is only in cgphase_container_info and
// cgphase_build_info. docs/metrics.md lists them. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/report.h"

namespace cgphase {

enum class MetricsForm : std::uint8_t { openmetrics, prometheus };

// The most containers that have series. A page has the number of the others.
inline constexpr std::size_t kMostMetricContainers = 1000;
// The most bytes of free text in a label.
inline constexpr std::size_t kMostLabelBytes = 256;

std::string openmetrics(const StatusReport& status);
std::string openmetrics(std::span<const ContainerReport> containers);

// Returns all metrics. `status` null: the daemon's own metrics have no samples.
std::string metrics_page(const StatusReport* status, std::span<const ContainerReport> containers,
                         MetricsForm form);

// Returns every family that a page can have, in its order, for the documentation.
struct MetricFamily {
  std::string name;    // of its samples: with _total and _info
  std::string type;
  std::string labels;  // names of the labels: "container, mode"
  std::string help;
};
std::vector<MetricFamily> metric_families();

}  // namespace cgphase
