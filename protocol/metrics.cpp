#include "protocol/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

using Value = std::optional<double>;

constexpr double kMicro = 1e-6;

// One sample of a report, in base units. Samples of one family follow each other.
template <class Report>
struct Metric {
  const char* family;  // without "_total"
  const char* type;    // gauge or counter
  const char* help;
  Value (*value)(const Report& report);  // an absent value has no sample
  const char* labels = "";               // of this sample: mode="observe"
};

Value real(const std::optional<std::uint64_t>& number) {
  return number ? Value(static_cast<double>(*number)) : std::nullopt;
}
Value real(const std::optional<Bytes>& bytes) {
  return bytes ? Value(static_cast<double>(bytes->value)) : std::nullopt;
}
Value real(const std::optional<Cores>& cores) {
  return cores ? Value(cores->value) : std::nullopt;
}
Value seconds(const std::optional<std::uint64_t>& usec) {
  return usec ? Value(static_cast<double>(*usec) * kMicro) : std::nullopt;
}
Value level(Mode mode) { return static_cast<double>(mode); }
// The index of an unknown phase is that of the nearest one, so it has no sample.
Value index_of(const Phase& phase) { return phase.known() ? Value(phase.index) : std::nullopt; }

constexpr Metric<StatusReport> kOfDaemon[] = {
    {"cgphase_uptime_seconds", "gauge", "Since the daemon started.",
     [](const StatusReport& s) -> Value { return s.uptime_seconds; }},
    {"cgphase_cpu_seconds", "counter", "CPU time of the daemon.",
     [](const StatusReport& s) -> Value { return s.cpu_seconds; }},
    {"cgphase_resident_memory_bytes", "gauge", "Memory of the daemon.",
     [](const StatusReport& s) -> Value { return real(s.rss_bytes); }},
    {"cgphase_store_size_bytes", "gauge", "Size of the history.",
     [](const StatusReport& s) -> Value { return real(s.store.size_bytes); }},
    {"cgphase_store_cap_bytes", "gauge", "Most that the history may take.",
     [](const StatusReport& s) -> Value { return real(s.store.cap_bytes); }},
    {"cgphase_containers", "gauge", "Containers by mode.",
     [](const StatusReport& s) -> Value { return s.containers_observe; }, "mode=\"observe\""},
    {"cgphase_containers", "gauge", "",
     [](const StatusReport& s) -> Value { return s.containers_advise; }, "mode=\"advise\""},
    {"cgphase_containers", "gauge", "",
     [](const StatusReport& s) -> Value { return s.containers_enforce; }, "mode=\"enforce\""},
    {"cgphase_saved_cpu_cores", "gauge", "Original less present limits.",
     [](const StatusReport& s) -> Value { return s.saved_now.cpu_cores; }},
    {"cgphase_saved_memory_bytes", "gauge", "Original less present limits.",
     [](const StatusReport& s) -> Value { return real(s.saved_now.memory_bytes); }},
    {"cgphase_saved_core_seconds", "counter", "Given back so far.",
     [](const StatusReport& s) -> Value { return s.saved_core_seconds; }},
    {"cgphase_saved_byte_seconds", "counter", "Given back so far.",
     [](const StatusReport& s) -> Value { return s.saved_byte_seconds; }},
    {"cgphase_writes", "counter", "Limits written.",
     [](const StatusReport& s) -> Value { return real(s.writes_up); }, "direction=\"up\""},
    {"cgphase_writes", "counter", "",
     [](const StatusReport& s) -> Value { return real(s.writes_down); }, "direction=\"down\""},
    {"cgphase_trials_reverted", "counter", "Lowerings that were taken back.",
     [](const StatusReport& s) -> Value { return real(s.trials_reverted); }},
    {"cgphase_impossible_samples", "counter",
     "Samples with more than the host has, or a counter that jumped.",
     [](const StatusReport& s) -> Value { return real(s.impossible_samples); }},
    {"cgphase_kill_switch", "gauge", "1 while the kill switch is on.",
     [](const StatusReport& s) -> Value { return s.kill_switch; }},
    {"cgphase_companion_alive", "gauge", "1 while the companion lives.",
     [](const StatusReport& s) -> Value { return s.companion_alive; }},
    {"cgphase_mode", "gauge", "What may be done at most: 0 observe, 1 advise, 2 enforce.",
     [](const StatusReport& s) -> Value { return level(s.mode); }},
    {"cgphase_degraded", "gauge", "Complaints of `cgphase status`.",
     [](const StatusReport& s) -> Value { return real(s.degraded.size()); }},
};

