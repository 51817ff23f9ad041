#include "cli/openmetrics.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kMicro = 1e-6;

constexpr Metric kDaemon[] = {
    {"cgphase_uptime_seconds", "gauge", "Since the daemon started.", "/uptime_seconds"},
    {"cgphase_cpu_seconds", "counter", "CPU time of the daemon.", "/cpu_seconds"},
    {"cgphase_resident_memory_bytes", "gauge", "Memory of the daemon.", "/rss_bytes"},
    {"cgphase_store_size_bytes", "gauge", "Size of the history.", "/store/size_bytes"},
    {"cgphase_store_cap_bytes", "gauge", "Most that the history may take.", "/store/cap_bytes"},
    {"cgphase_containers", "gauge", "Containers by mode.", "/containers/observe",
     "mode=\"observe\""},
    {"cgphase_containers", "gauge", "", "/containers/advise", "mode=\"advise\""},
    {"cgphase_containers", "gauge", "", "/containers/enforce", "mode=\"enforce\""},
    {"cgphase_saved_cpu_cores", "gauge", "Original less present limits.", "/saved_now/cpu_cores"},
    {"cgphase_saved_memory_bytes", "gauge", "Original less present limits.",
     "/saved_now/memory_bytes"},
    {"cgphase_saved_core_seconds", "counter", "Given back so far.", "/saved_core_seconds"},
    {"cgphase_saved_byte_seconds", "counter", "Given back so far.", "/saved_byte_seconds"},
    {"cgphase_writes", "counter", "Limits written.", "/writes/up", "direction=\"up\""},
    {"cgphase_writes", "counter", "", "/writes/down", "direction=\"down\""},
    {"cgphase_trials_reverted", "counter", "Lowerings that were taken back.", "/trials_reverted"},
    {"cgphase_kill_switch", "gauge", "1 while the kill switch holds.", "/kill_switch"},
    {"cgphase_companion_alive", "gauge", "1 while the companion lives.", "/companion_alive"},
};

constexpr Metric kContainer[] = {
    {"cgphase_container_phase", "gauge", "Index of the phase, where it is known.", "/phase/index"},
    {"cgphase_container_phase_seconds", "gauge", "In this phase so far.", "/seconds_in_phase"},
    {"cgphase_container_cpu_cores", "gauge", "CPU in use.", "/usage/cpu_cores"},
    {"cgphase_container_memory_need_bytes", "gauge", "Memory that cannot be dropped.",
     "/usage/memory_need_bytes"},
    {"cgphase_container_memory_current_bytes", "gauge", "Memory in use.",
     "/usage/memory_current_bytes"},
    {"cgphase_container_cpu_limit_cores", "gauge", "Limit in force, where there is one.",
     "/limits/cpu_cores"},
    {"cgphase_container_memory_limit_bytes", "gauge", "Limit in force, where there is one.",
     "/limits/memory_bytes"},
    {"cgphase_container_cpu_original_cores", "gauge", "Limit before any change.",
     "/original/cpu_cores"},
    {"cgphase_container_memory_original_bytes", "gauge", "Limit before any change.",
     "/original/memory_bytes"},
    {"cgphase_container_throttled_seconds", "counter", "Throttled time.", "/throttled_usec", "",
     kMicro},
    {"cgphase_container_oom_kills", "counter", "Processes killed for want of memory.",
     "/oom_kills"},
    {"cgphase_container_run_queue_longest_wait_seconds", "gauge",
     "Longest wait for a processor between the last two readings.", "/run_queue/longest_wait_usec",
     "", kMicro},
    {"cgphase_container_switches", "counter", "Times that its threads left a processor.",
     "/run_queue/voluntary_switches", "kind=\"voluntary\""},
    {"cgphase_container_switches", "counter", "", "/run_queue/involuntary_switches",
     "kind=\"involuntary\""},
    {"cgphase_container_network_bytes", "counter", "Of the network layer, loopback apart.",
     "/network/receive_bytes", "direction=\"receive\""},
    {"cgphase_container_network_bytes", "counter", "", "/network/transmit_bytes",
     "direction=\"transmit\""},
    {"cgphase_container_network_packets", "counter", "Of the network layer, loopback apart.",
     "/network/receive_packets", "direction=\"receive\""},
    {"cgphase_container_network_packets", "counter", "", "/network/transmit_packets",
     "direction=\"transmit\""},
    {"cgphase_container_tcp_retransmits", "counter", "Segments sent again.",
     "/network/tcp_retransmits"},
    {"cgphase_container_block_bytes", "counter", "Of completed requests to block devices.",
     "/block/bytes"},
    {"cgphase_container_block_requests", "counter", "Completed requests to block devices.",
     "/block/requests"},
    {"cgphase_container_block_latency_seconds", "counter",
     "Time that completed requests to block devices took.", "/block/latency_usec", "", kMicro},
    {"cgphase_container_gpu_utilisation_ratio", "gauge",
     "GPU time of its processes, 1 is one whole GPU.", "/gpu/utilisation_ratio"},
    {"cgphase_container_gpu_memory_utilisation_ratio", "gauge",
     "Time in which they used GPU memory, 1 is one whole GPU.", "/gpu/memory_utilisation_ratio"},
    {"cgphase_container_gpu_memory_bytes", "gauge", "GPU memory of its processes.",
     "/gpu/memory_bytes"},
};

