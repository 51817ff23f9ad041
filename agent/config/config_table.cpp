#include "agent/config/config_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "agent/config/http_address.h"
#include "base/parse.h"
#include "base/text.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::chrono::hours kDay{24};

std::string toml_string(std::string_view text) {
  // Basic strings of TOML; escape_name leaves no control character and doubles backslashes.
  std::string out = "\"";
  for (const char byte : escape_name(text)) {
    if (byte == '"') out += '\\';
    out += byte;
  }
  return out + '"';
}

// `Get` returns a reference to the field, of a const Config too.
template <class Get>
ConfigRow bool_row(std::string key, Get get, std::string meaning) {
  return {std::move(key), "true, false", std::move(meaning),
          [get](const RawValue& raw, Config& config) -> std::string {
            const bool* value = std::get_if<bool>(&raw);
            if (value == nullptr) return "not true or false";
            get(config) = *value;
            return {};
          },
          [get](const Config& config) { return get(config) ? "true" : "false"; }};
}

template <class Get>
ConfigRow duration_row(std::string key, Get get, nanoseconds least, nanoseconds most,
                       std::string meaning) {
  using Field = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  return {std::move(key), duration_text(least) + " to " + duration_text(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto ns = text ? parse_duration_ns(*text) : std::nullopt;
            if (!ns) return "not a duration such as \"30s\" or \"5min\"";
            if (nanoseconds(*ns) < least || nanoseconds(*ns) > most) return "out of bounds";
            const auto value = std::chrono::duration_cast<Field>(nanoseconds(*ns));
            if (value != nanoseconds(*ns))
              return "not a whole multiple of " + duration_text(Field(1));
            get(config) = value;
            return {};
          },
          [get](const Config& config) { return toml_string(duration_text(get(config))); }};
}

template <class Get>
ConfigRow bytes_row(std::string key, Get get, std::uint64_t least, std::uint64_t most,
                    std::string meaning) {
  return {std::move(key), bytes_text(least) + " to " + bytes_text(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto bytes = text ? parse_bytes(*text) : std::nullopt;
            if (!bytes) return "not a size such as \"256M\"";
            if (*bytes < least || *bytes > most) return "out of bounds";
            get(config) = *bytes;
            return {};
          },
          [get](const Config& config) { return toml_string(bytes_text(get(config))); }};
}

template <class Get>
ConfigRow number_row(std::string key, Get get, double least, double most, std::string meaning) {
  return {std::move(key), fmt::format("{} to {}", least, most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            double value = 0;
            if (const auto* real = std::get_if<double>(&raw))
              value = *real;
            else if (const auto* whole = std::get_if<std::int64_t>(&raw))
              value = static_cast<double>(*whole);
            else
              return "not a number";
            // Written so that "nan" is out of bounds too.
            if (!(value >= least && value <= most)) return "out of bounds";
            get(config) = value;
            return {};
          },
          [get](const Config& config) { return fmt::format("{}", get(config)); }};
}

template <class Get>
ConfigRow integer_row(std::string key, Get get, std::int64_t least, std::int64_t most,
                      std::string meaning) {
  using Field = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  return {std::move(key), fmt::format("{} to {}", least, most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* value = std::get_if<std::int64_t>(&raw);
            if (value == nullptr) return "not a whole number";
            if (*value < least || *value > most) return "out of bounds";
            get(config) = static_cast<Field>(*value);
            return {};
          },
          [get](const Config& config) { return fmt::format("{}", get(config)); }};
}

// A share of one, also in per cent: 0.001, "0.1 %". Never 0.
template <class Get>
ConfigRow share_row(std::string key, Get get, double least, double most, std::string meaning) {
  const auto percent = [](double share) { return fmt::format("{:.6g} %", 100 * share); };
  return {std::move(key), percent(least) + " to " + percent(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            double value = 0;
            if (const auto* real = std::get_if<double>(&raw)) {
              value = *real;
            } else if (const auto* text = std::get_if<std::string>(&raw)) {
              const auto share = parse_share(*text);
              if (!share) return "not a share such as \"0.1 %\"";
              value = *share;
            } else {
              return "not a share such as \"0.1 %\"";
            }
            if (!(value >= least && value <= most)) return "out of bounds";
            get(config) = value;
            return {};
          },
          [=](const Config& config) { return toml_string(percent(get(config))); }};
}