constexpr Metric<ContainerReport> kOfContainer[] = {
    {"cgphase_container_mode", "gauge", "0 observe, 1 advise, 2 enforce.",
     [](const ContainerReport& c) -> Value { return level(c.mode); }},
    {"cgphase_container_phase", "gauge", "Index of the phase, where it is known.",
     [](const ContainerReport& c) -> Value { return index_of(c.phase); }},
    {"cgphase_container_phase_seconds", "gauge", "In this phase so far.",
     [](const ContainerReport& c) -> Value { return c.seconds_in_phase; }},
    {"cgphase_container_cpu_cores", "gauge", "CPU in use.",
     [](const ContainerReport& c) -> Value { return c.cpu_cores; }},
    {"cgphase_container_memory_need_bytes", "gauge", "Memory that cannot be dropped.",
     [](const ContainerReport& c) -> Value { return real(c.memory_need_bytes); }},
    {"cgphase_container_memory_current_bytes", "gauge", "Memory in use.",
     [](const ContainerReport& c) -> Value { return real(c.memory_current_bytes); }},
    {"cgphase_container_cpu_limit_cores", "gauge", "Limit in force, where there is one.",
     [](const ContainerReport& c) -> Value { return real(c.limits.cpu_cores()); }},
    {"cgphase_container_memory_limit_bytes", "gauge", "Limit in force, where there is one.",
     [](const ContainerReport& c) -> Value { return real(c.limits.memory_bytes()); }},
    {"cgphase_container_cpu_original_cores", "gauge", "Limit before any change.",
     [](const ContainerReport& c) -> Value { return real(c.original.cpu_cores()); }},
    {"cgphase_container_memory_original_bytes", "gauge", "Limit before any change.",
     [](const ContainerReport& c) -> Value { return real(c.original.memory_bytes()); }},
    {"cgphase_container_throttled_seconds", "counter", "Throttled time.",
     [](const ContainerReport& c) -> Value { return seconds(c.throttled_usec); }},
    {"cgphase_container_memory_delay_seconds", "counter",
     "Waits for memory while memory.high was lowered.",
     [](const ContainerReport& c) -> Value { return seconds(c.memory_delay_usec); }},
    {"cgphase_container_asleep_bytes", "gauge", "Memory reclaimed because it is idle.",
     [](const ContainerReport& c) -> Value { return real(c.asleep_bytes); }},
    {"cgphase_container_oom_kills", "counter", "Processes killed for want of memory.",
     [](const ContainerReport& c) -> Value { return real(c.oom_kills); }},
    {"cgphase_container_run_queue_longest_wait_seconds", "gauge",
     "Longest wait for a processor between the last two readings.",
     [](const ContainerReport& c) -> Value { return seconds(c.run_queue.longest_wait_usec); }},
    {"cgphase_container_switches", "counter", "Times that its threads left a processor.",
     [](const ContainerReport& c) -> Value {
       return real(c.run_queue.voluntary_switches);
     }, "kind=\"voluntary\""},
    {"cgphase_container_switches", "counter", "",
     [](const ContainerReport& c) -> Value {
       return real(c.run_queue.involuntary_switches);
     }, "kind=\"involuntary\""},
    {"cgphase_container_network_bytes", "counter", "Network traffic, without loopback.",
     [](const ContainerReport& c) -> Value {
       return real(c.network.receive_bytes);
     }, "direction=\"receive\""},
    {"cgphase_container_network_bytes", "counter", "",
     [](const ContainerReport& c) -> Value {
       return real(c.network.transmit_bytes);
     }, "direction=\"transmit\""},
    {"cgphase_container_network_packets", "counter", "Network traffic, without loopback.",
     [](const ContainerReport& c) -> Value {
       return real(c.network.receive_packets);
     }, "direction=\"receive\""},
    {"cgphase_container_network_packets", "counter", "",
     [](const ContainerReport& c) -> Value {
       return real(c.network.transmit_packets);
     }, "direction=\"transmit\""},
    {"cgphase_container_tcp_retransmits", "counter", "Segments sent again.",
     [](const ContainerReport& c) -> Value { return real(c.network.tcp_retransmits); }},
    {"cgphase_container_block_bytes", "counter", "Of completed requests to block devices.",
     [](const ContainerReport& c) -> Value { return real(c.block.bytes); }},
    {"cgphase_container_block_requests", "counter", "Completed requests to block devices.",
     [](const ContainerReport& c) -> Value { return real(c.block.requests); }},
    {"cgphase_container_block_latency_seconds", "counter",
     "Time that completed requests to block devices took.",
     [](const ContainerReport& c) -> Value { return seconds(c.block.latency_usec); }},
    {"cgphase_container_gpu_utilisation_ratio", "gauge",
     "GPU time of its processes, 1 is one whole GPU.",
     [](const ContainerReport& c) -> Value { return c.gpu.utilisation_ratio; }},
    {"cgphase_container_gpu_memory_utilisation_ratio", "gauge",
     "Time in which they used GPU memory, 1 is one whole GPU.",
     [](const ContainerReport& c) -> Value { return c.gpu.memory_utilisation_ratio; }},
    {"cgphase_container_gpu_memory_bytes", "gauge", "GPU memory of its processes.",
     [](const ContainerReport& c) -> Value { return real(c.gpu.memory_bytes); }},
};

