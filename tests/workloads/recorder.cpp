// record_workloads [--cgroup-root D] [--results D] [--work D] [--program P] [--seed N] [--size X]
// [--seconds S] [--arithmetic X] [--far-end A] [--bpf RATIO] ITEM...: runs the workloads of a mix
// at once, each in a cgroup with static limits. It samples them once per second as the daemon does
// and writes one trace per workload, with the true phase in the column `label`. With --bpf it also
// records the counters of BPF programs; it fails if they need more than RATIO of one core. It needs
// a cgroup v2 that it may write, as in scripts/guest.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/file.h"
#include "base/parse.h"
#include "collectors/ebpf/counters.h"
#include "collectors/node_sampler.h"
#include "tests/workloads/container.h"
#include "tests/workloads/label_file.h"
#include "tests/workloads/pace.h"
#include "traces/trace.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

constexpr const char* kParent = "recorded";
constexpr std::size_t kMaxLabelBytes = 1 << 20;

struct Settings {
  std::string cgroup_root = "/sys/fs/cgroup", results = ".", work = "/tmp";
  std::string program;  // default: the file `workload` beside this program
  RunOptions run;
  double bpf_budget_ratio = 0;  // 0: nothing is counted
  std::vector<std::string> items;
};

// All samples of one container, with the facts that a trace row needs.
struct Recording {
  ContainerInfo info;
  struct Reading {
    double monotonic_seconds = 0;
    WallTime wall_time;
    HostCapacity host;
    Sample sample;
  };
  std::vector<Reading> readings;
};

bool take_option(std::string_view name, std::string_view value, Settings& settings) {
  if (name == "--cgroup-root") return !(settings.cgroup_root = value).empty();
  if (name == "--results") return !(settings.results = value).empty();
  if (name == "--work") return !(settings.work = value).empty();
  if (name == "--program") return !(settings.program = value).empty();
  if (name == "--far-end") return !(settings.run.far_end = value).empty();
  if (name == "--seed") {
    const auto seed = parse_u64(value);
    settings.run.seed = seed.value_or(0);
    return seed.has_value();
  }
  const auto number = parse_double(value);
  if (!number || *number <= 0) return false;
  if (name == "--size") settings.run.size = *number;
  if (name == "--seconds") settings.run.seconds = *number;
  if (name == "--arithmetic") settings.run.arithmetic = *number;
  if (name == "--bpf") settings.bpf_budget_ratio = *number;
  return name == "--size" || name == "--seconds" || name == "--arithmetic" || name == "--bpf";
}

Result<Settings> parse_settings(std::span<char*> words) {
  Settings settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--")) {
      settings.items.emplace_back(word);
    } else if (i + 1 == words.size() || !take_option(word, words[++i], settings)) {
      return failure(ErrorKind::invalid, fmt::format("{}: unknown option or bad value", word));
    }
  }
  if (settings.items.empty()) return failure(ErrorKind::invalid, "no workload given");
  if (settings.program.empty())
    settings.program = std::filesystem::read_symlink("/proc/self/exe").replace_filename("workload");
  return settings;
}

void keep(const NodeSample& tick, std::map<CgroupId, Recording>& recordings) {
  for (const ContainerInfo& info : tick.appeared) recordings[info.id].info = info;
  const double seconds = std::chrono::duration<double>(tick.time.time_since_epoch()).count();
  for (const Sample& sample : tick.containers)
    recordings[sample.id].readings.push_back({seconds, tick.wall_time, tick.host, sample});
}

// A row describes the second before it. Its label is the phase in the middle of that second.
std::string to_trace(const Recording& recording, const std::vector<Label>& labels) {
  std::string text;
  write_trace_header(text);
  const Recording::Reading* previous = nullptr;
  for (const Recording::Reading& reading : recording.readings) {
    const double interval = previous ? reading.monotonic_seconds - previous->monotonic_seconds : 0;
    const std::string_view phase = phase_at(labels, reading.monotonic_seconds - interval / 2);
    if (phase == "end") break;
    const bool inside = !phase.empty();
    if (inside)
      write_trace_row(text, {.container = &recording.info,
                             .time = reading.wall_time,
                             .host = reading.host,
                             .original = recording.readings[0].sample.limits,
                             .sample = &reading.sample,
                             .previous = previous ? &previous->sample : nullptr,
                             .interval_seconds = interval,
                             .label = phase,
                             .label_detail = {}});
    previous = &reading;
  }
  return text;
}

