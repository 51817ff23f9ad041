// Replies as OpenMetrics text (openmetrics.io, version 1.0), for a node_exporter textfile or a
// one-off scrape. Base units; series are told apart by ids, free text stands in
// cgphase_container_info alone. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace cgphase {

// One sample of a reply. Samples of one family follow each other.
struct Metric {
  const char* family;       // without "_total"
  const char* type;         // gauge or counter
  const char* help;
  const char* path;         // JSON pointer to a number or a boolean; absent values have no sample
  const char* labels = "";  // of this sample: mode="observe"
  double scale = 1;         // to base units
};

// Of the daemon, and of each of its containers.
extern const std::span<const Metric> kDaemonMetrics, kContainerMetrics;

// `rows` are the containers of a reply, or its body where the metrics are the daemon's.
std::string openmetrics(std::span<const Metric> metrics,
                        const std::vector<const nlohmann::json*>& rows);

}  // namespace cgphase