constexpr std::array<std::string_view, 4> kUnits = {"seconds", "bytes", "cores", "ratio"};

// Families with labels from the report, or with buckets.
struct Family {
  const char* name;
  const char* type;
  const char* help;
  const char* labels;
};
constexpr Family kBuild{"cgphase_build", "info", "Which cgphase this is.", "version, policy"};
constexpr Family kSources{"cgphase_source_present", "gauge", "1 if the source is available.",
                          "source"};
constexpr Family kLeftOut{"cgphase_containers_left_out", "gauge",
                          "Containers beyond the most that have series.", ""};
constexpr Family kInfo{"cgphase_container", "info", "Names of the containers.",
                       "container, name, engine, image, path, gpu"};
constexpr Family kGpuInfo{"cgphase_container_gpu", "info", "Which GPUs they use.",
                          "container, gpu"};
constexpr Family kWaits{"cgphase_container_run_queue_wait_seconds", "histogram",
                        "Waits for a processor.", "container, le"};

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

// The label that identifies a container's series.
std::string id_label(const ContainerReport& container) {
  const CgroupId& id = container.container.id;
  return fmt::format("container=\"{}:{}\"", id.device, id.inode);
}
std::string id_label(const StatusReport&) { return ""; }

// The text of a page as it grows.
class Page {
 public:
  explicit Page(MetricsForm form) : form_(form) {}

