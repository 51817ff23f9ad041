#include "protocol/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "protocol/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kMicro = 1e-6;

constexpr Metric kOfDaemon[] = {
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
    {"cgphase_impossible_samples", "counter",
     "Samples with more than the host has, or a counter that jumped.", "/impossible_samples"},
    {"cgphase_kill_switch", "gauge", "1 while the kill switch holds.", "/kill_switch"},
    {"cgphase_companion_alive", "gauge", "1 while the companion lives.", "/companion_alive"},
    {"cgphase_mode", "gauge", "What may be done at most: 0 observe, 1 advise, 2 enforce.", "/mode",
     "", 1, MetricForm::mode},
    {"cgphase_degraded", "gauge", "Complaints of `cgphase status`.", "/degraded", "", 1,
     MetricForm::count},
};

constexpr Metric kOfContainer[] = {
    {"cgphase_container_mode", "gauge", "0 observe, 1 advise, 2 enforce.", "/mode", "", 1,
     MetricForm::mode},
    {"cgphase_container_phase", "gauge", "Index of the phase, where it is known.", "/phase",
     "", 1, MetricForm::phase},
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
    {"cgphase_container_memory_delay_seconds", "counter",
     "Waits for memory while memory.high was lowered.", "/memory_delay_usec", "", kMicro},
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
constexpr std::array<std::string_view, 3> kModes = {"observe", "advise", "enforce"};
constexpr std::array<std::string_view, 4> kUnits = {"seconds", "bytes", "cores", "ratio"};

// What the tables cannot say: labels out of the reply, or buckets.
struct Family {
  const char* name;
  const char* type;
  const char* help;
  const char* labels;
};
constexpr Family kBuild{"cgphase_build", "info", "Which cgphase this is.", "version, policy"};
constexpr Family kSources{"cgphase_source_present", "gauge", "1 where it tells what it can.",
                          "source"};
constexpr Family kLeftOut{"cgphase_containers_left_out", "gauge",
                          "Containers beyond the most that have series.", ""};
constexpr Family kInfo{"cgphase_container", "info", "Who the containers are.",
                       "container, name, engine, image, path, gpu"};
constexpr Family kGpuInfo{"cgphase_container_gpu", "info", "Which GPUs they use.",
                          "container, gpu"};
constexpr Family kWaits{"cgphase_container_run_queue_wait_seconds", "histogram",
                        "Waits for a processor.", "container, le"};

std::optional<double> value_of(const json& row, const Metric& metric) {
  const json& found = view(row, metric.path);
  if (metric.measure == MetricForm::count)
    return found.is_array() ? std::optional<double>(found.size()) : std::nullopt;
  if (metric.measure == MetricForm::mode) {
    const auto mode = std::ranges::find(kModes, view_text(row, metric.path));
    if (mode == kModes.end()) return std::nullopt;
    return static_cast<double>(mode - kModes.begin());
  }
  // Of an unknown phase the index is that of the nearest one.
  if (metric.measure == MetricForm::phase)
    return view_text(found, "/state") == "known" ? view_number(found, "/index") : std::nullopt;
  if (found.is_boolean()) return found.get<bool>() ? 1 : 0;
  const std::optional<double> number = view_number(row, metric.path);
  return number ? std::optional(*number * metric.scale) : std::nullopt;
}

// A label's value: cut where a character begins; backslash, quote and line feed are escaped.
std::string label_text(std::string_view text) {
  if (text.size() > kMostLabelBytes) {
    std::size_t end = kMostLabelBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end);
  }
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

// The text of a page as it grows.
class Page {
 public:
  explicit Page(MetricsForm form) : form_(form) {}

  // The older form knows no info, and names a family as its samples are named.
  void begin(std::string_view family, std::string_view type, std::string_view help) {
    std::string name(family);
    if (form_ == MetricsForm::prometheus && type == "counter") name += "_total";
    if (form_ == MetricsForm::prometheus && type == "info") {
      name += "_info";
      type = "gauge";
    }
    out_ += fmt::format("# TYPE {} {}\n", name, type);
    if (form_ == MetricsForm::openmetrics)
      for (const std::string_view unit : kUnits)
        if (name.ends_with("_" + std::string(unit)))
          out_ += fmt::format("# UNIT {} {}\n", name, unit);
    out_ += fmt::format("# HELP {} {}\n", name, help);
  }
  void begin(const Family& family) { begin(family.name, family.type, family.help); }

  void sample(const std::string& name, const std::string& id, std::string_view labels,
              double value) {
    std::string all = id;
    if (!all.empty() && !labels.empty()) all += ',';
    all += labels;
    out_ += fmt::format("{}{} {}\n", name, all.empty() ? "" : "{" + all + "}", value);
  }

  std::string end() && {
    if (form_ == MetricsForm::openmetrics) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  MetricsForm form_;
  std::string out_;
};

using Rows = std::vector<const json*>;

// Of one info series, so that a container stays one series whatever it runs on.
std::string gpu_label(const json& row) {
  std::string ids;
  for (const json& id : view_array(row, "/gpu/ids"))
    ids += (ids.empty() ? "" : ",") + view_text(id, "");
  return fmt::format(",gpu=\"{}\"", label_text(ids));
}

// One series for each GPU: to join with what others measure of that GPU.
void append_gpus(const Rows& rows, Page& page) {
  page.begin(kGpuInfo);
  for (const json* row : rows)
    for (const json& id : view_array(*row, "/gpu/ids"))
      page.sample("cgphase_container_gpu_info", id_label(*row),
                  fmt::format("gpu=\"{}\"", label_text(view_text(id, ""))), 1);
}

// Bucket i has waits of up to 2^(3 + i) us, the last one all that are longer.
void append_waits(const Rows& rows, Page& page) {
  const std::string name = kWaits.name;
  page.begin(kWaits);
  for (const json* row : rows) {
    const json& buckets = view_array(*row, "/run_queue/histogram");
    const auto sum = view_number(*row, "/run_queue/wait_usec");
    if (buckets.empty() || !sum) continue;
    const std::string id = id_label(*row);
    double count = 0, most = 8 * kMicro;
    for (std::size_t i = 0; i < buckets.size(); ++i, most *= 2) {
      count += view_number(buckets[i], "").value_or(0);
      const std::string le = i + 1 == buckets.size() ? "+Inf" : fmt::format("{}", most);
      page.sample(name + "_bucket", id, fmt::format("le=\"{}\"", le), count);
    }
    page.sample(name + "_count", id, "", count);
    page.sample(name + "_sum", id, "", *sum * kMicro);
  }
}

void append_build(const json& body, Page& page) {
  page.begin(kBuild);
  page.sample("cgphase_build_info", "",
              fmt::format("version=\"{}\",policy=\"{}\"", label_text(view_text(body, "/version")),
                          label_text(view_text(body, "/policy"))), 1);
}

// Whether what `status` calls a source is there.
void append_sources(const json& body, Page& page) {
  page.begin(kSources);
  for (const json& source : view_array(body, "/sources"))
    page.sample("cgphase_source_present", "",
                fmt::format("source=\"{}\"", label_text(view_text(source, "/name"))),
                view_flag(source, "/present") ? 1 : 0);
}

void append_info(const Rows& rows, Page& page) {
  page.begin(kInfo);
  for (const json* row : rows) {
    std::string labels;
    for (const auto& [name, path] : kTexts)
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", name,
                            label_text(view_text(*row, path)));
    page.sample("cgphase_container_info", id_label(*row), labels + gpu_label(*row), 1);
  }
}

void append_table(std::span<const Metric> metrics, const Rows& rows, Page& page) {
  std::string_view family;
  for (const Metric& metric : metrics) {
    if (family != metric.family) page.begin(metric.family, metric.type, metric.help);
    family = metric.family;
    const bool counter = std::string_view(metric.type) == "counter";
    const std::string name = std::string(metric.family) + (counter ? "_total" : "");
    for (const json* row : rows)
      if (const auto value = value_of(*row, metric))
        page.sample(name, id_label(*row), metric.labels, *value);
  }
}

void append_daemon(const Rows& rows, Page& page) {
  for (const json* body : rows) {
    append_build(*body, page);
    append_sources(*body, page);
  }
  append_table(kOfDaemon, rows, page);
}

void append_containers(const Rows& rows, Page& page) {
  append_info(rows, page);
  append_gpus(rows, page);
  append_waits(rows, page);
  append_table(kOfContainer, rows, page);
}

// mode="observe" -> mode
std::string label_names(const Metric& metric, std::string_view first) {
  std::string names(first);
  const std::string_view labels = metric.labels;
  if (const auto end = labels.find('='); end != std::string_view::npos)
    names += (names.empty() ? "" : ", ") + std::string(labels.substr(0, end));
  return names;
}

}  // namespace