// `wrong` says what is wrong with a text, nothing where it is good.
template <class Get>
ConfigRow text_row(std::string key, Get get, std::string allowed,
                   std::string (*wrong)(std::string_view), std::string meaning) {
  return {std::move(key), std::move(allowed), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            if (text == nullptr) return "not text in quotes";
            if (std::string why = wrong(*text); !why.empty()) return why;
            get(config) = *text;
            return {};
          },
          [get](const Config& config) { return toml_string(get(config)); }};
}

template <class Get>
ConfigRow patterns_row(std::string key, Get get, std::string meaning) {
  return {std::move(key), fmt::format("up to {} shell patterns", kMaxPatterns), std::move(meaning),
          [get](const RawValue& raw, Config& config) -> std::string {
            const auto* patterns = std::get_if<std::vector<std::string>>(&raw);
            if (patterns == nullptr) return "not an array of texts such as [\"train-*\"]";
            if (patterns->size() > kMaxPatterns) return "too many patterns";
            for (const std::string& pattern : *patterns)
              if (pattern.empty() || pattern.size() > kMaxPatternBytes)
                return fmt::format("a pattern has 1 to {} bytes", kMaxPatternBytes);
            get(config) = *patterns;
            return {};
          },
          [get](const Config& config) {
            std::string text;
            for (const std::string& pattern : get(config))
              text += (text.empty() ? "" : ", ") + toml_string(pattern);
            return "[" + text + "]";
          }};
}

ConfigRow mode_row() {
  return {"mode", "observe, advise, enforce",
          "What may be done at most: watch; also decide and write it to the journal; also change "
          "limits, of the containers that `[enforce]` or their label name.",
          [](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto mode = text ? parse_mode(*text) : std::nullopt;
            if (!mode) return "not a mode";
            config.mode = *mode;
            return {};
          },
          [](const Config& config) { return toml_string(to_string(config.mode)); }};
}

std::string wrong_path_of(std::string_view path, std::size_t longest) {
  if (path.empty() || path.front() != '/') return "not an absolute path";
  if (path.size() > longest) return fmt::format("longer than {} bytes", longest);
  if (path.find('\0') != std::string_view::npos) return "holds a NUL byte";
  return {};
}

std::string wrong_path(std::string_view path) { return wrong_path_of(path, kMaxPathBytes); }

// As the loader finds it, or where it lies; what depends on the working directory is neither.
std::string wrong_nvml(std::string_view path) {
  return path == kNvmlLibrary ? std::string() : wrong_path(path);
}

std::string wrong_runtime_dir(std::string_view path) {
  return wrong_path_of(path, kMaxRuntimeDirBytes);
}

std::string wrong_listen(std::string_view text) {
  if (text.empty()) return {};
  const auto address = parse_http_address(text);
  return address ? std::string() : address.error().text;
}

std::string wrong_textfile(std::string_view path) {
  if (path.empty()) return {};
  if (path.ends_with('/')) return "names a directory";
  return wrong_path(path);
}

// Names of groups: what useradd allows.
std::string wrong_name(std::string_view name) {
  const auto is_good = [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '_' || byte == '-';
  };
  const bool good = !name.empty() && name.size() <= 32 && name.front() != '-' &&
                    std::all_of(name.begin(), name.end(), is_good);
  return good ? "" : "not a name";
}

std::string wrong_policy(std::string_view text) {
  const Status good = check_live_policy(text);
  return good ? std::string{} : good.error().text;
}

// A field of Config, const or not.
#define CGPHASE_FIELD(field) \
  [](auto& config) -> auto& { return config.field; }

void add_tier_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(duration_row("store.raw_for", CGPHASE_FIELD(store.retention.raw_for), 600s,
                              365 * kDay, "Samples are kept as they are for so long."));
  rows.push_back(duration_row("store.medium_step", CGPHASE_FIELD(store.retention.medium_step), 1s,
                              600s, "Then one stands for so long, with its peaks."));
  rows.push_back(duration_row("store.medium_for", CGPHASE_FIELD(store.retention.medium_for), 600s,
                              3650 * kDay, "Until they are so old."));
  rows.push_back(duration_row("store.coarse_step", CGPHASE_FIELD(store.retention.coarse_step), 2s,
                              3600s,
                              "Then one stands for so long; a multiple of `medium_step`."));
  rows.push_back(duration_row("store.coarse_for", CGPHASE_FIELD(store.retention.coarse_for), 600s,
                              3650 * kDay, "And what is older than this goes."));
}