  // The older form has no info type, and a family has the name of its samples.
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

using Reports = std::span<const ContainerReport>;

std::string label(std::string_view name, std::string_view text) {
  return fmt::format("{}=\"{}\"", name, label_text(text));
}

// One label of one info series, so that a container keeps one series on any number of GPUs.
std::string gpu_label(const ContainerReport& container) {
  std::string ids;
  for (const std::string& id : container.gpu_ids) ids += (ids.empty() ? "" : ",") + escape_name(id);
  return label("gpu", ids);
}

// One series for each GPU, to join with metrics of that GPU from other exporters.
void append_gpus(Reports containers, Page& page) {
  page.begin(kGpuInfo);
  for (const ContainerReport& container : containers)
    for (const std::string& id : container.gpu_ids)
      page.sample("cgphase_container_gpu_info", id_label(container), label("gpu", escape_name(id)),
                  1);
}

// Bucket i counts waits of up to 2^(3 + i) us. The last one counts all longer waits.
void append_waits(Reports containers, Page& page) {
  const std::string name = kWaits.name;
  page.begin(kWaits);
  for (const ContainerReport& container : containers) {
    const Value sum = seconds(container.run_queue.wait_usec);
    if (!container.run_queue_histogram || !sum) continue;
    const RunQueueHistogram& buckets = *container.run_queue_histogram;
    const std::string id = id_label(container);
    double count = 0, most = 8 * kMicro;
    for (std::size_t i = 0; i < buckets.size(); ++i, most *= 2) {
      count += static_cast<double>(buckets[i]);
      const std::string le = i + 1 == buckets.size() ? "+Inf" : fmt::format("{}", most);
      page.sample(name + "_bucket", id, label("le", le), count);
    }
    page.sample(name + "_count", id, "", count);
    page.sample(name + "_sum", id, "", *sum);
  }
}

void append_info(Reports containers, Page& page) {
  page.begin(kInfo);
  for (const ContainerReport& report : containers) {
    const ContainerInfo& container = report.container;
    page.sample("cgphase_container_info", id_label(report),
                label("name", escape_name(container.name)) + "," +
                    label("engine", to_string(container.engine)) + "," +
                    label("image", escape_name(container.image)) + "," +
                    label("path", escape_name(container.path)) + "," + gpu_label(report), 1);
  }
}

template <class Report>
void append_table(std::span<const Metric<Report>> metrics, std::span<const Report> reports,
                  Page& page) {
  std::string_view family;
  for (const Metric<Report>& metric : metrics) {
    if (family != metric.family) page.begin(metric.family, metric.type, metric.help);
    family = metric.family;
    const bool counter = std::string_view(metric.type) == "counter";
    const std::string name = std::string(metric.family) + (counter ? "_total" : "");
    for (const Report& report : reports)
      if (const Value value = metric.value(report))
        page.sample(name, id_label(report), metric.labels, *value);
  }
}

// `reports` has one report or none.
void append_daemon(std::span<const StatusReport> reports, Page& page) {
  page.begin(kBuild);
  for (const StatusReport& report : reports)
    page.sample("cgphase_build_info", "",
                label("version", printable(report.version)) + "," +
                    label("policy", printable(report.policy)), 1);
  page.begin(kSources);
  for (const StatusReport& report : reports)
    for (const SourceReport& source : report.sources)
      page.sample("cgphase_source_present", "", label("source", printable(source.name)),
                  source.present ? 1 : 0);
  append_table<StatusReport>(kOfDaemon, reports, page);
}

void append_containers(Reports containers, Page& page) {
  append_info(containers, page);
  append_gpus(containers, page);
  append_waits(containers, page);
  append_table<ContainerReport>(kOfContainer, containers, page);
}

// mode="observe" -> mode
std::string label_names(std::string_view labels, std::string_view first) {
  std::string names(first);
  if (const auto end = labels.find('='); end != std::string_view::npos)
    names += (names.empty() ? "" : ", ") + std::string(labels.substr(0, end));
  return names;
}

}  // namespace

std::string openmetrics(const StatusReport& status) {
  Page page(MetricsForm::openmetrics);
  append_daemon(std::span(&status, 1), page);
  return std::move(page).end();
}

std::string openmetrics(std::span<const ContainerReport> containers) {
  Page page(MetricsForm::openmetrics);
  append_containers(containers, page);
  return std::move(page).end();
}

std::string metrics_page(const StatusReport* status, std::span<const ContainerReport> containers,
                         MetricsForm form) {
  Page page(form);
  if (status != nullptr) append_daemon(std::span(status, 1), page);
  else append_daemon({}, page);
  const Reports with_series =
      containers.first(std::min(containers.size(), kMostMetricContainers));
  page.begin(kLeftOut);
  page.sample(kLeftOut.name, "", "", static_cast<double>(containers.size() - with_series.size()));
  append_containers(with_series, page);
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
  const auto add_table = [&](const auto& metrics, std::string_view first) {
    std::string_view last;
    for (const auto& metric : metrics) {
      const bool counter = std::string_view(metric.type) == "counter";
      if (last != metric.family)
        families.push_back({std::string(metric.family) + (counter ? "_total" : ""), metric.type,
                            label_names(metric.labels, first), metric.help});
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