constinit const std::span<const Metric> kDaemonMetrics = kOfDaemon,
                                        kContainerMetrics = kOfContainer;

std::string openmetrics(std::span<const Metric> metrics, const Rows& rows) {
  Page page(MetricsForm::openmetrics);
  if (metrics.data() == kOfContainer) append_containers(rows, page);
  else append_daemon(rows, page);
  return std::move(page).end();
}

std::string metrics_page(const json& status, const json& list, MetricsForm form) {
  Page page(form);
  Rows rows;
  const json& containers = view_array(list, "/containers");
  for (const json& container : containers)
    if (rows.size() < kMostMetricContainers) rows.push_back(&container);
  append_daemon({&status}, page);
  page.begin(kLeftOut);
  page.sample(kLeftOut.name, "", "", static_cast<double>(containers.size() - rows.size()));
  append_containers(rows, page);
  return std::move(page).end();
}

std::vector<MetricFamily> metric_families() {
  std::vector<MetricFamily> families;
  const auto add = [&](const Family& family) {
    const bool info = std::string_view(family.type) == "info";
    families.push_back(
        {std::string(family.name) + (info ? "_info" : ""), family.type, family.labels,
         family.help});
  };
  const auto add_table = [&](std::span<const Metric> metrics, std::string_view first) {
    std::string_view last;
    for (const Metric& metric : metrics) {
      const bool counter = std::string_view(metric.type) == "counter";
      if (last != metric.family)
        families.push_back({std::string(metric.family) + (counter ? "_total" : ""), metric.type,
                            label_names(metric, first), metric.help});
      last = metric.family;
    }
  };
  add(kBuild);
  add(kSources);
  add_table(kOfDaemon, "");
  for (const Family& family : {kLeftOut, kInfo, kGpuInfo, kWaits}) add(family);
  add_table(kOfContainer, "container");
  return families;
}

}  // namespace cgphase