void add_published_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(text_row("http.listen", CGPHASE_FIELD(http.listen),
                          "nothing, an absolute path of at most 107 bytes, 127.0.0.1:PORT, "
                          "[::1]:PORT",
                          wrong_listen,
                          "Serve the page, metrics and what reading verbs tell there "
                          "(docs/operations.md); under systemd rather by cgphased-http.socket."));
  rows.push_back(text_row("metrics.textfile", CGPHASE_FIELD(metrics.textfile),
                          "nothing, or an absolute path", wrong_textfile,
                          "Write metrics into this file, for node_exporter (docs/metrics.md)."));
  rows.push_back(duration_row("metrics.interval", CGPHASE_FIELD(metrics.interval), 1s, 3600s,
                              "How often that file is written."));
}

void add_store_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(bool_row("store.enabled", CGPHASE_FIELD(store.enabled),
                          "Keep a history and a journal in `state_dir`."));
  rows.push_back(bytes_row("store.cap", CGPHASE_FIELD(store.cap.value), 8 * kMiB, 64 * kGiB,
                           "Most that history may take on the disk; the oldest samples make "
                           "room."));
  rows.push_back(bytes_row("store.min_free", CGPHASE_FIELD(store.min_free.value), 0, 64 * kGiB,
                           "While the disk has less free, samples are kept in memory only; "
                           "decisions are written."));
  add_tier_rows(rows);
}

std::vector<ConfigRow> general_rows() {
  constexpr const char* kPath = "an absolute path";
  std::vector<ConfigRow> rows;
  rows.push_back(mode_row());
  rows.push_back(duration_row("interval", CGPHASE_FIELD(interval), 100ms, 60s,
                              "How often containers are read."));
  rows.push_back(text_row("policy", CGPHASE_FIELD(policy),
                          "the name of a policy, or NAME:KEY=NUMBER,...", wrong_policy,
                          "Who says how much a container should have (docs/internals/policies.md); "
                          "`cgphase replay` compares them."));
  rows.push_back(share_row("risk", CGPHASE_FIELD(risk), kLeastRisk, kMostRisk,
                           "Share of the samples that may want more than `phase` and `proactive` "
                           "allow: the one knob between saving and safety."));
  rows.push_back(text_row("model", CGPHASE_FIELD(model), kPath, wrong_path,
                          "The learned model. Where it is not set, one that `cgphase model "
                          "install` put on this host goes before the default."));
  rows.push_back(text_row("cgroup_root", CGPHASE_FIELD(cgroup_root), kPath, wrong_path,
                          "Where cgroup v2 is mounted."));
  rows.push_back(text_row("proc_root", CGPHASE_FIELD(proc_root), kPath, wrong_path,
                          "Where procfs is mounted."));
  rows.push_back(text_row("state_dir", CGPHASE_FIELD(state_dir), kPath, wrong_path,
                          "Where the history lies."));
  rows.push_back(text_row("runtime_dir", CGPHASE_FIELD(runtime_dir),
                          fmt::format("an absolute path of at most {} bytes", kMaxRuntimeDirBytes),
                          wrong_runtime_dir,
                          "Where leases and sockets lie; must survive the process, not the "
                          "boot. Under systemd it is the unit's RuntimeDirectory=."));
  rows.push_back(text_row("kill_switch", CGPHASE_FIELD(kill_switch), kPath, wrong_path,
                          "While this file exists, all limits are restored and nothing is "
                          "changed."));
  rows.push_back(patterns_row("include", CGPHASE_FIELD(include),
                              "Cgroups that are watched although no engine runs them, by path "
                              "below the root: `\"/system.slice/nightly-*\"`."));
  rows.push_back(bool_row("manage_unlimited", CGPHASE_FIELD(manage_unlimited),
                          "Containers without a limit are managed too, with the host as their "
                          "ceiling."));
  rows.push_back(text_row("socket.group", CGPHASE_FIELD(socket.group), "the name of a group",
                          wrong_name, "Who may read the daemon's state."));
  add_store_rows(rows);
  rows.push_back(patterns_row("enforce.names", CGPHASE_FIELD(enforce.names),
                              "Containers that may be acted on in mode enforce, by name."));
  rows.push_back(
      patterns_row("enforce.images", CGPHASE_FIELD(enforce.images), "The same, by image."));
  rows.push_back(patterns_row("enforce.cgroups", CGPHASE_FIELD(enforce.cgroups),
                              "The same, by cgroup path below the root."));
  rows.push_back(bool_row("guard.enabled", CGPHASE_FIELD(guard.enabled),
                          "Raise limits on events between two readings."));
  rows.push_back(bool_row("bpf.enabled", CGPHASE_FIELD(bpf.enabled),
                          "Ask the kernel by BPF programs: what no file counts, and, unless all "
                          "is only observed, who writes limits and which programs start."));
  rows.push_back(bool_row("bpf.sampling", CGPHASE_FIELD(bpf.sampling),
                          "Let a BPF program, where the kernel takes one, read what else the "
                          "files of containers tell (docs/internals/ebpf.md)."));
  rows.push_back(share_row("bpf.budget", CGPHASE_FIELD(bpf.budget), 0.0001, 1,
                           "What programs that count may cost of one core; above it they look at "
                           "fewer events, or leave the kernel."));
  rows.push_back(bool_row("gpu.enabled", CGPHASE_FIELD(gpu.enabled),
                          "Read what containers use of GPUs (docs/operations.md)."));
  rows.push_back(text_row("gpu.nvml", CGPHASE_FIELD(gpu.nvml),
                          std::string(kNvmlLibrary) + " or an absolute path", wrong_nvml,
                          "The library of NVIDIA's driver that is asked."));
  add_published_rows(rows);
  return rows;
}