Status write_traces(const Settings& settings, const std::vector<Container>& containers,
                    const std::map<CgroupId, Recording>& recordings) {
  for (const Container& container : containers) {
    const auto text = read_file(container.labels_path(), kMaxLabelBytes);
    if (!text) return std::unexpected(text.error());
    const auto labels = parse_labels(*text, container.labels_path());
    if (!labels) return std::unexpected(labels.error());
    const std::string path = fmt::format("/{}/{}", kParent, container.item().name);
    for (const auto& [id, recording] : recordings)
      if (recording.info.path == path)
        if (auto status = replace_file(settings.results + "/" + container.item().name + ".csv",
                                       to_trace(recording, *labels));
            !status)
          return status;
  }
  return {};
}

bool any_running(std::vector<Container>& containers) {
  bool any = false;
  for (Container& container : containers) any |= container.process().running();
  return any;
}

Result<std::vector<Container>> make_containers(const Settings& settings) {
  const auto mix = parse_mix(settings.items, settings.run);
  if (!mix) return std::unexpected(mix.error());
  const std::string parent = settings.cgroup_root + "/" + kParent;
  if (auto status = make_cgroup_parent(parent); !status) return std::unexpected(status.error());
  std::vector<Container> containers;
  for (const MixItem& item : *mix) {
    auto container =
        Container::create(item, {parent, settings.program, settings.results, settings.work});
    if (!container) return std::unexpected(container.error());
    containers.push_back(std::move(*container));
  }
  return containers;
}

// Everything must be counted from the first tick on; otherwise the recording is useless.
Status check_counters(const KernelCounters& counters) {
  for (const Source& source : counters.sources())
    if (!source.present)
      return failure(ErrorKind::unsupported, fmt::format("{}: {}", source.name, source.detail));
  return {};
}

Status sample_until_done(const Settings& settings, NodeSampler& sampler,
                         std::vector<Container>& containers,
                         std::map<CgroupId, Recording>& recordings) {
  std::optional<KernelCounters> counters;
  if (settings.bpf_budget_ratio > 0)
    counters.emplace(settings.cgroup_root, settings.bpf_budget_ratio);
  SystemClock clock;
  NodeSample tick;
  Pace pace(std::chrono::seconds(1), Pace::Late::catch_up);
  do {
    pace.wait();
    sampler.sample(clock, tick);
    if (counters) {
      counters->fill(tick);
      if (Status status = check_counters(*counters); !status) return status;
    }
    keep(tick, recordings);
  } while (any_running(containers));
  return {};
}

Status record(const Settings& settings) {
  auto containers = make_containers(settings);
  if (!containers) return std::unexpected(containers.error());
  NodeSampler::Options options;
  options.cgroup_root = settings.cgroup_root;
  options.include = {fmt::format("/{}/*", kParent)};
  auto sampler = NodeSampler::open(options);
  if (!sampler) return std::unexpected(sampler.error());
  for (Container& container : *containers)
    if (auto status = container.start(); !status) return status;

  std::map<CgroupId, Recording> recordings;
  if (auto status = sample_until_done(settings, *sampler, *containers, recordings); !status)
    return status;

  for (Container& container : *containers) {
    if (const int status = container.process().exit_status().value_or(-1); status != 0)
      return failure(ErrorKind::io,
                     fmt::format("{} ended with status {}", container.item().name, status));
    if (auto status = container.remove(); !status) return status;
  }
  return write_traces(settings, *containers, recordings);
}

}  // namespace

int main(int argc, char** argv) {
  const auto settings = parse_settings(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  const Status status = settings ? record(*settings) : std::unexpected(settings.error());
  if (status) return 0;
  std::fprintf(stderr, "record_workloads: %s\n", status.error().text.c_str());
  return settings ? 1 : 2;
}