constexpr std::array<std::pair<const char*, const char*>, 4> kTexts = {
    {{"name", "/name"}, {"engine", "/engine"}, {"image", "/image"}, {"path", "/path"}}};

std::optional<double> value_of(const json& row, const Metric& metric) {
  const json& found = view(row, metric.path);
  if (found.is_boolean()) return found.get<bool>() ? 1 : 0;
  const std::optional<double> number = view_number(row, metric.path);
  return number ? std::optional(*number * metric.scale) : std::nullopt;
}

// A label's value: backslash, quote and line feed are escaped.
std::string label_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}

// What tells a container's series apart; empty for the daemon's own.
std::string id_label(const json& row) {
  const json& id = view(row, "/id");
  if (!id.is_object()) return "";
  return fmt::format("container=\"{:.0f}:{:.0f}\"", view_number(row, "/id/device").value_or(0),
                     view_number(row, "/id/inode").value_or(0));
}

std::string sample(const std::string& name, const std::string& id, std::string_view labels,
                   double value) {
  std::string all = id;
  if (!all.empty() && !labels.empty()) all += ',';
  all += labels;
  return fmt::format("{}{} {}\n", name, all.empty() ? "" : "{" + all + "}", value);
}

// Of one info series, so that a container stays one series whatever it runs on.
std::string gpu_label(const json& row) {
  std::string ids;
  for (const json& id : view_array(row, "/gpu/ids"))
    ids += (ids.empty() ? "" : ",") + view_text(id, "");
  return fmt::format(",gpu=\"{}\"", label_text(ids));
}

// One series for each GPU: to join with what others measure of that GPU.
void append_gpus(const std::vector<const json*>& rows, std::string& out) {
  out += "# TYPE cgphase_container_gpu info\n# HELP cgphase_container_gpu Which GPUs they use.\n";
  for (const json* row : rows)
    for (const json& id : view_array(*row, "/gpu/ids"))
      out += sample("cgphase_container_gpu_info", id_label(*row),
                    fmt::format("gpu=\"{}\"", label_text(view_text(id, ""))), 1);
}

// Bucket i has waits of up to 2^(3 + i) us, the last one all that are longer.
void append_waits(const std::vector<const json*>& rows, std::string& out) {
  const std::string name = "cgphase_container_run_queue_wait_seconds";
  out += fmt::format("# TYPE {0} histogram\n# HELP {0} Waits for a processor.\n", name);
  for (const json* row : rows) {
    const json& buckets = view_array(*row, "/run_queue/histogram");
    const auto sum = view_number(*row, "/run_queue/wait_usec");
    if (buckets.empty() || !sum) continue;
    const std::string id = id_label(*row);
    double count = 0, most = 8 * kMicro;
    for (std::size_t i = 0; i < buckets.size(); ++i, most *= 2) {
      count += view_number(buckets[i], "").value_or(0);
      const std::string le = i + 1 == buckets.size() ? "+Inf" : fmt::format("{}", most);
      out += sample(name + "_bucket", id, fmt::format("le=\"{}\"", le), count);
    }
    out += sample(name + "_count", id, "", count) + sample(name + "_sum", id, "", *sum * kMicro);
  }
}

// Whether what `status` calls a source is there.
void append_sources(const json& body, std::string& out) {
  out += "# TYPE cgphase_source_present gauge\n"
         "# HELP cgphase_source_present 1 where it tells what it can.\n";
  for (const json& source : view_array(body, "/sources"))
    out += sample("cgphase_source_present", "",
                  fmt::format("source=\"{}\"", label_text(view_text(source, "/name"))),
                  view_flag(source, "/present") ? 1 : 0);
}

void append_info(const std::vector<const json*>& rows, std::string& out) {
  out += "# TYPE cgphase_container info\n# HELP cgphase_container Who the containers are.\n";
  for (const json* row : rows) {
    std::string labels;
    for (const auto& [name, path] : kTexts)
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", name,
                            label_text(view_text(*row, path)));
    out += sample("cgphase_container_info", id_label(*row), labels + gpu_label(*row), 1);
  }
  append_gpus(rows, out);
}

}  // namespace

constinit const std::span<const Metric> kDaemonMetrics = kDaemon, kContainerMetrics = kContainer;

std::string openmetrics(std::span<const Metric> metrics, const std::vector<const json*>& rows) {
  std::string out;
  if (metrics.data() == kContainer) {
    append_info(rows, out);
    append_waits(rows, out);
  } else {
    for (const json* body : rows) append_sources(*body, out);
  }
  std::string_view family;
  for (const Metric& metric : metrics) {
    if (family != metric.family)
      out += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", metric.family, metric.type,
                         metric.help);
    family = metric.family;
    const bool counter = std::string_view(metric.type) == "counter";
    const std::string name = std::string(metric.family) + (counter ? "_total" : "");
    for (const json* row : rows)
      if (const auto value = value_of(*row, metric))
        out += sample(name, id_label(*row), metric.labels, *value);
  }
  return out + "# EOF\n";
}

}  // namespace cgphase