// Each number is one row of the table in docs/safety.md.
std::vector<ConfigRow> when_rows() {
  std::vector<ConfigRow> rows;
  rows.push_back(number_row("rails.enough_samples", CGPHASE_FIELD(rails.enough_samples), 1, 100000,
                            "Samples in a phase before it may lower a quota; a third for memory."));
  rows.push_back(integer_row("rails.enough_runs", CGPHASE_FIELD(rails.enough_runs), 1, 1000,
                             "Earlier runs of the image that saw the phase, instead of samples."));
  rows.push_back(number_row("rails.quiet_memory_io_some_avg10",
                            CGPHASE_FIELD(rails.quiet_memory_io_some_avg10), 0, 1,
                            "Memory and io pressure below this is quiet."));
  rows.push_back(number_row("rails.quiet_cpu_some_avg10", CGPHASE_FIELD(rails.quiet_cpu_some_avg10),
                            0, 1, "CPU pressure below this is quiet."));
  rows.push_back(bool_row("rails.cpu_pressure_holds_memory",
                          CGPHASE_FIELD(rails.cpu_pressure_holds_memory),
                          "CPU pressure that is not quiet holds memory limits too."));
  rows.push_back(duration_row("rails.cool_down", CGPHASE_FIELD(rails.cool_down), 0s, 7 * kDay,
                              "No lowering for so long after an event; doubled per failed trial."));
  rows.push_back(duration_row("rails.quarantine", CGPHASE_FIELD(rails.quarantine), 0s, 30 * kDay,
                              "No lowering for so long after too many failed trials or an OOM."));
  rows.push_back(duration_row("rails.stall_quarantine", CGPHASE_FIELD(rails.stall_quarantine), 0s,
                              30 * kDay,
                              "No lowering for so long after reclaim in vain at memory.high."));
  rows.push_back(integer_row("rails.trials_before_quarantine",
                             CGPHASE_FIELD(rails.trials_before_quarantine), 1, 100,
                             "Failed trials that lead to quarantine."));
  rows.push_back(duration_row("rails.trial", CGPHASE_FIELD(rails.trial), 1s, 3600s,
                              "How long a lowering is on trial."));
  rows.push_back(integer_row("rails.trial_model_steps", CGPHASE_FIELD(rails.trial_model_steps), 1,
                             1000, "And at least so many model steps."));
  rows.push_back(number_row("rails.trial_tolerance_ratio",
                            CGPHASE_FIELD(rails.trial_tolerance_ratio), 0.01, 10,
                            "Worse than the phase's own median by more than this: reverted."));
  rows.push_back(duration_row("rails.container_lower_window",
                              CGPHASE_FIELD(rails.container_lower_window), 0s, kDay,
                              "Of a container one lowering of the quota in this time."));
  rows.push_back(duration_row("rails.host_lower_window", CGPHASE_FIELD(rails.host_lower_window), 0s,
                              kDay, "The window of `host_lowers_per_window`."));
  rows.push_back(integer_row("rails.host_lowers_per_window",
                             CGPHASE_FIELD(rails.host_lowers_per_window), 1, 1000,
                             "Lowerings of the whole host in that window."));
  rows.push_back(bool_row("rails.lower_gpu_quota", CGPHASE_FIELD(rails.lower_gpu_quota),
                          "Quotas of containers that have a GPU are lowered too."));
  rows.push_back(duration_row("rails.stand_down", CGPHASE_FIELD(rails.stand_down), 0s, 7 * kDay,
                              "No lowering for so long after somebody else changed the limit."));
  return rows;
}

std::vector<ConfigRow> amount_rows() {
  std::vector<ConfigRow> rows;
  rows.push_back(duration_row("rails.reaction_time", CGPHASE_FIELD(rails.reaction_time), 500ms, 60s,
                              "How long a raise takes, for the headroom formulas."));
  rows.push_back(number_row("rails.at_risk_ratio", CGPHASE_FIELD(rails.at_risk_ratio), 0.5, 1,
                            "Use above this part of the limit is at risk."));
  rows.push_back(number_row("rails.cpu_headroom_ratio", CGPHASE_FIELD(rails.cpu_headroom_ratio), 1,
                            10,
                            "A quota is not lowered below this times the p99 of the usage in "
                            "the phase."));
  rows.push_back(integer_row("rails.cpu_floor_usec_per_period",
                             CGPHASE_FIELD(rails.cpu_floor_usec_per_period), 1000, 1'000'000,
                             "A quota is never lower, in microseconds per period."));
  rows.push_back(number_row("rails.throttled_ratio", CGPHASE_FIELD(rails.throttled_ratio), 0, 1,
                            "Throttled for more than this part of the time: raised."));
  rows.push_back(duration_row("rails.throttled_window", CGPHASE_FIELD(rails.throttled_window), 1s,
                              600s, "The time that `throttled_ratio` is taken over."));
  rows.push_back(number_row("rails.cpu_raise_factor", CGPHASE_FIELD(rails.cpu_raise_factor), 1.01,
                            10, "A raise after throttling is by this factor."));
  rows.push_back(duration_row("rails.cpu_lower_window", CGPHASE_FIELD(rails.cpu_lower_window), 0s,
                              kDay, "One lowering of a quota in this time."));
  rows.push_back(number_row("rails.memory_headroom_ratio",
                            CGPHASE_FIELD(rails.memory_headroom_ratio), 1, 10,
                            "memory.high is at least this times the peak of need."));
  rows.push_back(bytes_row("rails.memory_headroom_bytes",
                           CGPHASE_FIELD(rails.memory_headroom_bytes), kMiB, 1024 * kGiB,
                           "And at least so much above need; 25 % of a limit below 1 GiB."));
  rows.push_back(number_row("rails.killed_margin_factor",
                            CGPHASE_FIELD(rails.killed_margin_factor), 1, 10,
                            "Both margins are so many times larger beside who kills on memory "
                            "pressure."));
  rows.push_back(number_row("rails.memory_step_ratio", CGPHASE_FIELD(rails.memory_step_ratio),
                            0.001, 0.5,
                            "A step lowers memory.high by at most this part, unless need is steady "
                            "or earlier runs prove it."));
  rows.push_back(duration_row("rails.memory_lower_window", CGPHASE_FIELD(rails.memory_lower_window),
                              0s, kDay, "memory.high comes down once in this time."));
  rows.push_back(duration_row("rails.dwell", CGPHASE_FIELD(rails.dwell), 0s, kDay,
                              "Need steady for this long: one step may go all the way."));
  rows.push_back(number_row("rails.smallest_change_ratio",
                            CGPHASE_FIELD(rails.smallest_change_ratio), 0, 0.5,
                            "A lowering by less is not worth a write."));
  return rows;
}

std::vector<ConfigRow> event_rows() {
  std::vector<ConfigRow> rows;
  rows.push_back(number_row("rails.smallest_raise_ratio", CGPHASE_FIELD(rails.smallest_raise_ratio),
                            0, 0.5, "A wish above the limit by less is not worth a write."));
  rows.push_back(integer_row("rails.throttled_periods", CGPHASE_FIELD(rails.throttled_periods), 1,
                             1000, "Throttled in so many periods of the window: raised."));
  rows.push_back(duration_row("rails.cpu_raises_window", CGPHASE_FIELD(rails.cpu_raises_window), 0s,
                              kDay, "A second raise in this time goes back to the original."));
  rows.push_back(duration_row("rails.at_risk_growth", CGPHASE_FIELD(rails.at_risk_growth), 0s, 60s,
                              "Need that grows to the limit within this time is at risk."));
  rows.push_back(number_row("rails.stall_full_avg10", CGPHASE_FIELD(rails.stall_full_avg10), 0, 1,
                            "Full memory pressure above this under our limit: back to the "
                            "original."));
  rows.push_back(duration_row("rails.settle", CGPHASE_FIELD(rails.settle), 0s, kDay,
                              "No lowering for so long after a gap, a freeze or a counter reset."));
  rows.push_back(duration_row("rails.start_up", CGPHASE_FIELD(rails.start_up), 0s, kDay,
                              "No lowering for so long after processes start: they read their "
                              "limits."));
  rows.push_back(duration_row("rails.failure_memory", CGPHASE_FIELD(rails.failure_memory), 0s,
                              30 * kDay, "Failed trials are forgotten after so long."));
  rows.push_back(number_row("rails.steady_ratio", CGPHASE_FIELD(rails.steady_ratio), 0, 1,
                            "Need that moves by less than this part of the limit in a dwell is "
                            "steady."));
  rows.push_back(number_row("rails.growing_ratio", CGPHASE_FIELD(rails.growing_ratio), 0, 1,
                            "Need that rose by more than this part of the limit is growing."));
  rows.push_back(number_row("rails.cache_room_ratio", CGPHASE_FIELD(rails.cache_room_ratio), 0, 1,
                            "Part of the limit kept free above memory.current, cache and all."));
  rows.push_back(number_row("rails.trial_stall_allowance",
                            CGPHASE_FIELD(rails.trial_stall_allowance), 0, 1,
                            "Stalled for less than this part of the time is never worse."));
  rows.push_back(number_row("rails.trial_faults_allowance",
                            CGPHASE_FIELD(rails.trial_faults_allowance), 0, 1e6,
                            "Fewer refaults or major faults per second are never worse."));
  rows.push_back(duration_row("rails.silent_revert", CGPHASE_FIELD(rails.silent_revert), 0s, 3600s,
                              "A limit back at its original so soon after a reload or our write "
                              "was reset, not changed."));
  rows.push_back(duration_row("rails.reapply_pause", CGPHASE_FIELD(rails.reapply_pause), 0s, kDay,
                              "Time before a limit that was reset is written again."));
  rows.push_back(integer_row("rails.reapplies_per_hour", CGPHASE_FIELD(rails.reapplies_per_hour), 0,
                             1000, "Limits that were reset are written again so often."));
  rows.push_back(integer_row("rails.rival_changes", CGPHASE_FIELD(rails.rival_changes), 1, 1000,
                             "Somebody who changed a container's limits so often, each time after "
                             "they were lowered, is a manager of their own."));
  rows.push_back(duration_row("rails.rival_window", CGPHASE_FIELD(rails.rival_window), 1s,
                              30 * kDay, "The window of `rival_changes`."));
  rows.push_back(duration_row("rails.rival_pause", CGPHASE_FIELD(rails.rival_pause), 1s, 30 * kDay,
                              "A container with such a manager is only observed for so long."));
  return rows;
}

#undef CGPHASE_FIELD

std::vector<ConfigRow> all_rows() {
  std::vector<ConfigRow> rows = general_rows();
  for (auto part : {when_rows, amount_rows, event_rows})
    for (ConfigRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

struct Unit {
  std::uint64_t size;
  const char* name;
};

// In the largest unit that leaves no rest.
std::string in_units(std::uint64_t value, std::span<const Unit> largest_first) {
  for (const Unit& unit : largest_first)
    if (value != 0 && value % unit.size == 0) return std::to_string(value / unit.size) + unit.name;
  return std::to_string(value) + largest_first.back().name;
}

}  // namespace

std::string duration_text(nanoseconds duration) {
  static constexpr std::array<Unit, 5> kUnits = {{{86'400'000'000'000, "d"},
                                                  {3'600'000'000'000, "h"},
                                                  {60'000'000'000, "min"},
                                                  {1'000'000'000, "s"},
                                                  {1'000'000, "ms"}}};
  if (duration == 0s) return "0s";
  return in_units(static_cast<std::uint64_t>(duration.count()), kUnits);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits = {
      {{1024 * kGiB, "T"}, {kGiB, "G"}, {kMiB, "M"}, {1024, "K"}, {1, ""}}};
  return in_units(bytes, kUnits);
}

std::span<const ConfigRow> config_table() {
  static const std::vector<ConfigRow> rows = all_rows();
  return rows;
}

const ConfigRow* find_row(std::string_view key) {
  const auto rows = config_table();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ConfigRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace cgphase
